"""Text files of git repositories that the links file names, as sources."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import quote

from clock import now, rfc3339
from services.knowledge.cache import Record, hash_text
from services.knowledge.file_selection import DRAFT, PART, is_part, is_unpublished, with_parts
from services.knowledge.links_file import REPOSITORY_FILES, RepositoryLine, listed_links
from services.knowledge.refreshed_lines import NoteFailure, RefreshedLines
from services.knowledge.source_files import text_flaw
from services.knowledge.source_kinds import (
    LeftOut,
    LineResult,
    Listing,
    SourceFacts,
    SourceSetup,
    Text,
    Trouble,
    needed,
    note_of,
)
from services.knowledge.web_interface import RepositorySelection
from services.storage import files, in_thread

_LARGE_FILE = "version https://git-lfs."


@dataclass(frozen=True, slots=True)
class GitFacts:
    """`file`: the id, `git:github.com/example/project@main//docs/setup.md`; `blob`: what git calls its content, and a
    sign of the parts that it may include.
    """

    file: str
    blob: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GitRecord(Record):
    git: GitFacts
    source_type: Literal["git"] = "git"

    @property
    def source_id(self) -> str:
        return self.git.file


@dataclass(slots=True)
class RepositoryState:
    """The stored state of a `git:` line. `next_check_at`: in seconds since 1970; `blobs`: hash of each file, by
    path.
    """

    commit: str = ""
    next_check_at: float = 0.0
    failed: bool = False
    blobs: dict[str, str] = field(default_factory=dict[str, str])
    left_out: dict[str, int] = field(default_factory=dict[str, int])


class Repositories(RefreshedLines[RepositoryLine, RepositoryState]):
    """The `SourceKind` of files of git repositories."""

    noun, plural = "file", "files"
    step, record = "copy", GitRecord
    batch, concurrency = 64, 2
    line, state = RepositoryLine, RepositoryState
    folder, phase = "repositories", "copy"

    def __init__(self, setup: SourceSetup) -> None:
        super().__init__(setup)
        self._choice, self._max_bytes = setup.choice, setup.max_bytes
        self._blobs: dict[str, str] = {}
        """Of each file, as it was last listed."""
        self._unfit: dict[str, tuple[str, str]] = {}
        """Files that were read and are no sources: their blobs then, and why."""

    def owns(self, source_id: str) -> bool:
        return source_id.startswith(REPOSITORY_FILES)

    @staticmethod
    def address(source_id: str) -> str | None:
        return hosted_address(source_id)

    def facts(self, _record: GitRecord) -> SourceFacts:
        return SourceFacts()

    def key(self, line: RepositoryLine) -> Sequence[object]:
        chosen = map(list, (self._choice.include, self._choice.exclude))
        return [line.url, line.branch, line.folder, *chosen, self.setup.most]

    def result(self, known: RepositoryState) -> LineResult:
        return LineResult(len(known.blobs) if known.commit else None, note_of(known.left_out), known.failed)

    def list_sources(self, records: Mapping[str, GitRecord], _at: float) -> Listing:
        listing, unknown = Listing(), list[str]()  # wrong lines are told with the pages
        self._blobs = {}
        for line, copy in self.listed(listed_links(self.setup.links_file, records), listing.left_out):
            if copy is None or not copy.commit:
                unknown.append(line.prefix)
                continue
            self._blobs |= self._pages(line, copy, listing)
        for source_id, blob in self._blobs.items():
            record = records.get(source_id)
            if record is not None and record.git.blob == blob and record.content_hash and record.gone_at is None:
                listing.unchanged.append(source_id)
            elif (unfit := self._unfit.get(source_id)) is not None and unfit[0] == blob:
                listing.left_out[source_id] = unfit[1]
            else:
                listing.due.append(source_id)
        listing.unsure = lambda source_id: source_id.startswith(tuple(unknown))
        return listing

    def _pages(self, line: RepositoryLine, copy: RepositoryState, listing: Listing) -> dict[str, str]:
        """The blob of each page, by its id. With a part each page changes that may include it."""
        parts = {} if self._choice.include else {path: blob for path, blob in copy.blobs.items() if is_part(path)}
        listing.left_out.update({f"{line.prefix}{path}": PART for path in parts})
        mark = f"+{hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()[:8]}" if parts else ""
        return {f"{line.prefix}{path}": f"{blob}{mark}" for path, blob in copy.blobs.items() if path not in parts}

    async def fetch(self, due: Mapping[str, GitRecord | None]) -> Sequence[GitRecord | LeftOut | Trouble]:
        at = rfc3339(now())
        return await in_thread(lambda: [each for name in due for each in self._examine(name, due[name], at)])

    def read(self, source_id: str) -> Text:
        text = super().read(source_id)
        flaw = "it is kept elsewhere (Git LFS)" if text.text.startswith(_LARGE_FILE) else ""
        flaw = flaw or text_flaw(text, self._max_bytes) or (DRAFT if is_unpublished(text.text) else "")
        repository, slashes, name = source_id.rpartition("//")
        whole, has_parts = with_parts(
            name, text.text.removeprefix("\ufeff"), lambda path: self._part(f"{repository}{slashes}{path}", path)
        )
        return replace(text, text=whole, flaw=flaw, has_parts=has_parts)

    def _part(self, source_id: str, path: str) -> str | None:
        """The text of a file that is no page by itself; None: it is one, or cannot be read."""
        if not is_part(path):
            return None
        try:
            part = super().read(source_id)
        except OSError:
            return None
        return None if text_flaw(part, self._max_bytes) else part.text

    async def ask(self, line: RepositoryLine, before: RepositoryState, _note_failure: NoteFailure) -> RepositoryState:
        """Return the copy as the repository is now; texts of new and changed files are written."""
        taken = RepositorySelection(line.folder, self._choice, self.setup.most)
        wanted = self._wanted(line, before)
        repositories = needed(self.setup.web and self.setup.web.repositories)
        found = await repositories.files(line.url, line.branch, taken, before.commit, wanted)
        if found is None:
            return before
        new = await in_thread(wanted, found.blobs)
        changed = {path: found.texts[blob] for path, blob in found.blobs.items() if blob in new and blob in found.texts}
        await in_thread(self._keep, line, {path: data for path, data in changed.items() if data.strip()})
        lacking = {path for path, blob in found.blobs.items() if blob in new and not found.texts.get(blob, b"").strip()}
        blobs = {path: blob for path, blob in found.blobs.items() if path not in lacking}
        left_out = {**found.left_out, **({"empty or not sent": len(lacking)} if lacking else {})}
        return RepositoryState(found.commit, blobs=blobs, left_out=left_out)

    def _wanted(self, line: RepositoryLine, before: RepositoryState) -> Callable[[Mapping[str, str]], set[str]]:
        def wanted(blobs: Mapping[str, str]) -> set[str]:
            return {
                blob
                for path, blob in blobs.items()
                if before.blobs.get(path) != blob or not self.path(f"{line.prefix}{path}").exists()
            }

        return wanted

    def _keep(self, line: RepositoryLine, texts: Mapping[str, bytes]) -> None:
        for path, data in texts.items():
            # With a byte more than may be read, a file that is too large is told from one that is not.
            files.replace_derived(self.path(f"{line.prefix}{path}"), data[: self._max_bytes + 1])

    def _examine(self, name: str, record: GitRecord | None, at: str) -> list[GitRecord | LeftOut | Trouble]:
        facts = GitFacts(name, self._blobs.get(name, ""))
        try:
            found = self.read(name)
        except OSError as error:
            return [Trouble(name, "copy", error.strerror or str(error))]
        if not found.flaw:
            known = GitRecord.new(at, git=facts) if record is None else replace(record, git=facts)
            return [known.holding(hash_text(found.text))]
        self._unfit[name] = facts.blob, found.flaw
        if record is None or record.gone_at is not None:
            return [LeftOut(name, found.flaw)]
        return [LeftOut(name, found.flaw), replace(record, gone_at=at)]


_HOSTED: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"github\.com"), "https://{host}/{path}/blob/{branch}/{file}"),
    (re.compile(r"gitlab\..+"), "https://{host}/{path}/-/blob/{branch}/{file}"),
    (re.compile(r"codeberg\.org|(?:gitea|forgejo)\..+"), "https://{host}/{path}/src/branch/{branch}/{file}"),
    (re.compile(r"git\.sr\.ht"), "https://{host}/{path}/tree/{branch}/item/{file}"),
)

"""Where files are shown, by hosts whose software is known."""


def hosted_address(source_id: str) -> str | None:
    """Where the host of a repository shows a file of it, given its id (without `kb:`); None: it is no such file, or
    nobody knows. Where no branch was named it is `HEAD`, which all of these hosts understand.
    """
    if not source_id.startswith(REPOSITORY_FILES):
        return None
    repository, _, file = source_id.removeprefix(REPOSITORY_FILES).partition("//")
    repository, _, branch = repository.partition("@")
    host, _, path = repository.partition("/")
    parts = {name: quote(value) for name, value in (("path", path), ("branch", branch or "HEAD"), ("file", file))}
    return next((form.format(host=host, **parts) for known, form in _HOSTED if known.fullmatch(host)), None)
