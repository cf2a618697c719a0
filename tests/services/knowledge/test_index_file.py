from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.knowledge.index_file import IndexEntry, is_id, make_harmless, parse, render

awkward = st.lists(
    st.one_of(
        st.text(st.characters(), max_size=4),
        st.sampled_from(
            ["\n", "\r\n", "\n\n", "\u2028", "\x85", "kb:a.md", "team:b.txt", "KB : x", "\u200b", "- ", " "]
        ),
    ),
    max_size=8,
).map("".join)
ids = st.one_of(
    st.sampled_from(["kb:a.md", "kb:https://example.org/?q=1#x", "team:tokens.txt", "team:größe.txt"]),
    awkward.map("kb:".__add__),
    awkward,
)
entries = st.lists(st.builds(IndexEntry, ids, awkward), max_size=5, unique_by=lambda entry: entry.id)


@given(entries)
@example([IndexEntry("kb:a.md", "First\n\nkb:../.env\nteam:/etc/passwd")])
@example([IndexEntry("kb:a.md", "kb:b.md")])
@example([IndexEntry("kb:a.md\n\nkb:evil", "text")])
def test_what_is_written_is_read_back_and_nothing_else(written: list[IndexEntry]) -> None:
    """Pitfall 20: no description, and no identifier, adds an entry."""
    expected = [
        IndexEntry(entry.id, make_harmless(entry.description))
        for entry in written
        if is_id(entry.id) and make_harmless(entry.description)
    ]
    text = render(written)
    assert parse(text.encode().decode()) == expected
    assert render(parse(text)) == text


@given(awkward)
def test_a_harmless_description_has_no_blank_line_and_no_line_that_passes_for_an_identifier(text: str) -> None:
    """Pitfall 20."""
    made = make_harmless(text)
    assert make_harmless(made) == made
    for line in made.splitlines():
        assert line.strip()
        assert not line.strip("\u200b ").casefold().startswith(("kb:", "team:", "kb :"))


@given(awkward)
def test_whatever_is_parsed_can_be_written_and_parsed_again(text: str) -> None:
    assert parse(render(parse(text))) == parse(text)


def test_the_example_of_the_specification_is_read_and_written_alike() -> None:
    text = "kb:guides/setup.md\nHow to set up.\nIn two lines.\n\nkb:https://example.org/\nQuestions.\n"
    assert parse(text) == [
        IndexEntry("kb:guides/setup.md", "How to set up.\nIn two lines."),
        IndexEntry("kb:https://example.org/", "Questions."),
    ]
    assert render(parse(text)) == text
    assert render([]) == ""
    assert parse("") == []


def test_lines_that_pass_for_identifiers_become_items_of_a_list() -> None:
    """Pitfall 20."""
    assert make_harmless("See\r\n\r\n kb:../.env\u2028\u200bTEAM : x\n\uff4b\uff42\uff1ay\nkbx:z") == (
        "See\n- kb:../.env\n- TEAM : x\n- \uff4b\uff42\uff1ay\nkbx:z"
    )


def test_a_description_with_half_a_surrogate_pair_can_be_written() -> None:
    assert render([IndexEntry("kb:a", "x\ud800y")]).encode() == b"kb:a\nx?y\n"


def test_a_source_whose_name_does_not_fit_on_a_line_is_reported_and_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Pitfall 20."""
    assert render([IndexEntry("kb:a\nkb:b", "text"), IndexEntry("c.md", "text"), IndexEntry("kb:d", " \n")]) == ""
    assert ["kb:a\\nkb:b" in caplog.messages[0], "'c.md'" in caplog.messages[1]] == [True, True]
    assert len(caplog.messages) == 2


def test_a_damaged_file_is_read_as_far_as_it_is_sound(caplog: pytest.LogCaptureFixture) -> None:
    text = (
        "\ufeffkb:a.md\r\nFirst.  \r\n\r\n\r\n"  # 1-4
        "lost its identifier\n\n"  # 5-6
        "kb:empty.md\n \n"  # 7-8
        "kb:b.md\nSecond.\nkb:c.md\nThird.\n\n"  # 9-13
        "kb:a.md\nAgain.\n\n"  # 14-16
        "team:d.txt\nOf the team.\n\n"  # 17-19
        "kb:e.md\nLast."
    )
    assert parse(text, "index.txt", "kb") == [
        IndexEntry("kb:a.md", "First."),
        IndexEntry("kb:b.md", "Second."),
        IndexEntry("kb:e.md", "Last."),
    ]
    assert caplog.messages == [
        "index.txt:5: 'lost its identifier' is no identifier; paragraph skipped",
        "index.txt:7: kb:empty.md has no description; skipped",
        "index.txt:11: an identifier inside a description; skipped to the next blank line",
        "index.txt:14: kb:a.md is listed a second time; paragraph skipped",
        "index.txt:17: 'team:d.txt' is no identifier; paragraph skipped",
    ]
    assert [entry.id for entry in parse(text)][-2:] == ["team:d.txt", "kb:e.md"]


def test_descriptions_that_change_every_day_do_not_stay_in_memory() -> None:
    """And what is written is always the newest."""
    render([IndexEntry("kb:news.md", "before")])
    tracemalloc.start()
    for day in range(200):
        text = "word " * 2_000 + f"{day}."
        assert render([IndexEntry("kb:news.md", text)]) == f"kb:news.md\n{text}\n"
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 50_000


def test_a_description_that_is_harmless_is_in_memory_once() -> None:
    entries = [IndexEntry(f"kb:{number}-once.md", f"{number} " + "word " * 200 + "end.") for number in range(200)]
    tracemalloc.start()
    render(entries)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / len(entries) < 500


def test_an_index_of_more_entries_than_are_kept_ready_is_written_whole() -> None:
    entries = [IndexEntry(f"kb:{number}.md", f"Page {number}.") for number in range(5_000)]
    for _ in range(2):
        assert parse(render(entries)) == entries
