"""The rows of `--check` about the links file: what each line brings, as it is known on disk. Nobody is asked."""

from __future__ import annotations

from collections.abc import Iterator

from assembly.sources import SourceSetup, repositories_of, sites_of
from commands.findings import Finding, Verdict
from services.knowledge import CannotList, read_links
from services.telemetry import number_of
from settings import KnowledgeSettings

ABOUT = "kb.links_file_path"
FAILED = "the last attempt failed; app.py --init-kb tries again and says why"
NOT_YET = "not asked yet; app.py --init-kb does that, and so does the running bot"


def links(kb: KnowledgeSettings) -> Iterator[Finding]:
    """One row for each line that brings several sources or is wrong, and one for the single pages together."""
    try:
        found = read_links(kb.links_file_path)
    except CannotList:
        return  # said already
    if found is None:
        return
    setup = SourceSetup(kb)
    sites, repositories = sites_of(setup), repositories_of(setup)
    if found.pages:
        yield Finding(ABOUT, Verdict.OK, f"named by themselves: {number_of(len(found.pages), 'page')}")
    for line in found.sites:
        brought = sites.brought(line)
        complete = brought is not None and brought.complete
        count = "" if brought is None else number_of(len(brought.pages), "page")
        note = "" if brought is None else brought.note
        failed = brought is not None and brought.failed
        yield _row(line.place, f"{line.kind}: {line.url}", count if complete else "", note, failed=failed)
    for line in found.repositories:
        copy = repositories.copy(line)
        count = "" if copy is None or not copy.commit else number_of(len(copy.blobs), "file")
        note = "" if copy is None else copy.note
        where = f"git: {line.url}{'@' if line.branch else ''}{line.branch}{' ' if line.folder else ''}{line.folder}"
        yield _row(line.place, where, count, note, failed=copy is not None and copy.failed)
    for place, reason in found.left_out.items():
        yield Finding(ABOUT, Verdict.WARNING, f"{place}: {reason}")


def _row(place: str, what: str, count: str, note: str, *, failed: bool) -> Finding:
    said = f"{count}; left out: {note}" if note else count
    if failed:
        said = f"{said}; {FAILED}" if said else FAILED
    return Finding(
        ABOUT, Verdict.OK if count and not failed else Verdict.WARNING, f"{place}: {what}: {said or NOT_YET}"
    )
