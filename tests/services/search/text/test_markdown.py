from __future__ import annotations

import pytest

from services.search.text.article import Block, BlockKind, Section
from services.search.text.markdown import read_markdown


def blocks(text: str) -> list[str]:
    return [block.text for section in read_markdown(text).sections for block in section.blocks]


def paths(text: str) -> list[tuple[tuple[str, ...], str]]:
    return [(section.headings, section.anchor) for section in read_markdown(text).sections]


def test_sections_stand_below_their_headings() -> None:
    text = "# Guide\n\nIntro.\n\n## Use `it`\n\nOne.\n\nUse it\n------\n\nTwo.\n\n### Deep {#own .x}\n\nThree.\n"
    assert paths(text) == [
        (("Guide",), ""),
        (("Guide", "Use it"), "use-it"),
        (("Guide", "Use it"), "use-it_1"),
        (("Guide", "Use it", "Deep"), "own"),
    ]


def test_a_heading_without_text_is_left_out_where_something_stands_below_it() -> None:
    assert [path for path, _ in paths("# A\n\n## B\n\ntext\n\n## C")] == [("A", "B"), ("A", "C")]


def test_front_matter_gives_title_and_permalink() -> None:
    article = read_markdown(
        '---\ntitle: "Getting: started"\nslug: /start\ntags: [a]\n---\n\nHello.\n\n## Next\n\nMore.'
    )
    assert (article.title, article.permalink) == ("Getting: started", "/start")
    assert [section.headings for section in article.sections] == [
        ("Getting: started",),
        ("Getting: started", "Next"),
    ]


@pytest.mark.parametrize(
    ("status", "expected"),
    [("deprecated", ["**This page is deprecated.**", "Hello."]), ("new", ["Hello."])],
)
def test_front_matter_says_that_a_page_is_out_of_date(status: str, expected: list[str]) -> None:
    assert blocks(f"---\nstatus: {status}\n---\n# Title\n\nHello.") == expected


def test_the_first_line_says_that_a_page_is_out_of_date() -> None:
    assert blocks("# RFC\n\n**Status:** rejected\n\nHello.")[0] == "**This page is rejected.**"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10<sup>6</sup> and 10<sup>-3</sup> mol", "10⁶ and 10⁻³ mol"),
        ("5 m<sup>2</sup>, H<sub>2</sub>O", "5 m², H₂O"),
        ("2<sup>k</sup>, n<sup>2k+1</sup>", "2^k, n^(2k+1)"),
        ("the 4<sup>th</sup>, x<sub>max</sub>", "the 4th, xmax"),
    ],
)
def test_exponents_are_not_the_digits_before_them(text: str, expected: str) -> None:
    assert blocks(text) == [expected]


def test_what_is_struck_out_is_seen_in_tables_and_headings() -> None:
    assert "| ~~500~~ 50" in blocks("| rotor | rpm |\n|---|---|\n| M1 | ~~500~~ 50 |")[0]
    assert paths("# A\n\n## ~~Old~~ way\n\nText.") == [(("A", "~~Old~~ way"), "old-way")]


def test_text_between_two_rules_is_no_front_matter() -> None:
    assert "hello there" in str(read_markdown("---\nhello there\n---\nmore"))


@pytest.mark.parametrize(
    "text",
    [
        '=== "Windows"\n\n    Run this.\n\n    ```sh\n    run\n    ```\n',
        "/// tab | Windows\nRun this.\n\n```sh\nrun\n```\n///",
        '!!! note "Windows"\n    Run this.\n\n    ```sh\n    run\n    ```\n',
        '??? tip "Windows"\n\n    Run this.\n\n    ```sh title="x"\n    run\n    ```\n',
        '/// note | Windows\n    type: warning\n\nRun this.\n\n```sh hl_lines="1"\nrun\n```\n///',
        ":::tip[Windows]\nRun this.\n\n```sh {1}\nrun\n```\n:::",
        "::: details Windows {open}\n\nRun this.\n\n```sh\nrun # [!code focus]\n```\n\n:::",
        "> [!NOTE] Windows\n> Run this.\n>\n> ```sh\n> run\n> ```",
        "<details>\n<summary>Windows</summary>\nRun this.\n\n```sh\nrun\n```\n\n</details>",
        '<TabItem label="Windows">\n\nRun this.\n\n```{.sh .annotate}\nrun # (1)!\n```\n\n</TabItem>',
        '{% tab title="Windows" %}\nRun this.\n\n~~~sh\nrun\n~~~\n{% endtab %}',
    ],
)
def test_a_title_is_a_bold_line_before_its_text(text: str) -> None:
    assert "\n".join(blocks(text)) == "**Windows**\nRun this.\n```sh\nrun\n```"


def test_a_title_without_content_is_left_out() -> None:
    assert blocks('=== "Output"\n\n    ![](x.png)\n\nAfter.') == ["After."]


@pytest.mark.parametrize(
    "text",
    [
        "{!../include.md!}",
        '--8<-- "x.md"',
        "--8<--\nx.md\n--8<--",
        "{% include 'x' %}",
        "::: module.name\n    options:\n      show: true\n\n      members: false",
        "<!-- a\n\ncomment -->",
        "[TOC]",
        "[[toc]]",
        "{: .class #id }",
        "{{ expression }}",
        "<<< @/snippet.js{1,2}",
        "*[HTML]: Hyper Text",
        "<script setup>\nconst a = 1\n\nconst b = 2\n</script>",
        "<style>\n.a { }\n</style>",
        '<Badge text="new"/>',
        "![Logo](x.png)",
        "[![badge](x.svg)](https://a.b)",
        "import Tabs from '@theme/Tabs';",
        "***",
    ],
)
def test_what_only_the_generator_reads_vanishes(text: str) -> None:
    assert blocks(f"Before.\n\n{text}\n\nAfter.") == ["Before.", "After."]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Press <kbd>A</kbd>,<br>or ++ctrl+b++ &amp; &nbsp;c", "Press A,\nor ctrl+b & c"),
        ('<div class="termy">Text of <code>it</code></div>', "Text of `it`"),
        ('An <abbr title="x">API</abbr>, <a href="y">there</a>', "An API, [there](y)"),
        ("[here][a] and [a][], [`m.C`][m.C]\n\n[a]: ../b.md 'title'", "[here](../b.md) and [a](../b.md), `m.C`"),
        ("__bold__ _italic_ ~~gone~~ \\*as is\\*", "**bold** *italic* ~~gone~~ \\*as is\\*"),
        ("a :material-home:{ .lg } b{ .x } c", "a b c"),
        ("open <file> now", "open <file> now"),
        ("one\ntwo  \nthree", "one two\nthree"),
        ("see <https://a.b/c>", "see https://a.b/c"),
        ("- [ ] a\n- [x] b", "- [ ] a\n- [x] b"),
        ("3. c\n   - x\n     - y\n4. d", "3. c\n   - x\n     - y\n4. d"),
        ("> quoted", "> quoted"),
        ("A note.[^1]\n\n[^1]: Below.", "A note.\n\nBelow."),
        ("Term\n: What it is", "- **Term**\n  What it is"),
        ("1. run:\n\n    ```sh\n    x\n    ```\n\n2. done", "1. run:\n```sh\nx\n```\n2. done"),
        ("![A long picture text with words](x.png)", "A long picture text with words"),
        ("!!! warning\n    Mind it.", "**Warning**\nMind it."),
        ("!!! note\n    Mind it.", "Mind it."),
        ("```sh [npm]\ni\n```", "**npm**\n\n```sh\ni\n```"),
        ("``` { .py3 title='x' }\ni\n```", "```py3\ni\n```"),
        ('```sh tab="On Linux"\ni\n```', "**On Linux**\n\n```sh\ni\n```"),
        ('```js tab="src/__a__.js"\ni\n```', "**`src/__a__.js`**\n\n```js\ni\n```"),
        ('The <a id="x" href="#x">option</a>', "The option"),
    ],
)
def test_as_people_see_it(text: str, shown: str) -> None:
    assert "\n\n".join(blocks(text)) == shown


def test_a_table_is_aligned_text() -> None:
    text = "| Name | **What** |\n|:--|--|\n| `a` | [first](x) |\n| 漢字 | b |"
    assert read_markdown(text).sections[0].blocks == (
        Block(BlockKind.TABLE, "```\nName | What\n-----+------\na    | first\n漢字 | b\n```"),
    )


def test_a_table_in_html_is_one_too() -> None:
    text = "<table>\n<tr><th>A</th><th>B</th></tr>\n\n<tr><td><code>x</code></td><td>y</td></tr>\n</table>"
    assert blocks(text) == ["```\nA | B\n--+--\nx | y\n```"]


def test_a_wide_table_is_a_list() -> None:
    wide = "words " * 20
    assert blocks(f"| Option | Meaning |\n|--|--|\n| `a` | {wide} |") == [f"- **`a`** – Meaning: {wide.strip()}"]


def test_a_fence_that_nobody_closes_ends_at_the_next_heading() -> None:
    text = "# A\n\n~~~\ncode\n# comment\n\n## B\n\ntext"
    assert [section.headings for section in read_markdown(text).sections] == [("A",), ("A", "B")]


def test_code_is_not_touched() -> None:
    code = 'import a from "b"\n\n=== "x"\n    {{ y }} <div> <!-- c -->\n:::'
    assert read_markdown(f"```\n{code}\n```").sections == (
        Section((), "", (Block(BlockKind.CODE, f"```\n{code}\n```"),)),
    )


def test_a_heading_in_html_is_a_heading() -> None:
    assert paths('<h1 align="center">Tool</h1>\n\ntext\n\n<h2 id="b">Two</h2>\n\nmore') == [
        (("Tool",), ""),
        (("Tool", "Two"), "b"),
    ]


@pytest.mark.parametrize("sign", ["[", "![", "{"])
def test_a_paragraph_of_brackets_stays_as_it_is(sign: str) -> None:
    """For each one that nothing closes, the parser would look through all that follows."""
    assert blocks(f"__bold__ {sign * 500}") == [f"__bold__ {sign * 500}"]
    assert blocks(f"__bold__ {sign * 100}") == [f"**bold** {sign * 100}"]


def test_paragraphs_for_which_no_time_is_left_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = iter(range(100))
    monkeypatch.setattr("time.thread_time", lambda: 0.2 * next(passed))
    shown = blocks("\n\n".join(["see [it](x.md) ![](y.png)"] * 5))
    assert shown == ["see [it](x.md)"] * 2 + ["see [it](x.md) ![](y.png)"] * 3


@pytest.mark.parametrize(
    "text",
    [
        "<div hidden>Evil.</div>",
        '<span style="display:none">Evil.</span>',
        "<p style='visibility: hidden'>\nEvil.\n</p>",
        "<div hidden>\n\nEvil.\n\n<div>\n\nEvil.\n\n</div>\n\n- Evil.\n\n</div>",
        "<div hidden>Evil.\n\n```\nEvil </div>\n```\n\n`</div>` Evil.\n\n</div>",
        "<h2 hidden>Evil</h2>",
        "<table>\n<tr hidden><td>Evil</td></tr>\n</table>",
    ],
)
def test_what_html_hides_is_left_out(text: str) -> None:
    assert blocks(f"Before.\n\n{text}\n\nAfter.") == ["Before.", "After."]


def test_what_nothing_closes_hides_the_rest_of_its_block() -> None:
    assert blocks("Before.\n\nOne <span hidden>evil\n\nAfter.\n\n<div hidden>\n\nEvil.") == ["Before.", "One", "After."]


def test_a_hidden_heading_keeps_the_anchors_of_the_others() -> None:
    assert paths("# A\n\n## B\n\none\n\n<div hidden>\n\n## C\n\n</div>\n\n## C\n\ntwo")[-1] == (("A", "C"), "c_1")
