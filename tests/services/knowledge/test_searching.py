"""Searching a library as it lies on disk: what is read, prepared and embedded, and when."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from services.knowledge import DiskLibrary, IndexEntry, Library, LibrarySearch, Source, SourceUnavailable, TextFiles
from services.knowledge.library_search import REFRESH_SECONDS, article_of
from services.knowledge.source_kinds import SourceSetup, Text
from services.search import NOTHING, Level, PassageStore, PreparedSource, QueryVector, SearchResult, find, passage_store
from services.search.embedding import EmbeddingFailed, PackagedEmbedder, Vectors
from services.storage import in_thread
from tests.hashing import HashingEmbedder
from tests.shelves import source_setup

MILL = "# Mills\n\nThe wheel of the mill turns in the river.\n\n## Ice\n\nIn frost the wheel is lifted by a chain.\n"
PRESS = "# Presses\n\nThe lever of the press is pulled twice.\n"
TOPIC = "--- QA ---\nid: qa_1\ntimestamp: t\nUser: Does the sluice freeze?\nTeam: Grease the sluice with tallow.\n\n"


class CountedFiles(TextFiles):
    """Knows which files were read."""

    def __init__(self, setup: SourceSetup) -> None:
        super().__init__(setup)
        self.names: list[str] = []

    def read(self, source_id: str) -> Text:
        self.names.append(source_id)
        return super().read(source_id)


class CountingEmbedder(HashingEmbedder):
    """Knows which texts were embedded; fails on demand."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.fails = False

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.fails:
            raise EmbeddingFailed("down")
        self.texts += texts
        return await super().embed(texts)


class Folder:
    """Sources and topics below `root`, with their indexes."""

    def __init__(self, root: Path) -> None:
        self.root, self.sources, self.topics = root, root / "sources", root / "topics"
        for folder in (self.sources, self.topics):
            folder.mkdir()
        self.files = CountedFiles(source_setup(self.sources, 2_000_000))
        self.embedder: CountingEmbedder | PackagedEmbedder | None = None
        self.opened: list[LibrarySearch] = []

    def write(self, **texts: str) -> None:
        """Files by name without ending; then the index names all that there are."""
        for name, text in texts.items():
            (self.sources / f"{name}.md").write_text(text)
        names = sorted(path.name for path in self.sources.iterdir())
        (self.root / "index.txt").write_text("\n".join(f"kb:{name}\nAbout {name}.\n" for name in names))

    def teach(self, text: str) -> None:
        (self.topics / "sluice.txt").write_text(text)
        (self.root / "index-team.txt").write_text("team:sluice.txt\nThe sluice.\n")

    def search(self, *, read_only: bool = False, alone: bool = True) -> LibrarySearch:
        """As after a start of the program."""
        library = DiskLibrary(
            index_path=self.root / "index.txt",
            kinds=(self.files,),
            team_index_path=self.root / "index-team.txt",
            team_topics_dir=self.topics,
        )
        team, kb = (PassageStore(self.root / f"{name}.sqlite", read_only=read_only) for name in ("team", "kb"))
        made = LibrarySearch(library, team, kb, self.embedder, alone)
        self.files.names.clear()
        self.opened.append(made)
        return made


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write(mill=MILL, press=PRESS)
    made.teach(TOPIC)
    return made


async def ids(search: LibrarySearch, query: str) -> list[str]:
    return [hit.source_id for hit in (await search.find(query)).pages]


async def test_files_and_topics_are_found_as_one_library(folder: Folder) -> None:
    search = folder.search()
    assert await ids(search, "which lever is pulled?") == ["kb:press.md"]
    assert await ids(search, "sluice tallow") == ["team:sluice.txt"]
    assert sorted(await ids(search, "the frozen sluice and the wheel")) == ["kb:mill.md", "team:sluice.txt"]
    found = await search.find("lifting the wheel in frost by its chain")
    assert found.hits[0].passage.headings == ("Mills", "Ice")
    assert found.level is Level.ANSWER


async def test_after_a_restart_unchanged_files_are_not_read_again(folder: Folder) -> None:
    first = folder.search()
    await first.refresh()
    assert sorted(folder.files.names) == ["mill.md", "press.md"]
    first.close()
    again = folder.search()
    assert await ids(again, "lever") == ["kb:press.md"]
    assert folder.files.names == []


async def test_a_changed_file_is_read_again_and_no_other(folder: Folder) -> None:
    search = folder.search()
    await search.refresh()
    folder.files.names.clear()
    folder.write(press="# Presses\n\nThe screw of the press is turned.\n")
    assert await ids(search, "screw") == ["kb:press.md"]
    assert await ids(search, "lever") == []
    assert folder.files.names == ["press.md"]


async def test_a_change_that_the_index_does_not_show_is_seen_within_a_minute(folder: Folder) -> None:
    search = folder.search()
    await search.refresh()
    (folder.sources / "press.md").write_text("# Presses\n\nThe screw of the press is turned.\n")
    assert await ids(search, "screw") == []
    await asyncio.sleep(REFRESH_SECONDS + 1)
    assert await ids(search, "screw") == ["kb:press.md"]


async def test_a_file_that_was_only_touched_is_read_and_not_prepared_again(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    folder.search().close()
    search = folder.search()
    await search.refresh()
    search.close()
    os.utime(folder.sources / "press.md", (1, 1))
    caplog.set_level("INFO")
    again = folder.search()
    await again.refresh()
    assert folder.files.names == ["press.md"]
    assert "prepared" not in caplog.text
    again.close()
    await folder.search().refresh()
    assert folder.files.names == []


async def test_a_removed_file_goes(folder: Folder) -> None:
    search = folder.search()
    await search.refresh()
    (folder.sources / "press.md").unlink()
    folder.write()
    assert await ids(search, "lever") == []
    assert search.kb.sources().keys() == {"kb:mill.md"}


async def test_nothing_is_embedded_twice_over_restarts_renames_and_changes(folder: Folder) -> None:
    folder.embedder = CountingEmbedder()
    first = folder.search(alone=False)
    await first.refresh()
    assert await first.unembedded() == 4
    done: list[int] = []
    assert await first.embed(on_done=done.append) == 4 == sum(done)
    assert await first.unembedded() == 0
    first.close()
    (folder.sources / "press.md").rename(folder.sources / "presses.md")
    folder.write(mill=MILL.replace("by a chain", "by two chains"))
    again = folder.search(alone=False)
    await again.refresh()
    assert await again.unembedded() == 1
    await again.embed()
    passages = [text for text in folder.embedder.texts if "\n" in text]
    assert len(passages) == len(set(passages)) == 5


async def test_alone_a_question_waits_for_a_few_vectors_and_not_for_many(folder: Folder) -> None:
    folder.embedder = CountingEmbedder()
    search = folder.search()
    assert (await search.find("lever of a press")).hits[0].cosine is not None
    folder.write(**{f"page{number}": f"# P {number}\n\nOn page {number} is a rope.\n" for number in range(350)})
    found = await search.find("rope of a page")
    assert found.hits[0].cosine is None
    assert await search.unembedded() == 350


async def test_beside_something_that_embeds_a_question_waits_for_none(folder: Folder) -> None:
    folder.embedder = CountingEmbedder()
    search = folder.search(alone=False)
    assert await ids(search, "lever") == ["kb:press.md"]
    assert await search.unembedded() == 4
    await search.embed()
    assert (await search.find("lever")).hits[0].cosine is not None


async def test_an_embedder_that_is_down_leaves_the_words(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    folder.embedder = CountingEmbedder()
    folder.embedder.fails = True
    search = folder.search()
    assert await ids(search, "lever") == ["kb:press.md"]
    assert "by its words only: down" in caplog.text
    folder.embedder.fails = False
    assert await search.embed() == 4


async def test_what_was_found_while_the_embedder_was_down_is_searched_again(folder: Folder) -> None:
    """Pitfall 76."""
    folder.embedder = CountingEmbedder()
    search = folder.search()
    await search.refresh()
    folder.embedder.fails = True
    assert (await search.find("lever")).hits[0].cosine is None
    folder.embedder.fails = False
    assert (await search.find("lever")).hits[0].cosine is not None


async def test_confidence_is_told_from_cosines_of_the_packaged_model_in_english_alone(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, bool] = {}

    def judging(
        stores: Sequence[PassageStore], query: str, meaning: QueryVector, allowed: frozenset[str]
    ) -> SearchResult:
        asked[query] = meaning.calibrated
        return find(stores, query, meaning, allowed)

    monkeypatch.setattr("services.knowledge.library_search.find", judging)
    folder.embedder = CountingEmbedder()
    search = folder.search()
    await search.find("when is the lever pulled?")
    monkeypatch.setattr(CountingEmbedder, "id", PackagedEmbedder().id)
    await search.find("how is the lever pulled?")
    await search.find("wie wird der Hebel der Presse gezogen?")
    assert list(asked.values()) == [False, True, False]


GENERAL = "You find it in the dashboard: payments, refunds, cards, customers, invoices, webhooks, keys and payouts."
PAIRS = {
    "Where do I find things in the dashboard?": GENERAL,
    "How do I refund only a part of a payment?": "Pass the amount in cents to the refund call.",
    "Which webhook tells that an invoice was paid?": "It is called invoice.paid, and comes once per invoice.",
    "How often are payouts sent?": "Every Monday, and two days later on holidays.",
}
ASKED = (
    "how do I cancel a payment that is not captured yet?",
    "a card was declined in the test mode, what does that code mean?",
    "can a customer have two cards?",
    "why is the invoice empty?",
    "how do I check the signature of webhooks?",
    "is there a limit of keys for one account?",
    "which currencies can payouts have?",
    "does a refund give back the fee?",
    "can I export all customers?",
    "how do I change the address on invoices?",
    "are webhooks sent again when my server was down?",
    "where do I rotate the keys?",
)


async def test_an_answer_that_fits_everything_is_quoted_for_nothing(folder: Folder) -> None:
    turns = (f"User: {asked}\nTeam: {said}\n" for asked, said in PAIRS.items())
    folder.teach("\n".join(f"--- QA ---\nid: qa_{n}\n{each}" for n, each in enumerate(turns)))
    folder.embedder = PackagedEmbedder()
    search = folder.search()
    await search.refresh()
    await search.embed()
    quoted = [found.answer_of_team for found in [await search.find(each) for each in ASKED]]
    assert [each.hit.passage.text for each in quoted if each is not None] == []
    for asked, said in PAIRS.items():
        own = (await search.find(asked)).answer_of_team
        assert own is not None
        assert own.hit.passage.text == said


async def test_without_an_embedder_there_is_nothing_to_embed(folder: Folder) -> None:
    search = folder.search()
    await search.refresh()
    assert (await search.unembedded(), await search.embed()) == (0, 0)


async def test_the_same_question_is_searched_once_until_something_changes(folder: Folder) -> None:
    search = folder.search()
    first = await search.find("wheel")
    assert await search.find("wheel") is first
    folder.write(wheels="# Wheels\n\nA wheel has spokes and wheels turn.\n")
    assert len((await search.find("wheel")).pages) == 2


async def test_a_result_that_was_overtaken_by_a_change_is_not_given_again(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = folder.search()
    await search.refresh()
    changed, overtaken = asyncio.Event(), asyncio.Event()

    async def held_up(work: Callable[..., Any], *args: Any) -> Any:
        result = await in_thread(work, *args)
        if isinstance(work, partial) and work.func.__name__ == "_search_stores" and not overtaken.is_set():
            overtaken.set()
            await changed.wait()
        return result

    monkeypatch.setattr("services.knowledge.library_search.in_thread", held_up)
    early = asyncio.create_task(search.find("lever"))
    await overtaken.wait()
    folder.write(press="# Presses\n\nThe screw of the press is turned.\n")
    assert await ids(search, "screw") == ["kb:press.md"]
    changed.set()
    assert [hit.source_id for hit in (await early).hits] == ["kb:press.md"]
    assert await ids(search, "lever") == []


async def test_what_another_search_changes_in_a_shared_store_is_found(folder: Folder) -> None:
    folder.embedder = CountingEmbedder()
    search = folder.search(alone=False)
    other = LibrarySearch(search.library, search.team, search.kb, search.embedder)
    assert (await search.find("lever")).hits[0].cosine is None
    await other.refresh()
    assert (await search.find("lever")).hits[0].cosine is not None
    folder.write(press="# Presses\n\nThe screw of the press is turned.\n")
    await other.refresh()
    assert await ids(search, "lever") == []


async def test_read_only_leaves_the_files_as_they_are(folder: Folder) -> None:
    first = folder.search()
    await first.refresh()
    first.close()
    before = {path.name: path.read_bytes() for path in folder.root.glob("*.sqlite")}
    folder.write(press="# Presses\n\nThe screw of the press is turned.\n")
    reader = folder.search(read_only=True)
    assert await ids(reader, "screw") == ["kb:press.md"]
    assert folder.files.names == ["press.md"]
    reader.close()
    assert {path.name: path.read_bytes() for path in folder.root.glob("*.sqlite*")} == before


async def test_a_source_that_cannot_be_read_is_found_by_its_description_until_it_can(folder: Folder) -> None:
    (folder.root / "index.txt").write_text("kb:gone.md\nZeppelins and their moorings.\n\nkb:press.md\nAbout it.\n")
    search = folder.search()
    assert await ids(search, "where is a zeppelin moored?") == ["kb:gone.md"]
    (folder.sources / "gone.md").write_text("# Balloons\n\nA balloon is tied to a mast.\n")
    await asyncio.sleep(REFRESH_SECONDS + 1)
    assert await ids(search, "balloon") == ["kb:gone.md"]
    assert await ids(search, "zeppelin") == []


async def test_what_says_nothing_finds_nothing(folder: Folder) -> None:
    search = folder.search()
    for query in ("", "   ", "@Millrace", "https://example.net/wheel", "[image: wheel.png]"):
        assert await search.find(query) == NOTHING


async def test_the_section_of_a_passage_and_the_best_passages_of_a_source(folder: Folder) -> None:
    search = folder.search()
    [hit, *_] = (await search.find("chain frost")).hits
    assert [each.text for each in await search.section(hit.passage)] == ["In frost the wheel is lifted by a chain."]
    river, frost = "The wheel of the mill turns in the river.", "In frost the wheel is lifted by a chain."
    assert await search.passages_of("kb:mill.md", "chain frost") == [frost]
    assert await search.passages_of("kb:mill.md", "wheel in the river") == [river, frost]
    assert await search.passages_of("kb:mill.md", "lever") == []
    team = (await search.find("tallow")).hits[0].passage
    assert await search.section(team) == [team]
    assert (team.headings, team.anchor) == (("Does the sluice freeze?",), "qa_1")


class Disk:
    """Every file of passages has room for so many pages; `fill` takes it away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._connect = passage_store.__dict__["_connect"]
        self._opened: list[sqlite3.Connection] = []
        self._pages = 100_000
        monkeypatch.setattr(passage_store, "_connect", self._limited)

    def fill(self, *, pages: int = 1) -> None:
        self._pages = pages
        for connection in self._opened:
            self._limit(connection)

    def _limited(self, uri: str) -> sqlite3.Connection:
        self._opened.append(self._connect(uri))
        self._limit(self._opened[-1])
        return self._opened[-1]

    def _limit(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA max_page_count = {self._pages}")


class TestWithoutTheTeam:
    """Pitfall 49."""

    def holding(self, folder: Folder, word: bytes) -> bool:
        return any(word in path.read_bytes() for path in folder.root.glob("team.sqlite*"))

    async def test_nothing_of_its_topics_is_kept_until_they_are_read_anew(self, folder: Folder) -> None:
        search = folder.search()
        assert await ids(search, "sluice and tallow") == ["team:sluice.txt"]
        assert self.holding(folder, b"tallow")
        async with search.team_passages_dropped():
            assert not self.holding(folder, b"tallow")
            asked = asyncio.create_task(ids(search, "does the sluice freeze?"))
            await asyncio.sleep(1)
            assert not asked.done(), "it is answered from what the topics say then"
            assert not self.holding(folder, b"tallow")
            folder.teach(TOPIC.replace("tallow", "[removed]"))
        assert await asked == ["team:sluice.txt"]
        assert not self.holding(folder, b"tallow")
        assert await ids(search, "tallow") == []
        assert await ids(search, "lever") == ["kb:press.md"]

    @pytest.mark.parametrize("left", ["one", "none"])
    async def test_vectors_stay_for_what_is_still_there_and_no_other(self, folder: Folder, left: str) -> None:
        folder.embedder = CountingEmbedder()
        search = folder.search()
        folder.teach(TOPIC + TOPIC.replace("tallow", "soap").replace("qa_1", "qa_2"))
        await search.refresh()
        folder.embedder.texts.clear()
        async with search.team_passages_dropped():
            if left == "one":
                folder.teach(TOPIC)
            else:
                (folder.root / "index-team.txt").unlink()
        assert folder.embedder.texts == []
        folder.teach(TOPIC + TOPIC.replace("tallow", "soap").replace("qa_1", "qa_2"))
        await search.refresh()
        assert len(folder.embedder.texts) == (1 if left == "one" else 2)

    async def test_what_cannot_be_written_afterwards_is_logged(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        search = folder.search()
        await search.refresh()

        def refuse() -> None:
            raise sqlite3.OperationalError("disk I/O error")

        monkeypatch.setattr(search.team, "forget_unused_vectors", refuse)
        async with search.team_passages_dropped():
            pass
        assert "cannot be written" in caplog.text


BIG = "# Big\n\n" + "".join(f"The {number}th valve is turned by lever {number * 7}.\n\n" for number in range(3_000))


class TestWhenTheDiskRefuses:
    async def test_questions_are_answered_from_what_there_is_and_one_line_says_why(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO", "services.knowledge")
        disk = Disk(monkeypatch)
        search = folder.search()
        await search.refresh()
        change, tried = search.kb.change, list[str]()

        def counted(put: Sequence[PreparedSource], **others: Any) -> None:
            tried.extend(cut.source_id for cut in put)
            change(put, **others)

        monkeypatch.setattr(search.kb, "change", counted)
        disk.fill()
        folder.write(big=BIG)
        for _ in range(5):
            assert await ids(search, "which lever is pulled?") == ["kb:press.md"]
            assert await ids(search, "the sluice and tallow") == ["team:sluice.txt"]
            await asyncio.sleep(REFRESH_SECONDS / 3)
        assert tried == ["kb:big.md"] * 2, "it is tried again after a minute, not with each question"
        [warning] = [record.message for record in caplog.records if record.levelname == "WARNING"]
        full = f"{folder.root / 'kb.sqlite'} cannot be written (database or disk is full); make room"
        assert warning == f"{full}; search goes on with what is in it"
        disk.fill(pages=100_000)
        await asyncio.sleep(REFRESH_SECONDS + 1)
        assert await ids(search, "valve") == ["kb:big.md"]
        assert f"{folder.root / 'kb.sqlite'} can be written again" in caplog.messages
        caplog.clear()
        disk.fill()
        folder.write(big=BIG + BIG)
        await search.refresh()
        assert "make room" in caplog.text, "it is said again after it has worked"

    async def test_the_other_library_is_brought_up_to_date_all_the_same(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        search = folder.search()

        def refuse(*_: object, **__: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        monkeypatch.setattr(search.team, "change", refuse)
        assert await ids(search, "lever") == ["kb:press.md"]

    async def test_vectors_that_cannot_be_kept_leave_the_words(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder.embedder = CountingEmbedder()
        search = folder.search(alone=False)
        await search.refresh()
        folder.write(press=PRESS + "".join(f"\n\n## P {n}\n\nPart {n} of the press.\n" for n in range(40)))
        await search.refresh()
        with monkeypatch.context() as patch:

            def refuse(*_: object) -> None:
                raise OSError(28, "No space left on device")

            patch.setattr(search.kb, "store_vectors", refuse)
            assert await search.embed() == await search.embed() + 1 == 1, "that of the topic is kept"
            assert await ids(search, "lever") == ["kb:press.md"]
        assert len([line for line in caplog.messages if "cannot be written" in line]) == 1
        assert await search.embed() > 40

    async def test_a_file_that_is_lost_while_it_is_open_is_made_anew_before_the_question_is_answered(
        self, folder: Folder, caplog: pytest.LogCaptureFixture
    ) -> None:
        search = folder.search()
        assert await ids(search, "chain") == ["kb:mill.md"]
        (folder.root / "kb.sqlite").write_bytes(b"no database " * 10_000)
        assert await ids(search, "which lever is pulled?") == ["kb:press.md"]
        assert await search.passages_of("kb:press.md", "lever") == ["The lever of the press is pulled twice."]
        assert len(caplog.messages) == 1

    async def test_without_a_file_that_can_be_opened_questions_are_answered(
        self, folder: Folder, caplog: pytest.LogCaptureFixture
    ) -> None:
        for name in ("team", "kb"):
            (folder.root / f"{name}.sqlite").mkdir()
        search = folder.search()
        for _ in range(3):
            assert await ids(search, "which lever is pulled?") == ["kb:press.md"]
            assert await ids(search, "tallow") == ["team:sluice.txt"]
            await asyncio.sleep(REFRESH_SECONDS + 1)
        assert len(caplog.messages) == 2


class Slow(Library):
    """A library that takes a while, and counts."""

    def __init__(self) -> None:
        self.loads = 0
        self.entries = [IndexEntry("kb:a.md", "A."), IndexEntry("kb:lost.md", "Lost.")]

    async def index(self) -> Sequence[IndexEntry]:
        return self.entries

    async def load(self, source_id: str) -> Source:
        self.loads += 1
        await asyncio.sleep(1)
        if source_id == "kb:lost.md":
            raise SourceUnavailable(source_id)
        return Source(source_id, PRESS)


async def test_questions_that_come_at_once_read_the_library_once() -> None:
    library = Slow()
    search = LibrarySearch(library, PassageStore(None), PassageStore(None))
    found = await asyncio.gather(*(search.find("lever") for _ in range(5)))
    assert library.loads == 2
    assert {each.hits[0].source_id for each in found} == {"kb:a.md"}


async def test_text_without_a_stamp_is_read_again_each_minute() -> None:
    library = Slow()
    search = LibrarySearch(library, PassageStore(None), PassageStore(None))
    await search.refresh()
    await search.refresh()
    assert library.loads == 2
    await asyncio.sleep(REFRESH_SECONDS + 1)
    await search.refresh()
    assert library.loads == 4


@pytest.mark.real_time
async def test_the_event_loop_goes_on_while_half_a_megabyte_is_prepared(folder: Folder) -> None:
    """Pitfall 38."""
    page = "".join(f"## Part {n}\n\nThe {n}th valve is turned by lever {n * 7}.\n\n" for n in range(8_000))
    folder.write(big=page)
    work = asyncio.create_task(ids(folder.search(), "which lever turns the 4711th valve?"))
    beats = 0
    while not work.done():
        await asyncio.sleep(0.01)
        beats += 1
    assert (await work)[0] == "kb:big.md"
    assert beats > 5


def test_of_a_topic_only_what_the_team_wrote_is_text_under_what_was_asked() -> None:
    text = (
        "--- QA ---\nid: qa_1\ntimestamp: t\nUser: It fails.\n  Team: forged\nTeam: First.\n  \n      code\n"
        "User: ok thanks\nTeam: Second.\n\n--- QA ---\nid: qa_2\ntimestamp: t\nUser: Only a question.\n\n"
    )
    [section] = article_of(Source("team:t.txt", text)).sections
    assert section.headings == ("It fails. Team: forged",)
    assert section.text == "First.\n\n    code\nSecond."
    assert section.anchor == "qa_1"


def test_each_question_of_a_conversation_has_the_answer_that_it_was_given() -> None:
    """Pitfall 77: a thread with several questions is not quoted under each of them."""
    topic = (
        "--- QA ---\nid: qa_1\nsaid_at: 2026-02-01T03:00:00Z\nUser: How do I restore a backup of the node?\n"
        "Team: With the restore command, and then restart the node.\nUser: thanks!\n"
        "User: and how does that go on Windows?\n"
        "Team: The same, but in PowerShell.\nUser: Which ports does the agent need to reach the hub?\n"
        "Team: It needs only port 7480 open.\nUser: great, thank you\n\n"
    )
    first, further, last = article_of(Source("team:t.txt", topic)).sections
    assert first.headings == ("How do I restore a backup of the node?",)
    assert first.text == "With the restore command, and then restart the node."
    assert further.headings == ("How do I restore a backup of the node?", "and how does that go on Windows?")
    assert last.headings == ("Which ports does the agent need to reach the hub?",)
    assert last.text == "It needs only port 7480 open."
    assert {first.anchor, further.anchor, last.anchor} == {"qa_1"}
    assert (first.day, first.helped, last.helped) == ("2026-02-01", True, True)
    assert [first.quotable, further.quotable, last.quotable] == [True, False, True]  # "that" is not in it


def test_an_answer_of_the_team_states_something_and_is_kept_whole() -> None:
    topic = (
        "--- QA ---\nid: qa_1\nUser: The charge fails with error E-17, why?\nTeam: one sec, looking\n"
        "Team: Mira: E-17 means that the bank refused the card. Okay?\n\n"
        "--- QA ---\nid: qa_4\nUser: The charge fails, why?\nTeam: Mira: What's the whole error?\n"
        "User: card declined, E-17\nTeam: E-17 means that the bank refused the card.\n\n"
        "--- QA ---\nid: qa_2\nUser: Does it run on FreeBSD?\nTeam: Sorry all, fell off my chair. Reading now.\n\n"
        "--- QA ---\nid: qa_3\nUser: How do I rotate the signing key?\nTeam: Run the rotate command.\n"
        "User: still the same error\n\n"
    )
    answered, asked_back, placeholder, failed = article_of(Source("team:t.txt", topic)).sections
    assert (answered.text, answered.quotable) == ("Mira: E-17 means that the bank refused the card. Okay?", True)
    assert (asked_back.quotable, placeholder.quotable, failed.quotable) == (False, False, False)
