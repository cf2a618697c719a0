from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clock import Processes
from services.search import text as documents
from services.search.text import reading
from services.search.text.article import BlockKind
from tests.services.quickly import QUICKLY

NAMES = ["a.md", "b.mdx", "c.txt", "d", "https://a.b/c", "e.rst", "f.html"]
REAL = [path.read_text() for path in sorted((Path(__file__).parents[4] / "docs").glob("*.md"))]
PARTS = [
    "# ", "## A\n", "\n\n", "\n", "    ", "- ", "1. ", "> ", "```", "```py\n", "~~~\n", '=== "T"\n', "!!! note\n",
    "/// tab | T\n", "///\n", ":::tip X\n", ":::\n", "::: a.b\n", "<div>", "</div>", "<table>", "<td>", "</table>",
    "<pre>", "</pre>", "<A b={", "}", "{", "{{", "}}", "{%", "%}", "<!--", "-->", "<script>", "[a][b]", "[a](b)",
    "[^1]", "[^1]: ", "|a|b|\n|-|-|\n", "|c|", "*", "**", "_", "`", "~~", "word", "import a from 'b'\n", "export {\n",
    "---\n", "title: x\n", "===\n", ": d\n", "<h1>", "</h1>", "&amp;", "\\", "\0", "\x01", "\x02",
    "\x0c", "\r", "\t", "é", "漢",
]  # fmt: skip
WORDS = st.from_regex(r"[a-z]{3,8}", fullmatch=True)
PROSE = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
LEAF = st.one_of(
    PROSE,
    PROSE.map(lambda text: f"**{text}** and `{text}`"),
    PROSE.map(lambda text: f"```sh title='y' hl_lines='1'\n{text}\n```"),
    PROSE.map(lambda text: f"<div>\n<p>{text}</p>\n</div>"),
    PROSE.map(lambda text: f"- {text}\n- [{text}](x.md)"),
    PROSE.map(lambda text: f"| b | {text} |\n|--|--|\n| c | {text} |"),
    PROSE.map(lambda text: f"> [!WARNING]\n> {text}"),
    PROSE.map(lambda text: f"~~~\n{text}\n~~~"),
)


def indented(text: str, by: str = "    ") -> str:
    return "\n".join(f"{by}{line}" if line else "" for line in text.split("\n"))


def contained(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inside, min_size=1, max_size=3).map("\n\n".join)
    return st.one_of(
        several.map(lambda text: f'=== "Tab"\n\n{indented(text)}'),
        several.map(lambda text: f'!!! note "Title"\n\n{indented(text)}'),
        several.map(lambda text: f":::tip Title\n\n{text}\n\n:::"),
        several.map(lambda text: f"/// note | Title\n\n{text}\n\n///"),
        several.map(lambda text: f"<details>\n<summary>T</summary>\n\n{text}\n\n</details>"),
        several.map(lambda text: f"1. item\n\n{indented(text)}"),
        several.map(lambda text: indented(text, "> ").replace("\n\n", "\n>\n")),
    )


DOCUMENTS = st.lists(st.recursive(LEAF, contained, max_leaves=6), min_size=1, max_size=5).map("\n\n".join)
MARKUP = {"div", "details", "summary", "note", "tip", "title", "hl", "lines", "warning", "tab", "item", "and", "sh"}


def words(text: str) -> list[str]:
    found = "".join(each if each.isalpha() else " " for each in text.lower().replace("x.md", "")).split()
    return [word for word in found if len(word) > 2 and word not in MARKUP]


@QUICKLY
@example("e.rst", "\x02")
@given(st.sampled_from(NAMES), st.text() | st.lists(st.sampled_from(PARTS) | st.text(max_size=3)).map("".join))
def test_no_text_is_refused(name: str, text: str) -> None:
    article = documents.read(name, text)
    for section in article.sections:
        for block in section.blocks:
            assert block.text.strip()
            assert not {"\x01", "\x02"} & set(block.text)


@QUICKLY
@given(st.sampled_from(NAMES), st.sampled_from(REAL), st.integers(0, 3000), st.integers(0, 400), st.sampled_from(PARTS))
def test_no_damaged_document_is_refused(name: str, text: str, at: int, length: int, part: str) -> None:
    """A piece is missing, another stands in its place, and all of it comes twice."""
    damaged = text[:at] + part + text[at + length :]
    assert documents.read(name, damaged + damaged).sections


@QUICKLY
@given(DOCUMENTS)
def test_no_word_is_lost_and_none_changes_its_place(text: str) -> None:
    shown = " ".join(section.text for section in documents.read("a.md", text).sections)
    assert words(shown) == words(text)


def test_nesting_has_a_bottom_and_loses_nothing() -> None:
    deep = "".join("  " * level + f"- item{level}\n" for level in range(200)) + "\n" + "> " * 500 + "bottom"
    shown = documents.read("a.md", deep).sections[0].text
    assert [f"item{level}" in shown for level in range(200)] == [True] * 200
    assert "bottom" in shown


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("notes", "# A\n\n- x", BlockKind.LIST),
        ("notes.txt", "```\nx\n```", BlockKind.CODE),
        ("notes.txt", "Some *text* here.", BlockKind.PROSE),
        ("page.html", "<html><body><p>Some text of a page.</p></body></html>", BlockKind.PROSE),
        ("part.html", "<p>Some text of a part.</p>", BlockKind.PROSE),
        ("part.html", "<pre>x = 1</pre>", BlockKind.CODE),
        ("https://a.b/c.html", "A paragraph.\n\n- x", BlockKind.PROSE),
        ("feed:https://a.b/c.rst", "A paragraph.\n\n- x", BlockKind.PROSE),
    ],
)
def test_a_name_or_the_text_says_how_it_is_read(name: str, text: str, kind: BlockKind) -> None:
    assert documents.read(name, text).sections[-1].blocks[0].kind is kind


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ([["Name", "T"], ["m\u0300s", "s"], ["漢", "m"]], "```\nName | T\n-----+--\nm\u0300s   | s\n漢   | m\n```"),
        ([["Name", ""], ["a", ""], ["b", ""]], "```\nName\n----\na\nb\n```"),
        ([["Name", "Unit"], ["a", "word " * 20]], f"- **a** – Unit: {'word ' * 19}word"),
    ],
)
def test_a_table_looks_the_same_in_every_language(rows: list[list[str]], shown: str) -> None:
    header, *others = [f"|{'|'.join(row)}|" for row in rows]
    markdown = "\n".join([header, "|--|--|", *others])
    rest = "\n".join([".. csv-table::", "   :header-rows: 1", "", *("   " + ",".join(row) for row in rows)])
    assert documents.read("a.md", markdown).sections[0].text == shown
    assert documents.read("a.rst", rest).sections[0].text == shown


def test_plain_text_stays_word_for_word_below_its_titles() -> None:
    text = "Read me\n\nIt is <b>*so*</b>.\n\nUsage\n-----\n\n    run it\n\n    twice\n\n- a\n- b\n"
    article = documents.read("README", text)
    assert [(section.headings, section.text) for section in article.sections] == [
        (("Usage",), "Read me\n\nIt is <b>*so*</b>."),
        (("Usage",), "```\nrun it\n\ntwice\n```\n\n- a\n- b"),
    ]


def test_titles_that_have_lost_their_marks() -> None:
    text = "Read me\n\nFirst paragraph.\n\nInstallation\n\nSecond paragraph.\n"
    expected = [(("Read me",), "First paragraph."), (("Read me", "Installation"), "Second paragraph.")]
    for name in ("notes.txt", "https://a.b"):
        sections = documents.read(name, text).sections
        assert [(section.headings, section.text) for section in sections] == expected


def test_a_page_has_a_title_and_an_address() -> None:
    page = """<html><head><title>Tool docs</title><link rel="canonical" href="https://a.b/c"></head><body><main>
    <h1>Tool</h1><p>First paragraph with quite a lot of words in it, as pages have.</p>
    <h2>Use</h2><p>Second paragraph with quite a lot of words in it, as pages have.</p><pre><code>run it</code></pre>
    </main></body></html>"""
    article = documents.read("page.html", page)
    assert (article.title, article.permalink) == ("Tool", "https://a.b/c")
    assert [section.headings for section in article.sections] == [("Tool",), ("Tool", "Use")]
    assert "run it" in article.sections[-1].text


_PAGE = "<html><body><main><h1>Lab</h1><p>This page tells about the lab, in some sentences.</p>{}</main></body></html>"


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("<p>Dilute it to 10<sup>-3</sup> mol of H<sub>2</sub>O.</p>", "Dilute it to 10⁻³ mol of H₂O."),
        ("<p>Use <s>one hour</s> ten minutes.</p>", "Use ~~one hour~~ ten minutes."),
        ("<ol start=3><li>Close it.</li><li value=7>Heat it.</li></ol>", "- 3. Close it.\n- 7. Heat it."),
        ("<ol reversed><li>Close it.</li><li>Heat it.</li></ol>", "- 2. Close it.\n- 1. Heat it."),
        ("<p hidden>Not this.</p><p style='display: none'>Nor this.</p><p>But this.</p>", "But this."),
    ],
)
def test_formats_of_a_page_that_change_what_it_says_are_written_out(inside: str, expected: str) -> None:
    [section] = documents.read("page.html", _PAGE.format(inside)).sections
    assert section.text == f"This page tells about the lab, in some sentences.\n\n{expected}"


def test_what_is_struck_out_is_seen_on_a_short_page() -> None:
    article = documents.read("page.html", "<html><body><p>Turn it.</p><p><s>Use the hammer.</s></p></body></html>")
    assert "~~Use the hammer.~~" in article.markdown


def test_a_page_that_takes_too_long_is_read_as_plain_text_and_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where it was read in a thread, one tag of 25,000 attributes held the event loop for seconds."""
    monkeypatch.setattr(reading, "_processes", Processes(seconds=0.01))
    page = "<p>Open the &quot;flange&quot; first.</p>\n<a x=1>" + "<p>It is " * 9
    [section] = documents.read("docs/page.html", page).sections
    assert section.text.startswith('Open the "flange" first.')
    assert "<" not in section.text
    assert documents.read("docs/page.html", page).sections == (section,)
    assert caplog.messages == ["docs/page.html is read as plain text: it takes longer than 0.01 s"]


def test_the_lines_of_a_web_page_stay_lines() -> None:
    """A listing has lost its marks, and would be one line of nonsense."""
    [section] = documents.read("https://a.b", 'Write:\n\n[[window]]\nhours = "8-18"\n').sections
    assert section.text == 'Write:\n\n[[window]]\nhours = "8-18"'
