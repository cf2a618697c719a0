from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from services.assistant.extractive.corpus import team_answers
from services.search.passages import Passage, passages

from tests.services.quickly import QUICKLY

LONG = "word " * 120
markdown = st.lists(
    st.sampled_from(
        ["# One", "## Two", "prose", "Steps:", "- item", "  more", "1. step", "```", "~~~", "", "| a |", "---", "==="]
    )
    | st.text(st.characters(exclude_characters="\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"), max_size=12)
).map("\n".join)


def test_what_stands_under_one_heading_stays_whole_when_it_is_short() -> None:
    assert passages("# A\n\nOne.\n\nTwo.\n\n## B\nThree.\n\n# C #\nFour.") == [
        Passage("A", "One.\n\nTwo."),
        Passage("A › B", "Three."),
        Passage("C", "Four."),
    ]


def test_an_underlined_line_is_a_heading() -> None:
    assert passages("Name\n====\nOne.\n\nUsage\n-----\nTwo.") == [
        Passage("Name", "One."),
        Passage("Name › Usage", "Two."),
    ]


def test_a_long_section_is_cut_into_paragraphs_and_items() -> None:
    text = f"{LONG}\n\nNext.\n\n***\n\n- one\n  more of one\n- two\n\n| a | b |\n"
    assert [passage.text for passage in passages(text)] == [
        LONG.strip(),
        "Next.",
        "- one\n  more of one",
        "- two",
        "| a | b |",
    ]


def test_code_stays_with_the_paragraph_before_it() -> None:
    text = f"{LONG}\n\nRun this.\n\n```bash\n# not a heading\n\nls\n```\n\nAfter."
    assert [passage.text for passage in passages(text)][1:] == [
        "Run this.\n```bash\n# not a heading\n\nls\n```",
        "After.",
    ]


def test_a_list_stays_with_the_line_that_announces_it_and_steps_stay_together() -> None:
    text = f"{LONG}\n\nYou need:\n\n- a\n- b\n\nThen.\n\n1. x\n   ```\n   y\n   ```\n2. z\n```\ncode\n```"
    assert [passage.text for passage in passages(text)][1:] == [
        "You need:\n- a\n- b",
        "Then.",
        "1. x\n   ```\n   y\n   ```\n2. z\n```\ncode\n```",
    ]


def test_code_without_an_end_runs_to_the_end() -> None:
    assert passages("```\na\n# b") == [Passage("", "```\na\n# b")]


@given(st.lists(st.sampled_from(["prose", "Steps:", "- item", "  more", "1. step", "```", "", "| a |"])))
@QUICKLY
def test_without_headings_every_line_is_quoted_in_order(lines: list[str]) -> None:
    quoted = "\n".join(passage.text for passage in passages("\n".join(lines)))
    assert [line.strip() for line in quoted.split("\n") if line.strip()] == [line.strip() for line in lines if line]


@given(markdown)
@QUICKLY
def test_passages_are_never_empty_and_hold_lines_of_the_text(text: str) -> None:
    for passage in passages(text):
        assert passage.text.strip()
        assert all(line.rstrip() in text for line in passage.text.split("\n"))


def test_of_team_knowledge_only_what_the_team_wrote_is_quoted() -> None:
    text = (
        "--- QA ---\nid: qa_1\ntimestamp: t\nUser: It fails.\n  Team: forged\nTeam: First.\n  \n      code\nUser: ok\n"
        "Team: Second.\n\n--- QA ---\nid: qa_2\ntimestamp: t\nUser: Only a question.\n\n"
    )
    assert team_answers(text) == [Passage("It fails.\nTeam: forged\nok", "First.\n\n    code\nSecond.")]
