"""No parser of outside bytes takes more than in proportion to them (Pitfall 64): whole parsers, over dense texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.assistant import remove_foreign_links
from services.documents.asking.query_lines import addresses
from services.documents.limits import FileLimits
from services.documents.reading.preparing import prepare
from services.knowledge import index_file
from services.knowledge.links_file import SiteLine
from services.knowledge.page_lists import read_list
from services.knowledge.web.contents import read as read_page
from services.search.text.reading import is_html, read, read_html
from tests.patterns.growth import STEEP, cost, growth

CHARS = 6_000
LIMITS = FileLimits()
# Not among them: sections of reStructuredText, before each of which docutils copies the lines that follow, and dense
# substitutions in one paragraph. Reading has a deadline for these (services/search/text).
MARKUP = {
    "a.rst": [
        "=== ===\na   b\n=== ===\n1   2\n=== ===\n\n",
        "+---+---+\n| a | b |\n+---+---+\n\n",
        "* ``a`` and `b <c_>`_\n",
        ".. list-table:: t\n\n   * - a\n     - *b*\n\n",
    ],
    "a.md": [
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
        "* [a](b) `c`\n",
        "> > a\n",
        "# a\n",
        "![[a](b",
        "```\na\n",
        "<b>*a_",
    ],
    "a.mdx": ["<A b={1}>\n\n</A>\n\n", "{a}\n", "import a from 'b'\n"],
    "a.html": ["<p>a</p>", "<table><tr><td>a</table>", "<div>", "<a href='b'>", "&amp;", "<!-- a"],
    "a.txt": ["a. ", "- a\n", "a\n\n", "`a` "],
}
FILES = {
    "a.yaml": ["a: 1\n", "- a\n", "- {a: [1, 2]}\n", "a: &a *a\n", "# a\n"],
    "a.json": ['{"a": ', "[1, ", '["a", {"b": 1}],\n'],
    "a.toml": ["a.b = 1\n", "[a]\n", "[[a]]\nb = [1, 2]\n"],
    "a.ini": ["[a]\nb = 1\n", "b = 1\n", "; a\n"],
    "a.xml": ["<a>", "<a b='c'/>", "<a>b</a>\n"],
    "a.csv": ["a,b\n", '"a"",', ",", "1;2\n"],
    "a.log": [
        "2024-01-02 03:04:05 ERROR a: b\n",
        "Jan  2 03:04:05 host a[1]: b\n",
        '{"ts": 1700000000, "level": "ERROR", "msg": "a"}\n',
        '1.2.3.4 - - [02/Jan/2024:03:04:05 +0000] "GET / HTTP/1.1" 200 1\n',
        "\tat a.b(c)\n",
        "E0102 03:04:05.000000 1 a.go:1] b\n",
    ],
}
PAGES = ["<p>a b c. ", "<li><a href='b'>a</a>", "<table><tr><td>a", "<script>a</script>b ", "<div><span>a"]


def grown(work: Callable[[str], object], body: str, head: str = "") -> float:
    return growth(work, lambda chars: head + body * (chars // len(body)), CHARS)


@pytest.mark.parametrize(("name", "body"), [(name, body) for name, bodies in MARKUP.items() for body in bodies])
def test_documentation_is_read_in_linear_time(name: str, body: str) -> None:
    """Pitfall 64. HTML is read in another process, whose work does not count here: read it directly."""
    assert grown(read_html if is_html(name) else lambda text: read(name, text), body) < STEEP


@pytest.mark.parametrize(("name", "body"), [(name, body) for name, bodies in FILES.items() for body in bodies])
def test_files_are_read_in_linear_time(name: str, body: str) -> None:
    """Pitfall 64."""
    assert grown(lambda text: prepare(name, text.encode(), limits=LIMITS), body) < STEEP


def test_what_looks_like_an_address_costs_little_more_than_other_words() -> None:
    """It cost a thousand times as much, and "how many errors by address?" asks each line."""
    words, lookalikes = ("word of a log " * 300)[:4_000], (f"a:a:{'a' * 28}g " * 120)[:4_000]
    assert cost(lambda: addresses(lookalikes)) < 50 * cost(lambda: addresses(words), 5)


@pytest.mark.parametrize(
    "more", [")", "\\:", "&sol;", "&sol", "](", "](<", "a](//b ", "](((", "href=", "[a]: ", "a:", "@"]
)
def test_links_are_removed_in_linear_time(more: str) -> None:
    def text(chars: int) -> str:
        return "http://a" + more * (chars // len(more))

    assert growth(lambda each: remove_foreign_links(each, ()), text, CHARS) < STEEP


@pytest.mark.parametrize(
    ("opened", "closed"),
    [("[", "](//a )"), ("![", "](https://a)"), ("ht<", "https://a>tps://b"), ("\\[", "http://a\\]")],
)
def test_nested_links_are_removed_in_linear_time(opened: str, closed: str) -> None:
    def text(chars: int) -> str:
        return (depth := chars // len(opened + closed)) * opened + "x" + depth * closed

    assert growth(lambda each: remove_foreign_links(each, ()), text, CHARS) < STEEP
    left = remove_foreign_links(text(4_000), ())
    assert "//" not in left
    assert remove_foreign_links(left, ()) == left


@pytest.mark.parametrize("body", PAGES)
def test_pages_are_read_in_linear_time(body: str) -> None:
    """Pitfall 64."""

    def work(text: str) -> object:
        return read_page(text.encode(), "text/html; charset=utf-8", 2_000_000)

    assert grown(work, body, "<html><body>") < STEEP


@pytest.mark.parametrize("body", ["kb:a.md\nA page.\n\n", "kb:a.md\n", "\n", "a\n"])
def test_an_index_is_read_in_linear_time(body: str) -> None:
    """Pitfall 64."""
    assert grown(lambda text: index_file.parse(text, "index.txt", "kb"), body) < STEEP


def pages_in(entries: str) -> object:
    line = SiteLine("links, line 1", "sitemap", "https://a/list")
    return read_list(f"<urlset>{entries}</urlset>".encode(), "https://a/list", line, "", 9).pages


@pytest.mark.parametrize(
    ("head", "body", "tail"),
    [
        ("", "<url><loc>https://a/b</loc></url>", ""),
        ("<url><loc>", "a<!-- -->", "</loc></url>"),
        ("<url><loc>", "&amp;", "</loc></url>"),
    ],
)
def test_a_sitemap_is_read_in_linear_time(head: str, body: str, tail: str) -> None:
    """Pitfall 64."""
    assert growth(pages_in, lambda chars: head + body * (chars // len(body)) + tail, 60 * CHARS) < STEEP
