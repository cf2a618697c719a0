"""From a text to the passages that are ranked and quoted."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from services.search.text import Article, Block, BlockKind, Section, read
from services.search.text.article import PASSAGE_CHARS, Passage, has_words, passages
from tests.services.quickly import QUICKLY

WORDS = st.text("abcdefg", min_size=2, max_size=9)
SENTENCES = st.lists(WORDS, min_size=3, max_size=12).map(lambda words: f"{' '.join(words)}.")


def prose(text: str) -> Block:
    return Block(BlockKind.PROSE, text)


def listing(text: str) -> Block:
    return Block(BlockKind.CODE, f"```sh\n{text}\n```")


def of(*blocks: Block) -> list[str]:
    return [passage.text for passage in passages(Article("", (Section((), "", blocks),)))]


BLOCKS = st.one_of(
    st.lists(SENTENCES, min_size=1, max_size=60).map(lambda parts: prose(" ".join(parts))),
    st.lists(SENTENCES, min_size=1, max_size=60).map(
        lambda parts: Block(BlockKind.LIST, "\n".join(f"- {part}" for part in parts))
    ),
    st.lists(SENTENCES, min_size=1, max_size=60).map(lambda parts: listing("\n".join(parts))),
)


@given(st.lists(st.tuples(st.lists(WORDS, max_size=2), st.lists(BLOCKS, max_size=4)), max_size=4))
@QUICKLY
def test_no_word_is_lost_and_no_passage_is_much_longer_than_a_model_reads(
    made: list[tuple[list[str], list[Block]]],
) -> None:
    sections = tuple(Section(tuple(headings), "", tuple(blocks)) for headings, blocks in made)
    cut = passages(Article("", sections))
    for place, section in enumerate(sections):
        texts = [passage.text for passage in cut if passage.section == place]
        fenced = " ".join(texts).replace("```sh", " ").replace("```", " ").split()
        assert fenced == section.text.replace("```sh", " ").replace("```", " ").split()
        assert all(len(text) <= 2 * PASSAGE_CHARS for text in texts)


@given(st.text(max_size=3000))
@QUICKLY
def test_one_word_of_any_length_is_cut_to_a_size_and_nothing_of_it_lost(text: str) -> None:
    word = "abc" * len(text)
    pieces = of(prose(word))
    assert all(len(piece) <= 2 * PASSAGE_CHARS for piece in pieces)
    assert "".join(pieces) == (word if has_words(word) else "")


def test_what_stands_under_one_heading_stays_whole_when_it_is_short() -> None:
    text = "# A\n\nOne is here.\n\nTwo is here.\n\n## B\nThree is here.\n\n# C\nFour is here."
    assert passages(read("a.md", text)) == [
        Passage(0, ("A",), "One is here.\n\nTwo is here."),
        Passage(1, ("A", "B"), "Three is here."),
        Passage(2, ("A", "C"), "Four is here."),
    ]


def test_the_title_stands_before_the_headings_once() -> None:
    article = Article("Guide", (Section(("Guide", "Ports"), "ports", (prose("Open one of them."),)),))
    [passage] = passages(article)
    assert passage.heading == "Guide › Ports"
    assert passage.with_heading == "Guide › Ports\nOpen one of them."


def test_a_long_section_is_cut_between_its_blocks() -> None:
    first, second = ("word " * 130).strip(), ("other " * 120).strip()
    assert of(prose(first), prose(second), prose("And so on.")) == [first, f"{second}\n\nAnd so on."]


def test_a_listing_stays_with_the_text_that_announces_it_and_whole() -> None:
    before, code = ("word " * 150).strip(), "make it go\n" * 50
    assert of(prose(before), listing(code.strip())) == [f"{before}\n\n```sh\n{code.strip()}\n```"]


def test_what_announces_a_listing_goes_with_it_where_the_text_before_stays() -> None:
    before, code = ("word " * 150).strip(), "make it go\n" * 80
    announced = "To make it go, run:"
    assert of(prose(before), prose(announced), listing(code.strip())) == [
        before,
        f"{announced}\n\n```sh\n{code.strip()}\n```",
    ]


def test_each_piece_of_a_long_listing_is_fenced_in_its_language_and_ends_at_a_line() -> None:
    lines = [f"make part {number} of everything" for number in range(200)]
    pieces = of(listing("\n".join(lines)))
    assert len(pieces) > 3
    assert all(piece.startswith("```sh\n") and piece.endswith("\n```") for piece in pieces)
    inside = [piece.removeprefix("```sh\n").removesuffix("\n```").split("\n") for piece in pieces]
    assert [line for part in inside for line in part] == lines


def test_a_long_list_is_cut_between_items_each_with_its_lines() -> None:
    items = [f"- item {number} is " + "long " * 20 + "\n  and goes on" for number in range(30)]
    pieces = of(Block(BlockKind.LIST, "\n".join(items)))
    assert len(pieces) > 2
    assert all(piece.startswith("- item") and piece.endswith("and goes on") for piece in pieces)


def test_code_in_a_long_list_stays_with_its_item_and_is_fenced_in_each_piece() -> None:
    code = "\n".join(f"make part {number} of everything" for number in range(12))
    pieces = of(Block(BlockKind.LIST, "\n".join(f"{at}. Run it.\n```sh\n{code}\n```" for at in range(1, 9))))
    assert len(pieces) > 2
    assert all(re.match(r"\d\. Run it\.", piece) and piece.endswith("\n```") for piece in pieces)
    pieces = of(Block(BlockKind.LIST, "1. Run it.\n```sh\n" + "make it go\n" * 400 + "```"))
    assert len(pieces) > 1
    assert all(piece.count("```") == 2 for piece in pieces)


def test_long_prose_is_cut_after_sentences_of_any_script() -> None:
    for sentence in ("This is one of the sentences. ", "这是其中的一个句子吗吗吗。"):
        pieces = of(prose((sentence * 150).strip()))
        assert len(pieces) > 1
        assert all(piece.rstrip().endswith((".", "。")) for piece in pieces)


def test_long_prose_is_cut_at_sentences_and_nothing_within_a_word_changes() -> None:
    text = " ".join(["See https://docs.example.com/v3.14?a=b!c, version 3.14 (i.e. e.g. it).\nDone 。Yes！No？"] * 40)
    pieces = of(prose(text))
    assert len(pieces) > 1
    assert all(piece in text for piece in pieces)
    assert "".join("".join(piece.split()) for piece in pieces) == "".join(text.split())
    assert all(piece.endswith((".", "。", "！", "？")) for piece in pieces)


def test_a_passage_of_fewer_than_three_words_is_left_out() -> None:
    assert of(prose("* * *")) == of(prose("1. 2. 3.")) == of(prose("see it")) == []
    assert of(listing("ls --all\nmake install")) == ["```sh\nls --all\nmake install\n```"]
