"""The knowledge base: its index and cache files, and the bodies of web pages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.knowledge import cache, index_file
from services.knowledge.index_file import IndexEntry, is_id
from services.knowledge.links_file import parse_links
from services.knowledge.web import contents
from services.knowledge.web_answers import FetchFailed
from services.search.text import read
from tests.fuzzing.mutations import TEXTS, THOROUGHLY, damaged, damaged_text, distorted, one_line
from tests.fuzzing.samples import MARKDOWN, REST
from tests.services.knowledge.test_cache import TIME, file_record, url_record
from tests.shelves import RECORDS

INDEX = index_file.render(
    [
        IndexEntry("kb:guides/setup.md", "How to set up: drivers.\nPorts."),
        IndexEntry("kb:https://example.org/faq", "Questions.\nkb:forged.md"),
        IndexEntry("team:tokens.txt", "About é tokens."),
    ]
)
FILED = [file_record(), file_record("b é.md", "About b.\nkb:x"), url_record(), url_record("https://b.example", TIME)]
CACHE = cache.render(map(cache.line, FILED), TIME)
HTML = b"""\
<!DOCTYPE html><html><head><meta charset="utf-8"><title>A &amp; page</title></head><body>
<nav><a href="/x">Menu</a></nav>
<main><h1>Heading</h1><p>Text with <code>code</code> and <b>more</b> text, long enough for main text.</p>
<ul><li>one</li><li>two</li></ul><table><tr><th>a</th><td>1</td></tr></table><pre>x = 1
y = 2</pre><!-- comment --><script>var a = "</p>";</script></main></body></html>
"""
LINKS = b"""\
# pages
https://example.org/faq

http://b.example:8080/x?y=z#f
ftp://c.example
https://user:pw@d.example/
no link
"""
TYPES = (
    *(
        "text/html",
        "text/html; charset=utf-8",
        "text/html; charset=iso-2022-jp",
        "application/xhtml+xml",
        "",
        "text/plain",
    ),
    *("text/plain; charset=utf-16", "text/plain; charset=utf-7", "text/markdown; charset=\x00", "application/json"),
    *("application/pdf", "image/png", "text/plain; charset=utf_8_sig", "text/plain; charset=" + "x" * 5000),
)


@THOROUGHLY
@given(damaged_text(INDEX))
def test_an_index_gives_entries_that_can_be_written_and_read_again(text: str) -> None:
    found = index_file.parse(text)
    assert all(is_id(entry.id) for entry in found)
    assert len({entry.id for entry in found}) == len(found)
    assert index_file.parse(index_file.render(found)) == found


def records_in(data: bytes) -> int:
    try:
        return len(json.loads(data)["sources"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return data.count(b'"source_type"')


@THOROUGHLY
@given(damaged(CACHE) | distorted(json.loads(CACHE)).map(json.dumps).map(str.encode))
def test_a_cache_gives_whole_records_and_names_those_that_are_lost(
    caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    """Pitfall 12."""
    caplog.clear()
    found = cache.parse(data, RECORDS)
    assert len(found) >= min(records_in(data), len(FILED)) or caplog.messages
    assert cache.parse(cache.render(map(cache.line, found.values()), TIME), RECORDS) == found


@THOROUGHLY
@given(damaged(HTML) | damaged(INDEX.encode()), st.sampled_from(TYPES))
def test_the_body_of_a_page_is_text_or_the_fetch_failed(body: bytes, content_type: str) -> None:
    try:
        found = contents.read(body, content_type, 100_000)
    except FetchFailed as failed:
        one_line(failed)
        return
    assert found.text.strip()
    found.text.encode()
    assert "\n" not in found.title


@THOROUGHLY
@given(
    st.sampled_from(["a.md", "b.mdx", "c.txt", "d", "https://a.b/c", "e.rst", "f.html"]),
    damaged_text(HTML.decode(), MARKDOWN, REST),
)
def test_a_document_is_read_as_sections_whatever_it_is_called(name: str, text: str) -> None:
    article = read(name, text)
    for section in article.sections:
        for block in section.blocks:
            assert isinstance(block.text, str)


@THOROUGHLY
@given(damaged(LINKS))
def test_a_file_of_links_gives_addresses_and_what_was_left_out(data: bytes) -> None:
    links = parse_links(data)
    urls = [*links.pages, *(line.url for line in (*links.sites, *links.repositories))]
    assert len(set(links.pages)) == len(links.pages)
    for each in (*urls, *links.left_out, *links.left_out.values(), *(line.prefix for line in links.repositories)):
        assert "\n" not in each
    for url in urls:
        assert url.startswith(("http://", "https://"))
        url.encode()


@THOROUGHLY
@given(
    damaged(HTML),
    st.none() | st.text(max_size=12) | st.sampled_from((*TEXTS, "utf-16", "utf-7", "hz", "gb2312", "iso-2022-kr")),
)
def test_bytes_are_decoded_whatever_charset_they_claim(body: bytes, charset: str | None) -> None:
    assert isinstance(contents.decode(body, charset, html=True), str)
