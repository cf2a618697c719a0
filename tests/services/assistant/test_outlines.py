from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.assistant.describing import has_no_content, plain_article, summary_text
from services.search.text.article import Article, Block, BlockKind, Section


def section(*headings: str, text: str = "", kind: BlockKind = BlockKind.PROSE) -> Section:
    return Section(headings, "", (Block(kind, text),) if text else ())


def page(*texts: str, kind: BlockKind = BlockKind.PROSE) -> Article:
    return Article("Title", tuple(section("Title", text=text, kind=kind) for text in texts))


def test_a_short_article_is_shown_whole() -> None:
    article = Article("Node", (section("Node", text="About."), section("Node", "Ports", text="Open 7480.")))
    assert summary_text(article, 1000) == "# Node\n\nAbout.\n\n## Ports\n\nOpen 7480."


def test_of_a_long_one_all_headings_and_the_beginning_of_each_section_are_shown() -> None:
    """Pitfall 54: not only its beginning."""
    sections = [section("Node", f"Part {number}", text=f"begins-{number} " + "word " * 2000) for number in range(20)]
    text = summary_text(Article("Node", tuple(sections)), 12_000)
    assert 10_000 < len(text) <= 12_000
    assert text.startswith("Outline:\n- Node\n  - Part 0\n  - Part 1\n")
    assert all(f"begins-{number} " in text for number in range(20))


def test_long_sections_have_longer_beginnings() -> None:
    short, long = section("A", "Short", text="s " * 1500), section("A", "Long", text="l " * 12_000)
    text = summary_text(Article("A", (short, long)), 6_000)
    assert 5 < text.count("l ") / text.count("s ") < 11


def test_of_too_many_headings_the_deepest_are_left_out_first() -> None:
    deep = [section("A", f"B{top}", f"C{top}-{sub}", text="x" * 50) for top in range(20) for sub in range(40)]
    text = summary_text(Article("A", tuple(deep)), 2_000)
    assert "Outline:\n- A\n  - B0\n  - B1\n" in text
    assert "    - C0-1" not in text.partition("Beginnings")[0]
    assert len(text) <= 2_000


def test_of_too_many_sections_the_longest_are_begun() -> None:
    many = [section("A", f"Part {number}", text="tiny text") for number in range(500)]
    text = summary_text(Article("A", (*many, section("A", "Big", text="big " * 900))), 3_000)
    assert "## Big\n\nbig big" in text


def test_plain_text_has_a_section_for_each_paragraph() -> None:
    text = summary_text(plain_article("\n\n\n".join(f"begins-{number} " + "word " * 400 for number in range(5))), 2_000)
    assert all(f"begins-{number} " in text for number in range(5))
    assert len(text) <= 2_000


words = st.text(max_size=30)
titles = st.tuples() | st.tuples(words) | st.tuples(words, words, words)
block = st.builds(Block, st.just(BlockKind.PROSE), st.text(min_size=1, max_size=200))
articles = st.lists(st.builds(Section, titles, st.just(""), st.tuples() | st.tuples(block) | st.tuples(block, block)))


@given(articles, st.integers(100, 2000))
def test_it_is_never_longer_than_allowed(sections: list[Section], max_chars: int) -> None:
    assert len(summary_text(Article("", tuple(sections)), max_chars)) <= max_chars


@pytest.mark.parametrize(
    "article",
    [
        Article("", ()),
        Article("Guides", (section("Guides"),)),
        page("- [Install](a.md)\n- [Use](b.md)\n- <https://x.example>", kind=BlockKind.LIST),
        page("See [the guide to installing everything](a.md) and [the whole reference](b.md)."),
    ],
)
def test_titles_contents_and_links_say_nothing(article: Article) -> None:
    assert has_no_content(article)


@pytest.mark.parametrize(
    "article",
    [
        page("Press the button for ten seconds."),
        page("```\nuv sync\n```", kind=BlockKind.CODE),
        page("- [Install](a.md): run the installer and restart the machine afterwards", kind=BlockKind.LIST),
        page("A long text. " * 30 + "[link](x) " * 100),
    ],
)
def test_prose_and_code_say_something(article: Article) -> None:
    assert not has_no_content(article)
