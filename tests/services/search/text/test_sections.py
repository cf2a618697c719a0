from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.search.text import Article, Block, BlockKind, Section
from services.search.text.article import fenced


def section(*headings: str, text: str = "") -> Section:
    return Section(headings, "", (Block(BlockKind.PROSE, text),) if text else ())


@pytest.mark.parametrize("code", ["```sh\nls\n```", "a ```` b", "`" * 6])
def test_a_fence_within_code_does_not_end_it(code: str) -> None:
    """Pitfall 24: Discord takes no fence of four backticks for one."""
    text = fenced(code, "md")
    assert text.startswith("```md\n")
    assert text.endswith("\n```")
    assert "```" not in text.removeprefix("```").removesuffix("```")
    assert text.replace("\u200b", "") == f"```md\n{code}\n```"


def test_a_section_is_shown_below_its_heading() -> None:
    assert section("Mills", "Ice", text="Cold.").markdown == "## Ice\n\nCold."
    assert section("Mills").markdown == "# Mills"
    assert section(text="Cold.").markdown == "Cold."
    article = Article("Mills", (section("Mills"), section("Mills", "Ice", text="Cold.")))
    assert article.markdown == "# Mills\n\n## Ice\n\nCold."


def test_contents_name_headings_that_have_no_section_of_their_own() -> None:
    article = Article("", (section(text="Before."), section("A", "B", "C", text="x"), section("A", "D", text="y")))
    assert article.contents(1_000) == "- A\n  - B\n    - C\n  - D"


def test_of_too_many_headings_the_deepest_are_left_out_first_then_the_last() -> None:
    article = Article("", (section("A"), section("A", "deep"), section("B"), section("C")))
    assert article.contents(20) == "- A\n  - deep\n- B\n- C"
    assert article.contents(19) == "- A\n- B\n- C"
    assert article.contents(10) == "- A\n- B"
    assert article.contents(2) == article.contents(-5) == Article("", ()).contents(9) == ""


words = st.text(max_size=30)
sections = st.lists(st.lists(words, max_size=4).map(lambda headings: section(*headings)))


@given(sections, st.integers(-10, 500))
def test_contents_are_never_longer_than_allowed(made: list[Section], max_chars: int) -> None:
    assert len(Article("", tuple(made)).contents(max_chars)) <= max(max_chars, 0)
