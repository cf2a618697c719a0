from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.documents.limits import lines_of
from services.documents.reading.prose import LONGEST, PASSAGE_CHARS, fenced, markdown_chunks, prose_chunks

PARAGRAPH = "word " * 30


def cut(text: str, ending: str = ".md") -> list[tuple[str | None, int, int]]:
    return [(chunk.heading, chunk.line_start, chunk.line_end) for chunk in markdown_chunks(lines_of(text), ending)]


def test_a_section_for_each_heading_with_the_headings_above_it() -> None:
    text = (
        f"# Guide\n{PARAGRAPH}\n## Set up\n{PARAGRAPH}\n#### Deep\nx\n### Linux ###\n{PARAGRAPH}\n## Run\n{PARAGRAPH}\n"
    )
    assert cut(text) == [
        ("Guide", 1, 2),
        ("Guide › Set up", 3, 6),
        ("Guide › Set up › Linux", 7, 8),
        ("Guide › Run", 9, 10),
    ]


def test_underlined_headings_count() -> None:
    assert cut(f"Guide\n=====\n{PARAGRAPH}\n\nRun\n---\n{PARAGRAPH}\n") == [("Guide", 1, 4), ("Guide › Run", 5, 7)]
    rst = f"=====\nGuide\n=====\n\n{PARAGRAPH}\n\nRun\n---\n{PARAGRAPH}\n"
    assert cut(rst, ".rst") == [("Guide", 1, 6), ("Guide › Run", 7, 9)]
    adoc = f"= Guide\n{PARAGRAPH}\n== Run\n----\n== no\n----\n{PARAGRAPH}"
    assert cut(adoc, ".adoc") == [("Guide", 1, 2), ("Guide › Run", 3, 7)]


def test_small_sections_join_their_neighbours() -> None:
    assert cut(f"# Guide\n## Run\n{PARAGRAPH}\n## End\nx\n") == [("Guide › Run", 1, 5)]


def test_front_matter_becomes_metadata() -> None:
    text = f"---\ntitle: Restarting\ntags: [a, b]\n---\n# One\n{PARAGRAPH}\n"
    (chunk,) = markdown_chunks(lines_of(text))
    assert (chunk.line_start, chunk.extra) == (5, {"title": "Restarting", "tags": "a, b"})
    (renamed,) = markdown_chunks(lines_of(text), title="Mine")
    assert renamed.extra["title"] == "Mine"


def test_large_sections_are_cut_between_paragraphs() -> None:
    text = "# One\n" + f"{PARAGRAPH}\n\n" * 40
    found = markdown_chunks(lines_of(text))
    assert len(found) > 1
    assert all(len(chunk.text) <= LONGEST and chunk.heading == "One" for chunk in found)
    assert all(chunk.text.startswith(("# One", "word")) for chunk in found)


blocks = st.lists(
    st.one_of(
        st.just(""),
        st.sampled_from(
            ["# A", "## B", "```", "```python", "~~~", "- ```", "    ```", "Title", "=====", "---", "x" * 2900]
        ),
        st.text("ab #`~", max_size=60),
    ),
    max_size=60,
)


@given(blocks, st.sampled_from([".md", ".rst", ".adoc"]))
def test_no_fence_is_split_and_no_line_is_lost(lines: list[str], ending: str) -> None:
    found = markdown_chunks(lines, ending)
    inside = fenced(lines, delimiters=ending == ".adoc")
    for chunk in found:
        assert chunk.text == "\n".join(lines[chunk.line_start - 1 : chunk.line_end])
        assert not inside[chunk.line_start - 1]
    covered = [number for chunk in found for number in range(chunk.line_start, chunk.line_end + 1)]
    assert len(covered) == len(set(covered))
    if not lines or lines[0] != "---":
        assert {number for number, line in enumerate(lines, start=1) if line.strip()} <= set(covered)


@given(st.lists(st.text("ab ", max_size=3000), max_size=30))
def test_passages_of_prose_hold_every_line_and_overlap(lines: list[str]) -> None:
    found = prose_chunks(lines)
    for chunk in found:
        assert len(chunk.text) <= PASSAGE_CHARS * 2
        assert chunk.text in "\n".join(lines[chunk.line_start - 1 : chunk.line_end])
    covered = {number for chunk in found for number in range(chunk.line_start, chunk.line_end + 1)}
    assert {number for number, line in enumerate(lines, start=1) if line.strip()} <= covered
