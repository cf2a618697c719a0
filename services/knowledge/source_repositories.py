"""Text files of git repositories that the links file names, as sources."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import quote

from services.knowledge.cache import Record
from services.knowledge.file_selection import PARTIAL, is_partial
from services.knowledge.links_file import REPOSITORY_FILES, RepositoryLine
from services.knowledge.refreshed_lines import LineState, NoteFailure, StoredTexts
from services.knowledge.source_files import page_of, text_flaw
from services.knowledge.source_kinds import LineResult, SourceSetup, Text, describe_left_out, require_web
from services.knowledge.web_interface import RepositorySelection
from services.storage import files, in_thread

_LFS_POINTER = "version https://git-lfs."


@dataclass(frozen=True, slots=True)
class GitFacts:
    """The facts about a file. `file`: the id, `git:github.com/example/project@main//docs/setup.md`; `blob`: the hash
    that git gives its content, and a hash of the partials that it may include.
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
    """The stored state of a `git:` line. `blobs`: the hash of each file, by path."""

    commit: str = ""
    blobs: dict[str, str] = field(default_factory=dict[str, str])
    left_out: dict[str, int] = field(default_factory=dict[str, int])


class Repositories(StoredTexts[RepositoryLine, RepositoryState, GitRecord]):
    """The `SourceKind` of files of git repositories. Their versions are `GitFacts.blob`."""

    noun, plural = "file", "files"
    step, record = "copy", GitRecord
    batch, concurrency = 64, 2
    prefix, line, state = REPOSITORY_FILES, RepositoryLine, RepositoryState
    folder = "repositories"

    def __init__(self, setup: SourceSetup) -> None:
        super().__init__(setup)
        self._path_filter, self._max_bytes = setup.path_filter, setup.max_bytes

    @staticmethod
    def address(source_id: str) -> str | None:
        return hosted_address(source_id)

    def key(self, line: RepositoryLine) -> Sequence[object]:
        chosen = map(list, (self._path_filter.include, self._path_filter.exclude))
        return [line.url, line.branch, line.folder, *chosen, self.setup.most_sources, self._max_bytes]

    def result(self, state: RepositoryState) -> LineResult:
        return LineResult(len(state.blobs) if state.commit else None, describe_left_out(state.left_out), state.failed)

    def may_bring(self, line: RepositoryLine, record: GitRecord) -> bool:
        return record.source_id.startswith(line.prefix)

    def facts(self, source_id: str, version: str) -> Mapping[str, Any]:
        return {"git": GitFacts(source_id, version)}

    def sources_of(self, line: RepositoryLine, state: RepositoryState, left_out: dict[str, str]) -> Mapping[str, str]:
        """As in `RefreshedLines`. If a partial changes, so does the version of each page that may include it."""
        parts = (
            {} if self._path_filter.include else {path: blob for path, blob in state.blobs.items() if is_partial(path)}
        )
        left_out.update({f"{line.prefix}{path}": PARTIAL for path in parts})
        suffix = f"+{hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()[:8]}" if parts else ""
        return {f"{line.prefix}{path}": f"{blob}{suffix}" for path, blob in state.blobs.items() if path not in parts}

    def read(self, source_id: str) -> Text:
        text = super().read(source_id)
        if text.text.startswith(_LFS_POINTER):
            return replace(text, flaw="it is kept elsewhere (Git LFS)")
        repository, slashes, name = source_id.rpartition("//")

        def read_partial(path: str) -> str | None:
            try:
                part = super(Repositories, self).read(f"{repository}{slashes}{path}") if is_partial(path) else None
            except OSError:
                return None
            return None if part is None or text_flaw(part, self._max_bytes) else part.text

        return page_of(text, name, self._max_bytes, read_partial)

    async def ask(self, line: RepositoryLine, state: RepositoryState, _note_failure: NoteFailure) -> RepositoryState:
        """Fetch the files of the newest commit, write new and changed ones, and return the new state."""
        selection = RepositorySelection(line.folder, self._path_filter, self.setup.most_sources)
        wanted = self._blobs_to_fetch(line, state)
        repositories = require_web(self.setup.web and self.setup.web.repositories)
        found = await repositories.files(line.url, line.branch, selection, state.commit, wanted)
        if found is None:
            return state
        new = await in_thread(wanted, found.blobs)
        changed = {path: found.texts[blob] for path, blob in found.blobs.items() if blob in new and blob in found.texts}
        await in_thread(self._store_texts, line, {path: data for path, data in changed.items() if data.strip()})
        lacking = {path for path, blob in found.blobs.items() if blob in new and not found.texts.get(blob, b"").strip()}
        blobs = {path: blob for path, blob in found.blobs.items() if path not in lacking}
        left_out = {**found.left_out, **({"empty or not sent": len(lacking)} if lacking else {})}
        return RepositoryState(found.commit, blobs=blobs, left_out=left_out)

    def _blobs_to_fetch(self, line: RepositoryLine, state: RepositoryState) -> Callable[[Mapping[str, str]], set[str]]:
        def wanted(blobs: Mapping[str, str]) -> set[str]:
            return {
                blob
                for path, blob in blobs.items()
                if state.blobs.get(path) != blob or not self.path(f"{line.prefix}{path}").exists()
            }

        return wanted

    def _store_texts(self, line: RepositoryLine, texts: Mapping[str, bytes]) -> None:
        for path, data in texts.items():
            # One byte more than `read` allows shows that the file is too large.
            files.replace_derived(self.path(f"{line.prefix}{path}"), data[: self._max_bytes + 1])


_HOSTED: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"github\.com"), "https://{host}/{path}/blob/{branch}/{file}"),
    (re.compile(r"gitlab\..+"), "https://{host}/{path}/-/blob/{branch}/{file}"),
    (re.compile(r"codeberg\.org|(?:gitea|forgejo)\..+"), "https://{host}/{path}/src/branch/{branch}/{file}"),
    (re.compile(r"git\.sr\.ht"), "https://{host}/{path}/tree/{branch}/item/{file}"),
)
"""The addresses of files on hosts with known software."""


def hosted_address(source_id: str) -> str | None:
    """Return the web address of a file of a repository by its id (without `kb:`); None if the id is another, or the
    host is unknown. Without a branch the address has `HEAD`, which all of these hosts understand.
    """
    if not source_id.startswith(REPOSITORY_FILES):
        return None
    repository, _, file = source_id.removeprefix(REPOSITORY_FILES).partition("//")
    repository, _, branch = repository.partition("@")
    host, _, path = repository.partition("/")
    parts = {name: quote(value) for name, value in (("path", path), ("branch", branch or "HEAD"), ("file", file))}
    return next((form.format(host=host, **parts) for known, form in _HOSTED if known.fullmatch(host)), None)
