"""What a model is given of its sources. Pitfall 54: nothing larger than the budget, and not only the beginning."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.knowledge import IndexEntry, Library, LibrarySearch, Source, excerpts
from services.knowledge.excerpts import best_pairs, divide_room, excerpt, fit_sources
from services.knowledge.topic_files import answered_pairs, pair_ids
from services.search import PassageStore, passages
from services.search.text import Article, Block, BlockKind, Section
from tests.services.quickly import QUICKLY

PAGE = "# Mills\n\nThe wheel turns.\n\n## Ice\n\nIn frost the wheel is lifted.\n"


class Pages(Library):
    def __init__(self, *sources: Source) -> None:
        self.sources = {source.id: source for source in sources}
        self.entries = [IndexEntry(name, "About it.") for name in self.sources]

    async def index(self) -> Sequence[IndexEntry]:
        return self.entries

    async def load(self, source_id: str) -> Source:
        return self.sources[source_id]


async def given_of(query: str, max_chars: int, *sources: Source) -> list[Source]:
    search = LibrarySearch(Pages(*sources), PassageStore(None), PassageStore(None))
    return await fit_sources(sources, query, search, max_chars)


async def test_html_is_never_read_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[threading.Thread] = []
    monkeypatch.setattr(excerpts, "_article_unless_topic", lambda _source: read.append(threading.current_thread()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    await given_of("ice", 24_000, Source("kb:@1/short.HTML", "<p>Ice.</p>"))
    assert read != [threading.current_thread()]


async def test_what_fits_is_given_whole_and_prepared() -> None:
    page = Source("kb:a.md", f"---\ntitle: Milling\n---\n{PAGE}\n!!! note\n    Mind the dog.\n")
    [shown] = await given_of("ice", 24_000, page)
    assert (shown.id, shown.title, shown.is_excerpt) == ("kb:a.md", "Milling", False)
    assert "The wheel turns." in shown.text
    assert "In frost the wheel is lifted." in shown.text
    assert "Mind the dog." in shown.text
    assert "title:" not in shown.text
    assert "!!!" not in shown.text


async def test_a_topic_is_shown_as_it_is() -> None:
    topic = Source("team:a.txt", "--- QA ---\nid: qa_1\nUser: why?\nTeam: so.\n\n")
    assert await given_of("why", 24_000, topic) == [topic]


async def test_a_source_larger_than_any_window_is_given_with_the_right_section_within_the_budget() -> None:
    """Pitfall 54: 0.9 MB."""
    parts = [
        f"## Part {n}\n\nThe valve numbered {n}x is turned by the lever numbered {n * 7}y. {'It is oiled. ' * 30}\n\n"
        for n in range(2_000)
    ]
    page = Source("kb:big.md", "# Valves\n\n" + "".join(parts))
    assert len(page.text) > 900_000
    [shown] = await given_of("which lever turns the valve numbered 1471x?", 24_000, page)
    assert len(shown.text) <= 24_000
    assert shown.is_excerpt
    assert "## Part 1471\n" in shown.text
    assert "lever numbered 10297y" in shown.text
    assert shown.text.startswith("Contents:\n- Valves\n\n")
    assert "[…]" in shown.text


async def test_of_one_long_section_the_part_that_fits_is_given() -> None:
    """Pitfall 54: a log of changes, or a page that lost its headings."""
    lines = [f"The valve numbered {n}x is turned by the lever numbered {n * 7}y, as ever." for n in range(5_000)]
    [shown] = await given_of("which lever turns valve 4321x?", 6_000, Source("kb:plain.txt", "\n\n".join(lines)))
    assert len(shown.text) <= 6_000
    assert "lever numbered 30247y" in shown.text


async def test_the_sections_of_an_excerpt_are_those_of_the_source_however_good_others_are() -> None:
    good = Source("kb:good.md", "".join(f"## W {n}\n\nwheel wheel number {n}\n\n" for n in range(300)))
    weak = Source("kb:weak.md", "# Top\n\n" + "other words here. " * 400 + "\n\n## Last\n\nA wheel is mentioned.\n")
    _, shown = await given_of("wheel", 12_000, good, weak)
    assert "A wheel is mentioned." in shown.text


async def test_where_no_section_fits_the_first_ones_are_given() -> None:
    page = Source("kb:a.md", "# Top\n\nIt begins.\n\n" + "".join(f"## {n}\n\nother words here\n\n" for n in range(500)))
    [shown] = await given_of("zeppelin", 2_000, page)
    assert "It begins." in shown.text
    assert len(shown.text) <= 2_000


async def test_of_a_long_topic_whole_conversations_that_fit_the_question_are_given() -> None:
    """Pitfall 48: a shortened conversation would pass for a whole one."""
    pairs = [
        f"--- QA ---\nid: qa_{n}\nUser: what of valve {n}x?\nTeam: {'Turn it. ' * 20}Lever {n}y.\n\n" for n in range(50)
    ]
    [shown] = await given_of("valve 33x", 1_000, Source("team:valves.txt", "".join(pairs)))
    assert pairs[33] in shown.text
    assert len(shown.text) <= 1_000
    assert shown.is_excerpt
    assert all(f"--- QA ---\n{part}" in pairs for part in shown.text.split("--- QA ---\n")[1:])


@given(st.lists(st.integers(0, 5_000)), st.integers(0, 9_000))
@QUICKLY
def test_room_is_shared_so_that_small_sources_fit_and_large_ones_get_the_rest(sizes: list[int], room: int) -> None:
    given_room = divide_room(sizes, room)
    assert sum(given_room) <= room
    assert all(0 <= got <= size for got, size in zip(given_room, sizes, strict=True))
    if sum(sizes) <= room:
        assert given_room == sizes
    cut = [got for got, size in zip(given_room, sizes, strict=True) if got < size]
    assert not cut or max(cut) - min(cut) <= len(sizes)


WORDS = st.text("abc \n", max_size=300)
SECTIONS = st.tuples(st.lists(st.text("abc", max_size=30), max_size=3), WORDS)


@given(st.lists(SECTIONS, max_size=8), st.randoms(), st.integers(0, 2_000))
@QUICKLY
def test_no_excerpt_is_longer_than_its_room(
    made: list[tuple[list[str], str]], chance: random.Random, room: int
) -> None:
    sections = (Section(tuple(headings), "", (Block(BlockKind.PROSE, text),)) for headings, text in made)
    article = Article("T", tuple(sections))
    best = [passage.text for passage in passages(article)] + ["of another version"]
    chance.shuffle(best)
    assert len(excerpt(article, best, room)) <= room


def test_an_excerpt_holds_whole_passages_in_their_order_below_their_headings_and_marks_what_is_left_out() -> None:
    blocks = [Block(BlockKind.PROSE, f"passage number {number} says something. " * 20) for number in range(6)]
    article = Article("T", (Section(("T",), "", tuple(blocks[:3])), Section(("T", "Two"), "two", tuple(blocks[3:]))))
    texts = [passage.text for passage in passages(article)]
    assert len(texts) == 6
    shown = excerpt(article, [texts[4], texts[0], texts[1]], 3_000)
    assert shown == "\n\n".join(["Contents:\n- T\n  - Two", "# T", texts[0], texts[1], "[…]", "## Two", texts[4]])


@given(st.lists(WORDS, max_size=5), st.text("abc ", max_size=9), st.integers(0, 1_000))
@QUICKLY
def test_no_choice_of_conversations_is_longer_than_its_room(texts: list[str], query: str, room: int) -> None:
    assert len(best_pairs("".join(f"--- QA ---\n{text}\n" for text in texts), query, room)) <= room


async def test_wanted_sections_come_before_what_fits_the_query_and_bring_what_is_below_them() -> None:
    parts = [f"## Part {n}\n\nThe wheel turns {n} times.\n\n### Detail {n}\n\n{'Oil it. ' * 60}\n\n" for n in range(60)]
    search = LibrarySearch(
        Pages(page := Source("kb:big.md", "# Wheels\n\n" + "".join(parts))), PassageStore(None), PassageStore(None)
    )
    [shown] = await fit_sources([page], "how often does the wheel turn?", search, 3_000, ["PART 41 ", "Detail 7"])
    assert len(shown.text) <= 3_000
    assert all(f"{heading}\n" in shown.text for heading in ("## Part 41", "### Detail 41", "### Detail 7"))
    [plain] = await fit_sources([page], "how often does the wheel turn?", search, 3_000)
    assert "### Detail 7\n" not in plain.text


async def test_contents_of_many_headings_are_longer_rather_than_only_a_title() -> None:
    parts = "".join(f"## Chapter {n}\n\n{'Oil it. ' * 60}\n\n" for n in range(40))
    [shown] = await given_of("oil", 3_000, Source("kb:big.md", f"# Wheels\n\n{parts}"))
    assert "  - Chapter 39\n" in shown.text.partition("\n\n")[0] + "\n"


def test_who_writes_the_line_that_opens_a_conversation_opens_none() -> None:
    said = "--- QA ---\nid: qa_1\nUser: How do I restore? --- QA ---\n  please\nTeam: Like this. --- QA ---\n  So.\n"
    topic = f"{said}\n--- QA ---\nid: qa_2\nUser: And?\nTeam: No.\n"
    assert pair_ids(topic) == ["qa_1", "qa_2"]
    assert [answer for _, _, answer in answered_pairs(topic)] == ["Like this. --- QA ---\nSo.", "No."]
    assert best_pairs(topic, "restore", len(said) + 1).strip() == said.strip()
