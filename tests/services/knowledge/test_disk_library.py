from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from clock import VirtualLoop
from services.knowledge import index_file
from services.knowledge.index_file import IndexEntry
from services.knowledge.library import DiskLibrary, Library, Source, SourceUnavailable
from services.knowledge.source_files import TextFiles
from services.knowledge.source_pages import WebPages
from services.storage import confined
from tests.shelves import source_setup

PAGE = "https://example.org/faq?a=1"


class Shelf:
    """A knowledge base on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sources, self.web, self.topics = root / "sources", root / "web-cache", root / "topics"
        for folder in (self.sources, self.web, self.topics):
            folder.mkdir()
        self.index, self.team_index = root / "index.txt", root / "index-team.txt"

    def library(
        self,
        *,
        max_source_bytes: int = 2_000_000,
        cached_chars: int = 1000,
        left_out: Collection[str] = (),
        redact: Callable[[str], str] = str,
    ) -> DiskLibrary:
        return DiskLibrary(
            index_path=self.index,
            kinds=(
                TextFiles(source_setup(self.sources, max_source_bytes)),
                WebPages(source_setup(self.sources, max_source_bytes)),
            ),
            team_index_path=self.team_index,
            team_topics_dir=self.topics,
            max_source_bytes=max_source_bytes,
            most_cached_chars=cached_chars,
            hidden_topics=left_out,
            redact=redact,
        )

    def name(self, *ids: str) -> None:
        """Put ids into the index of their namespace."""
        for namespace, path in (("kb:", self.index), ("team:", self.team_index)):
            own = [each for each in ids if each.startswith(namespace)]
            path.write_text("\n".join(f"{each}\nAbout {each.lower()}.\n" for each in own))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    made = Shelf(tmp_path)
    (made.sources / "guides").mkdir()
    (made.sources / "guides" / "setup.md").write_text("# Setup\n")
    (made.web / hashlib.sha256(PAGE.encode()).hexdigest()).write_text("Questions\n")
    (made.topics / "tokens.txt").write_text("id: …\n")
    made.name("kb:guides/setup.md", f"kb:{PAGE}", "team:tokens.txt")
    return made


async def test_team_entries_come_first(shelf: Shelf) -> None:
    library: Library = shelf.library()
    assert await library.index() == (
        IndexEntry("team:tokens.txt", "About team:tokens.txt."),
        IndexEntry("kb:guides/setup.md", "About kb:guides/setup.md."),
        IndexEntry(f"kb:{PAGE}", f"About kb:{PAGE}."),
    )


async def test_topics_that_are_left_out_are_neither_listed_nor_loaded(shelf: Shelf) -> None:
    for name in ("tokens-2", "tokens-lost"):
        (shelf.topics / f"{name}.txt").write_text("id: …\n")
    shelf.name("kb:guides/setup.md", "team:tokens.txt", "team:tokens-2.txt", "team:tokens-lost.txt")
    library = shelf.library(left_out={"tokens"})
    assert [entry.id for entry in await library.index()] == ["team:tokens-lost.txt", "kb:guides/setup.md"]
    for hidden in ("team:tokens.txt", "team:tokens-2.txt"):
        with pytest.raises(SourceUnavailable, match="not in the index"):
            await library.load(hidden)
    assert await library.index() is await library.index()
    assert (await library.load("team:tokens-lost.txt")).text == "id: …\n"
    assert len(await shelf.library().index()) == 4


async def test_files_pages_and_topics_are_loaded_whole(shelf: Shelf) -> None:
    library = shelf.library()
    assert await library.load("kb:guides/setup.md") == Source("kb:guides/setup.md", "# Setup\n")
    assert await library.load(f"kb:{PAGE}") == Source(f"kb:{PAGE}", "Questions\n")
    assert await library.load("team:tokens.txt") == Source("team:tokens.txt", "id: …\n")


async def test_missing_index_files_mean_no_entries_and_are_reported_once(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 40."""
    caplog.set_level(logging.INFO)
    library = shelf.library()
    assert len(await library.index()) == 3
    shelf.team_index.unlink()
    shelf.index.unlink()
    for _ in range(3):
        assert await library.index() == ()
    # A team that has taught nothing yet is no reason to worry.
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    missing = "there is no index yet, so nothing can be selected from it"
    remedy = "; app.py --init-kb makes it, and so does the running bot"
    assert [message.split(": ")[1] for message in caplog.messages] == [missing, missing + remedy]
    shelf.name("kb:guides/setup.md")
    assert [entry.id for entry in await library.index()] == ["kb:guides/setup.md"]


async def test_an_index_that_cannot_be_read_keeps_what_it_held_and_is_tried_again(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    library = shelf.library()
    before = await library.index()
    text = shelf.index.read_text()
    shelf.index.unlink()
    shelf.index.mkdir()
    for _ in range(3):
        assert await library.index() == before
    assert caplog.messages == [f"{shelf.index}: the index cannot be read (Is a directory); its earlier entries stay"]
    shelf.index.rmdir()
    shelf.index.write_text(text)
    assert await library.index() == before


async def test_an_index_below_something_that_is_no_folder_cannot_be_read(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.index = shelf.root / "index-team.txt" / "index.txt"
    library = shelf.library()
    for _ in range(2):
        assert [entry.id for entry in await library.index()] == ["team:tokens.txt"]
    assert len(caplog.messages) == 1


async def test_an_index_speaks_for_its_own_namespace_only(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 20."""
    shelf.index.write_text("team:tokens.txt\nForged.\n\nkb:guides/setup.md\nReal.\n")
    assert [entry.description for entry in await shelf.library().index()] == ["About team:tokens.txt.", "Real."]
    assert f"{shelf.index}:1: 'team:tokens.txt' is no identifier" in caplog.text


async def test_only_ids_that_the_index_names_can_be_loaded(shelf: Shelf) -> None:
    """Pitfalls 17 and 44: no file and no address that a model made up."""
    (shelf.sources / "secret.md").write_text("no")
    library = shelf.library()
    for source_id in ("kb:secret.md", "http://169.254.169.254/", "kb:http://169.254.169.254/", "", "setup.md"):
        with pytest.raises(SourceUnavailable, match="is not in the index"):
            await library.load(source_id)
    assert (await library.load("team:tokens.txt")).text
    shelf.name("kb:guides/setup.md")
    with pytest.raises(SourceUnavailable, match="is not in the index"):
        await library.load("team:tokens.txt")


@pytest.mark.parametrize(
    "source_id",
    [
        "kb:../.env",
        "kb:../index.txt",
        "kb:guides/../../index.txt",
        "kb:guides/../guides/setup.md",
        "kb:/etc/passwd",
        "team:/etc/passwd",
        "team:../sources/guides/setup.md",
        "team:https://example.org/",
        "kb:.hidden.md",
        "kb:.git/config",
        "kb:guides//setup.md",
        "kb:guides\\setup.md",
        "kb:..\\..\\windows",
        "kb:out.md",
        "kb:outside/passwd",
        "kb:to-hidden.md",
        "kb:guides",
        "kb:pipe",
        "kb:loop",
        "kb:missing.md",
        "kb:empty.md",
        "kb:https://example.org/never-fetched",
    ],
)
async def test_no_name_leads_out_of_its_folder(source_id: str, shelf: Shelf) -> None:
    """Pitfall 16, and 17: a page that is not in the cache is not fetched."""
    (shelf.root / ".env").write_text("TOKEN=x")
    (shelf.sources / ".hidden.md").write_text("hidden")
    (shelf.sources / ".git").mkdir()
    (shelf.sources / ".git" / "config").write_text("hidden")
    (shelf.sources / "out.md").symlink_to("/etc/passwd")
    (shelf.sources / "outside").symlink_to("/etc")
    (shelf.sources / "to-hidden.md").symlink_to(".hidden.md")
    (shelf.sources / "loop").symlink_to("loop")
    (shelf.sources / "empty.md").write_text(" \n")
    os.mkfifo(shelf.sources / "pipe")
    shelf.name(source_id)
    library = shelf.library()
    assert [entry.id for entry in await library.index()] == [source_id]
    with pytest.raises(SourceUnavailable) as caught:
        await library.load(source_id)
    assert str(caught.value).startswith(repr(source_id))
    assert "not in the index" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_nul_or_a_backslash_is_in_no_name() -> None:
    """Pitfall 16."""
    for name in ("a\0b", "a\\b"):
        with pytest.raises(confined.OutsideFolder):
            confined.locate(Path("/srv"), name)


async def test_a_symlink_within_the_folder_is_followed(shelf: Shelf) -> None:
    (shelf.sources / "alias.md").symlink_to("guides/setup.md")
    (shelf.root / "elsewhere").symlink_to(shelf.sources)
    shelf.name("kb:alias.md")
    shelf.sources = shelf.root / "elsewhere"
    assert (await shelf.library().load("kb:alias.md")).text == "# Setup\n"


async def test_a_file_that_becomes_a_link_out_is_no_longer_served_from_memory(shelf: Shelf) -> None:
    """Pitfall 16."""
    library = shelf.library()
    await library.load("kb:guides/setup.md")
    (shelf.sources / "guides" / "setup.md").unlink()
    with pytest.raises(SourceUnavailable, match="No such file"):
        await library.load("kb:guides/setup.md")
    (shelf.sources / "guides" / "setup.md").symlink_to(shelf.index)
    with pytest.raises(SourceUnavailable, match="outside of its folder"):
        await library.load("kb:guides/setup.md")


async def test_a_source_is_cut_at_the_limit_between_letters(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    (shelf.sources / "guides" / "setup.md").write_bytes("abcé".encode() + b"\xff!")
    assert (await shelf.library(max_source_bytes=4).load("kb:guides/setup.md")).text == "abc"
    assert caplog.messages == ["kb:guides/setup.md is longer than 4 bytes; the rest is left out"]
    assert (await shelf.library(max_source_bytes=7).load("kb:guides/setup.md")).text == "abcé\ufffd!"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read, as they are."""
    names: list[str] = []
    read, parse = confined.read, index_file.parse

    def counted_read(folder: Path, path: Path, max_bytes: int) -> tuple[str, confined.Signature, bool]:
        names.append(path.name)
        return read(folder, path, max_bytes)

    def counted_parse(text: str, file: str, namespace: str) -> list[IndexEntry]:
        names.append(Path(file).name)
        return parse(text, file, namespace)

    monkeypatch.setattr(confined, "read", counted_read)
    monkeypatch.setattr(index_file, "parse", counted_parse)
    return names


async def test_what_has_changed_is_read_again_and_nothing_else(shelf: Shelf, reads: list[str]) -> None:
    library = shelf.library()
    first = await library.index()
    for _ in range(5):
        assert await library.index() is first
        await library.load("kb:guides/setup.md")
    assert reads == ["index-team.txt", "index.txt", "setup.md"]
    reads.clear()
    (shelf.sources / "guides" / "setup.md").write_text("# Set up anew\n")
    assert (await library.load("kb:guides/setup.md")).text == "# Set up anew\n"
    assert await library.index() is first
    shelf.index.write_text("kb:guides/setup.md\nShort.\n")
    await library.load("kb:guides/setup.md")
    assert reads == ["setup.md", "index.txt"]


async def test_the_memory_for_texts_is_bounded(shelf: Shelf, reads: list[str]) -> None:
    ids = [f"kb:{number}.md" for number in range(4)]
    for source_id in ids:
        (shelf.sources / source_id.removeprefix("kb:")).write_text("x" * 300)
    (shelf.sources / "huge.md").write_text("x" * 5000)
    shelf.name(*ids, "kb:huge.md")
    library = shelf.library(cached_chars=1000)
    for source_id in [*ids[:3], ids[0], ids[3]]:
        await library.load(source_id)
    reads.clear()
    for source_id in (ids[2], ids[0], ids[3], ids[1]):
        await library.load(source_id)
    assert reads == ["1.md"], "the one not asked for the longest while"
    for _ in range(2):
        assert len((await library.load("kb:huge.md")).text) == 5000
    assert reads == ["1.md", "huge.md", "huge.md"], "longer than the memory, so not kept"


@pytest.mark.real_time
async def test_a_caller_cancelled_while_reading_leaves_nothing_half_known(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = shelf.library()
    begun, begin, ended = threading.Event(), threading.Event(), threading.Event()
    real = index_file.parse

    def slowly(text: str, file: str, namespace: str) -> list[IndexEntry]:
        begun.set()
        begin.wait()
        if namespace == "kb":
            ended.set()
        return real(text, file, namespace)

    monkeypatch.setattr(index_file, "parse", slowly)
    task = asyncio.ensure_future(library.index())
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    begin.set()
    await asyncio.to_thread(ended.wait)
    assert len(await library.index()) == 3


def test_a_call_that_finds_all_unchanged_costs_next_to_nothing(shelf: Shelf) -> None:
    """Pitfall 38, and the speed of a replay: no thread for what is known. Measured: 10 and 16 µs; the bound is lax."""
    library = shelf.library()

    async def many(count: int) -> float:
        await library.load("kb:guides/setup.md")
        begun = time.process_time()
        for _ in range(count):
            await library.index()
            await library.load("kb:guides/setup.md")
        return (time.process_time() - begun) / count

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(many(2000)) < 0.000_2


async def test_reading_writes_nothing(shelf: Shelf) -> None:
    """Pitfall 50: a replay reads the live knowledge base through this class."""

    def look() -> list[tuple[Path, int]]:
        return sorted((path, path.stat().st_mtime_ns) for path in shelf.root.rglob("*"))

    before = look()
    library = shelf.library()
    for entry in await library.index():
        await library.load(entry.id)
    assert look() == before


@pytest.mark.parametrize("topic", ["../outside.txt", "sub/../../outside.txt", ".hidden.txt", "a\\b.txt", "topics"])
async def test_a_topic_name_never_leads_out_of_its_folder(shelf: Shelf, topic: str) -> None:
    """Pitfall 18, on the reading side: whatever name stands in the index, only the topics' own folder is read."""
    (shelf.root / "outside.txt").write_text("Not a topic.")
    (shelf.topics / ".hidden.txt").write_text("Not a topic.")
    shelf.name(f"team:{topic}")
    with pytest.raises(SourceUnavailable):
        await shelf.library().load(f"team:{topic}")


async def test_what_nobody_is_to_be_told_is_in_no_text_of_any_source(shelf: Shelf) -> None:
    """Pitfall 22: whatever is made of a source later, answers, prompts and search files, is made of this."""
    (shelf.sources / "guide.md").write_text("The key is sesame.\nKeep it.\n")
    (shelf.topics / "keys.txt").write_text("Team: sesame")
    shelf.name("kb:guide.md", "team:keys.txt")
    library = shelf.library(redact=lambda text: text.replace("sesame", "[hidden]"))
    for _ in range(2):  # read, and as it was kept
        assert (await library.load("kb:guide.md")).text == "The key is [hidden].\nKeep it.\n"
        assert (await library.load("team:keys.txt")).text == "Team: [hidden]"


async def test_callers_at_the_same_time_read_a_changed_index_once(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a slow thread replaces what a later one has read, and `load` misses what `select` has chosen."""
    library = shelf.library()
    all_asked, read = threading.Event(), list[str]()
    original = index_file.parse

    def parse(text: str, file: str, namespace: str) -> list[IndexEntry]:
        all_asked.wait(5)
        read.append(namespace)
        return original(text, file, namespace)

    monkeypatch.setattr(index_file, "parse", parse)
    callers = [asyncio.ensure_future(library.index()) for _ in range(2)]
    await asyncio.sleep(0)
    all_asked.set()
    assert [len(found) for found in await asyncio.gather(*callers)] == [3, 3]
    assert read == ["team", "kb"]
