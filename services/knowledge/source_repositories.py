"""Text files of git repositories that the links file names, as sources."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import quote

from services.knowledge.cache import Record
from services.knowledge.file_selection import DRAFT, PART, is_part, is_unpublished, with_parts
from services.knowledge.links_file import REPOSITORY_FILES, RepositoryLine
from services.knowledge.refreshed_lines import LineState, NoteFailure, StoredTexts
from services.knowledge.source_files import text_flaw
from services.knowledge.source_kinds import LineResult, SourceSetup, Text, needed, note_of
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
class RepositoryState(LineState):
    """The stored state of a `git:` line. `blobs`: hash of each file, by path."""

    commit: str = ""
    blobs: dict[str, str] = field(default_factory=dict[str, str])
    left_out: dict[str, int] = field(default_factory=dict[str, int])


class Repositories(StoredTexts[RepositoryLine, RepositoryState, GitRecord]):
    """The `SourceKind` of files of git repositories. Their signs are `GitFacts.blob`."""

    noun, plural = "file", "files"
    step, record = "copy", GitRecord
    batch, concurrency = 64, 2
    prefix, line, state = REPOSITORY_FILES, RepositoryLine, RepositoryState
    folder = "repositories"

    def __init__(self, setup: SourceSetup) -> None:
        super().__init__(setup)
        self._choice, self._max_bytes = setup.choice, setup.max_bytes

    @staticmethod
    def address(source_id: str) -> str | None:
        return hosted_address(source_id)

    def key(self, line: RepositoryLine) -> Sequence[object]:
        chosen = map(list, (self._choice.include, self._choice.exclude))
        return [line.url, line.branch, line.folder, *chosen, self.setup.most]

    def result(self, known: RepositoryState) -> LineResult:
        return LineResult(len(known.blobs) if known.commit else None, note_of(known.left_out), known.failed)

    def may_bring(self, line: RepositoryLine, record: GitRecord) -> bool:
        return record.source_id.startswith(line.prefix)

    def facts(self, source_id: str, sign: str) -> Mapping[str, Any]:
        return {"git": GitFacts(source_id, sign)}

    def brought(self, line: RepositoryLine, known: RepositoryState, left_out: dict[str, str]) -> Mapping[str, str]:
        """With a part the sign of each page changes that may include it."""
        parts = {} if self._choice.include else {path: blob for path, blob in known.blobs.items() if is_part(path)}
        left_out.update({f"{line.prefix}{path}": PART for path in parts})
        mark = f"+{hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()[:8]}" if parts else ""
        return {f"{line.prefix}{path}": f"{blob}{mark}" for path, blob in known.blobs.items() if path not in parts}

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
