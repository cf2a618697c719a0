"""The folder of sources and the list of links."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clock import from_rfc3339
from services.knowledge.cache import hash_text
from services.knowledge.file_selection import sphinx_excludes
from services.knowledge.links_file import SiteLine
from services.knowledge.refreshed_lines import NoteFailure
from services.knowledge.source_files import HIDDEN, TextFiles, list_files
from services.knowledge.source_kinds import RefreshSchedule, SourceSetup, stored_name
from services.knowledge.source_pages import SiteState, UrlFacts, UrlRecord, WebPages, is_due
from services.storage import OutsideFolder
from tests.shelves import source_setup


def test_names_and_kinds_that_are_no_sources(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    (sources / "sub").mkdir(parents=True)
    (sources / "sub" / "good.md").write_text("Good")
    for name in (".hidden", "trailing ", "back\\slash", "new\nline", "surrogate\udc80"):
        (sources / name).write_text("x")
    os.mkfifo(sources / "pipe")
    (sources / ".git").mkdir()
    (sources / ".git" / "config").write_text("x")
    (tmp_path / ".env").write_text("SECRET=1")
    (sources / "env").symlink_to(tmp_path / ".env")
    (sources / "git").symlink_to(sources / ".git")
    (sources / "same").symlink_to(sources / "sub")
    listing = list_files(sources, 10)
    assert set(listing.files) == {"sub/good.md", "same/good.md"}
    assert listing.left_out.keys() == {
        ".hidden", ".git", "trailing ", "back\\slash", "new\nline", "surrogate\udc80", "pipe", "env", "git",
    }  # fmt: skip
    assert listing.left_out[".hidden"] == HIDDEN
    assert listing.unreadable == {}


def test_folders_do_not_go_in_circles_or_too_deep(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path / "a")
    listing = list_files(tmp_path, 10)
    assert listing.files == {}
    assert "leads back" in listing.left_out["a/b/up"]
    deep = tmp_path / "deep"
    for _ in range(70):
        deep /= "d"
    deep.mkdir(parents=True)
    [_, reason] = list_files(tmp_path, 10).left_out.values()
    assert reason == "it lies below more than 64 folders"


def test_a_configuration_of_sphinx_is_read_again_only_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def excludes(conf: str) -> list[str]:
        read.append(conf)
        return sphinx_excludes(conf)

    monkeypatch.setattr("services.knowledge.source_files.sphinx_excludes", excludes)
    conf, plain = "exclude_patterns = ['old']\n", "project = 'Mill'\n"
    for folder, text in (("a", conf), ("b", plain)):
        (tmp_path / folder / "old").mkdir(parents=True)
        (tmp_path / folder / "conf.py").write_text(text)
        (tmp_path / folder / "old" / "x.md").write_text("Rye")
    kind = TextFiles(source_setup(tmp_path))
    for _ in range(2):
        assert kind.list_sources({}, 0).due == ["b/old/x.md"]
    assert sorted(read) == [conf, plain]
    (tmp_path / "b" / "conf.py").write_text(conf + plain)
    assert kind.list_sources({}, 0).due == []
    assert len(read) == 3


def test_a_missing_folder_makes_everything_unsure(tmp_path: Path) -> None:
    listing = list_files(tmp_path / "nothing", 10)
    assert listing.unreadable == {"": "No such file or directory"}
    assert listing.may_exist("any/thing.md")


def test_what_cannot_be_looked_at_makes_only_that_unsure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "file").write_text("x")

    real = os.path.realpath

    def broken(path: str) -> str:
        if str(path).endswith("link"):
            raise OSError(5, "Input/output error")
        return real(path)

    monkeypatch.setattr(os.path, "realpath", broken)
    listing = list_files(tmp_path, 10)
    assert listing.unreadable == {"link": "Input/output error"}
    assert (listing.may_exist("link"), listing.may_exist("link/x"), listing.may_exist("linked")) == (True, True, False)


def test_text_is_read_with_few_slips_and_without_its_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes("\ufeffMany good letters and one ".encode() + b"\xe4")
    found = TextFiles(source_setup(tmp_path, 100)).read("a.md")
    assert found.text == "Many good letters and one \ufffd"
    assert not found.flaw
    assert found.signature[1] == 30


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"a\0b", "binary"), (b"\xff\xfe\xfd", "not UTF-8"), (b" \n", "empty"), (b"x" * 11, "larger than 10 bytes")],
)
def test_what_is_no_text_is_never_described(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "a.md").write_bytes(data)
    assert reason in TextFiles(source_setup(tmp_path, 10)).read("a.md").flaw


def test_only_ordinary_files_inside_are_read(tmp_path: Path) -> None:
    """Pitfall 16."""
    sources = tmp_path / "sources"
    sources.mkdir()
    (tmp_path / "secret").write_text("x")
    (sources / "out").symlink_to(tmp_path / "secret")
    (sources / "in").symlink_to(sources / "a.md")
    (sources / "a.md").write_text("A")
    os.mkfifo(sources / "pipe")
    files = TextFiles(source_setup(sources, 10))
    assert files.read("in").text == "A"
    for name in ("out", "pipe", "../secret", ".hidden"):
        with pytest.raises(OutsideFolder):
            files.read(name)


@pytest.mark.parametrize(
    ("lastmod", "days", "due"),
    [("", 1, False), ("", 4, True), ("monday", 4, False), ("tuesday", 1, True), ("monday", 31, True)],
    ids=["fresh", "its time has come", "it has not changed", "it has changed", "nobody is believed for ever"],
)
def test_a_page_is_due_when_its_site_says_so_or_when_its_time_has_come(lastmod: str, days: float, *, due: bool) -> None:
    at, url = "2026-01-01T00:00:00Z", "https://mill.example/rye"
    facts = UrlFacts(url, at, None, None, "success", "2026-01-04T00:00:00Z", "monday")
    record = UrlRecord.new(at, url=facts).with_content(hash_text("Rye"))
    now = from_rfc3339(at) + days * 86_400
    assert is_due(record, frozenset({stored_name(url)}), now, RefreshSchedule(), lastmod) is due


@pytest.mark.parametrize(
    ("schedule", "next_at", "failed", "due"),
    [
        (RefreshSchedule(), 11, False, False),
        (RefreshSchedule(), 10, False, True),
        (RefreshSchedule(is_manual=True), 11, True, True),
        (RefreshSchedule(is_manual=True), 11, False, False),
        (RefreshSchedule(), 11, True, False),
    ],
)
def test_what_failed_is_asked_for_at_once_where_somebody_waits(
    schedule: RefreshSchedule, next_at: float, failed: bool, due: bool
) -> None:
    assert schedule.is_due(next_at, 10, failed=failed) is due


class Asked(WebPages):
    async def ask(self, line: SiteLine, state: SiteState, note_failure: NoteFailure) -> SiteState:
        return SiteState(robots=line.url)


async def test_of_lines_that_are_no_more_nothing_is_kept(tmp_path: Path) -> None:
    kind = Asked(source_setup(tmp_path / "sources"))
    a, b = (SiteLine("", "llms", f"https://{name}.example/llms.txt") for name in "ab")
    for lines in ([a], [a, b], [b]):
        kind.setup.links_file.write_text("".join(f"{line.text}\n" for line in lines))
        assert await kind.refresh(0) == []
    assert kind.load_state(a) is None
    assert (kind.load_state(b) or SiteState()).robots == b.url
    (damaged,) = (kind.setup.cache_dir / "sites").iterdir()
    damaged.write_text('{"pause": "long"}')
    assert kind.load_state(b) is None


def test_of_some_folders_only_these_are_listed_and_read(tmp_path: Path) -> None:
    for name in ("docs/a.md", "wiki/pages/b.md", "wiki/c.md", "d.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# Words\n\nAbout it.\n")
    listing = list_files(tmp_path, 100, ["docs/", "wiki/pages/", "gone/"])
    assert list(listing.files) == ["docs/a.md", "wiki/pages/b.md"]
    assert list(listing.unreadable) == ["gone"]
    setup = SourceSetup(
        sources_dir=tmp_path,
        source_folders=("docs", "wiki/pages"),
        links_file=tmp_path / "links.txt",
        cache_dir=tmp_path / "cache",
        max_bytes=100,
    )
    assert TextFiles(setup).read("docs/a.md").text.startswith("# Words")
    for outside in ("d.md", "wiki/c.md"):
        with pytest.raises(OutsideFolder, match=r"outside of kb\.source_folders"):
            TextFiles(setup).read(outside)
