from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.storage.backups import manifest
from services.storage.backups.manifest import BadBackup, CopiedFile, Manifest
from tests.services.quickly import QUICKLY
from tests.services.storage.backups.folders import MADE_AT

HASH = "0" * 64
BEGIN = f'{{"millrace_backup": 1, "made_at": "{MADE_AT}", "files": ['.encode()
STEPS = st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/\\"), min_size=1, max_size=20)
PATHS = st.lists(STEPS, min_size=1, max_size=4).map("/".join).filter(manifest.is_safe_path)
COPIED = st.builds(
    CopiedFile,
    path=PATHS.map(lambda path: f"{path}/file"),
    size=st.integers(0, 1 << 62),
    mtime_ns=st.integers(-(1 << 62), 1 << 62),
    sha256=st.binary(min_size=32, max_size=32).map(bytes.hex),
)


@QUICKLY
@given(
    st.lists(COPIED, max_size=5, unique_by=lambda each: each.path),
    st.lists(PATHS.map(lambda path: f"{path}/folder"), max_size=3, unique=True),
)
def test_what_is_rendered_is_read(copied: list[CopiedFile], folders: list[str]) -> None:
    held = Manifest(MADE_AT, tuple(copied), tuple(folders))
    try:
        assert manifest.parse(manifest.render(held)) == held
    except BadBackup:  # one path leads through another
        paths = [each.path for each in copied] + folders
        assert any(a != b and a.startswith(f"{b}/") for a in paths for b in paths)


def rendered(*paths: str, folders: tuple[str, ...] = ()) -> bytes:
    return manifest.render(Manifest(MADE_AT, tuple(CopiedFile(path, 1, 0, HASH) for path in paths), folders))


@pytest.mark.parametrize(
    "path",
    [
        *("", "/etc/passwd", "../x", "a/../../x", "a/./b", "a//b", "a/", "a\\b", "a\0b", "a\nb", ".", "x" * 256),
        *(".lock", ".restored/state", ".restoring", "lost+found", "lost+found/x", ".Lock"),
        *("/".join("a" * 33), "/".join("a" * 1500), "/".join(["x" * 250] * 5)),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(path: str) -> None:
    """Pitfall 16."""
    for data in (rendered(path), rendered(folders=(path,))):
        with pytest.raises(BadBackup, match="holds a name that no data folder has"):
            manifest.parse(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (rendered("a", "a"), "holds 'a' twice"),
        (rendered("a", folders=("a",)), "holds 'a' twice"),
        (rendered("a", "a/b"), "a file that is a folder as well"),
        (rendered("a", folders=("a/b/c",)), "a file that is a folder as well"),
        (rendered(*(f"{n}/{'d/' * 30}f" for n in range(2_000))), "more than 50,000 folders"),
        (rendered(folders=tuple(f"{n}/{'d/' * 30}f" for n in range(2_000))), "more than 50,000 folders"),
        (b"", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (
            BEGIN + b"{}," * 1_000_001 + b"{}]}",
            "too large",
        ),
        (
            BEGIN + b"{}," * 900_000 + b"{}]}",
            "cannot be read",
        ),
        (rendered("a").replace(b'"size": 1', b'"size": -1'), "cannot be read"),
        (rendered("a").replace(MADE_AT.encode(), b"9"), "cannot be read"),
        (rendered("a").replace(MADE_AT.encode(), MADE_AT.encode() + b"\\u001b[2J"), "cannot be read"),
        (rendered("a").replace(MADE_AT.encode(), MADE_AT.encode() + b"\\n"), "cannot be read"),
        (rendered("a").replace(b'"size": 1', b'"size": 1e400'), "cannot be read"),
        (rendered("a").replace(HASH.encode(), b"../x"), "cannot be read"),
        (json.dumps({"millrace_backup": 2, "what": "ever"}).encode(), "another version of this program"),
    ],
)
def test_a_manifest_that_says_nonsense_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(BadBackup, match=words):
        manifest.parse(data)
