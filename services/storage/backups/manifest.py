"""The manifest of a backup: its format, and the names that its files may have.

{"millrace_backup": 1, "made_at": "2026-02-01T03:10:56.000Z", "folders": ["knowledge-base/sources"],
 "files": [{"path": "state/seen.json", "size": 12, "mtime_ns": 1769915456000000000, "sha256": "9f86…"}]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import ConfigDict, FailFast, Field, TypeAdapter, ValidationError

from services.storage import data_folder

FORMAT = 1
MANIFEST_NAME = "millrace-backup.json"
"""The name of the manifest in the archive."""
DATA_PREFIX = "data/"
"""The beginning of the path of each file in the archive."""
MAX_MANIFEST_BYTES = 32 * 1024 * 1024
"""The limit of a manifest: more than 100,000 files."""
MAX_MANIFEST_VALUES = 1_000_000
"""The limit of values in a manifest, five for each file. Reading it takes a hundred times the bytes of small values."""
MAX_PATH_STEPS = 32
MAX_FOLDERS = 50_000
"""The limit of folders in the paths of an archive: each is made, and a short archive can name millions."""
MAX_PATH_BYTES = 1024
"""The limit of a path: the path of the data folder itself comes before it."""
IN_EVERY_FOLDER = {".lock", "lost+found"}
"""Names at the top of a data folder that is empty: the lock, and what the root of a disk has."""
RESERVED_NAMES = {*IN_EVERY_FOLDER, data_folder.RESTORING, data_folder.RESTORED}
"""Names at the top of a data folder that no backup holds."""

_MAX_NAME_BYTES = 255
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff\\]")


class BadBackup(Exception):
    """A file is no backup, or a damaged one. The message is a reason that can follow the file's name."""


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """One file; `path` is relative to the data folder, with `/`."""

    path: str
    size: Annotated[int, Field(ge=0, le=1 << 62)]
    mtime_ns: Annotated[int, Field(ge=-(1 << 62), le=1 << 62)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The list of files in a backup. `made_at`: when the copying began. `folders`: the folders without files."""

    made_at: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
    files: Annotated[tuple[CopiedFile, ...], FailFast()] = ()
    folders: Annotated[tuple[str, ...], FailFast()] = ()
    millrace_backup: Literal[1] = FORMAT

    __pydantic_config__ = ConfigDict(extra="forbid")

    @property
    def total_bytes(self) -> int:
        """The size of all files, unpacked."""
        return sum(each.size for each in self.files)


_MANIFEST = TypeAdapter(Manifest)


def render(manifest: Manifest) -> bytes:
    return json.dumps(asdict(manifest), ensure_ascii=False, indent=0).encode() + b"\n"


def parse(data: bytes) -> Manifest:
    """Parse and check a manifest. Raises BadBackup."""
    if len(data) > MAX_MANIFEST_BYTES or data.count(b",") > MAX_MANIFEST_VALUES:
        raise BadBackup(f"is damaged: its {MANIFEST_NAME} is too large; use another backup")
    try:
        manifest = _MANIFEST.validate_json(data)
    except ValidationError as error:
        if any(each["loc"] == ("millrace_backup",) for each in error.errors(include_input=False)):
            raise BadBackup("is of another version of this program; restore it with that version") from None
        raise BadBackup(f"is damaged: its {MANIFEST_NAME} cannot be read; use another backup") from None
    _check([each.path for each in manifest.files], manifest.folders)
    return manifest


def _check(files: Sequence[str], folders: Sequence[str]) -> None:
    """Check that every path stays inside the data folder and occurs once, as a file or as a folder (Pitfall 16)."""
    seen: set[str] = set()
    parents: set[str] = set()
    for path in (*files, *folders):
        if not is_safe_path(path):
            raise BadBackup(f"holds a name that no data folder has ({path[:80]!r}); do not use it")
        if path in seen:
            raise BadBackup(f"holds {path[:80]!r} twice; do not use it")
        seen.add(path)
        folder = path.rpartition("/")[0]
        while folder and folder not in parents:
            parents.add(folder)
            folder = folder.rpartition("/")[0]
        if len(parents) + len(folders) > MAX_FOLDERS:
            raise BadBackup(f"holds more than {MAX_FOLDERS:,} folders; do not use it")
    if not parents.isdisjoint(files):
        raise BadBackup("holds a file that is a folder as well; do not use it")


def is_safe_path(path: str) -> bool:
    """Return True if a path stays inside the folder, has no reserved name, and is short enough for every command."""
    steps = path.split("/")
    if _UNSAFE.search(path) or steps[0].casefold() in RESERVED_NAMES:  # some systems ignore the case
        return False
    if len(steps) > MAX_PATH_STEPS or len(path.encode()) > MAX_PATH_BYTES:
        return False
    return all(step not in {"", ".", ".."} and len(step.encode()) <= _MAX_NAME_BYTES for step in steps)
