"""The knowledge base: its index and cache files, and the bodies of web pages."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from dulwich.object_format import SHA1
from dulwich.objects import Blob, Commit, Tree
from dulwich.pack import write_pack_objects
from hypothesis import given
from hypothesis import strategies as st

from services.knowledge import PathFilter, cache, index_file
from services.knowledge.index_file import IndexEntry, is_id
from services.knowledge.links_file import LINE_FORMS, RepositoryLine, SiteKind, SiteLine, parse_links
from services.knowledge.page_lists import LONGEST_PAUSE, crawl_pause, read_list
from services.knowledge.web import contents
from services.knowledge.web.git_packs import read_pack
from services.knowledge.web_interface import FetchFailed, RepositorySelection
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
CACHE = cache.render(map(cache.render_line, FILED), TIME)
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
sitemap: https://docs.example.org/sitemap.xml guides/** !guides/old/**
git: https://github.com/example/project@main docs
https://user:pw@d.example/
no link
""" + "".join(f"{form.word} {form.example.replace('…', 'e.example/f')}\n" for form in LINE_FORMS).encode()
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
    assert cache.parse(cache.render(map(cache.render_line, found.values()), TIME), RECORDS) == found


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
    urls = [*links.pages, *(line.url for line in links.lines)]
    assert len(set(links.pages)) == len(links.pages)
    for each in (*urls, *links.left_out, *links.left_out.values(), *(line.prefix for line in links.of(RepositoryLine))):
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


SITEMAP = b"""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:i="http://www.google.com/schemas/sitemap-image/1.1">
<url><loc>https://docs.example.org/a</loc><lastmod>2026-01-01</lastmod><i:image><i:loc>/x</i:loc></i:image></url>
<url><loc> https://docs.example.org/b?x=1&amp;y=2 </loc></url><url><loc>https://other.example/</loc></url></urlset>
"""
LLMS = b"# Mill\n\n> Rye.\n\n- [Guide](https://docs.example.org/guide.md): all\n- [More](more.md)\n[x]: /y\n[x]\n"
ROBOTS = "User-agent: *\nDisallow: /private/*.md$\nAllow: /\nCrawl-delay: 3\nSitemap: /x\n"
MOST = 3


@THOROUGHLY
@given(
    st.sampled_from(["sitemap", "llms"]).flatmap(
        lambda kind: st.tuples(st.just(kind), damaged(LLMS if kind == "llms" else SITEMAP))
    ),
    damaged_text(ROBOTS),
)
def test_a_list_of_pages_gives_addresses_of_its_host_or_is_refused(found: tuple[SiteKind, bytes], robots: str) -> None:
    kind, body = found
    line = SiteLine("links, line 1", kind, "https://docs.example.org/list")
    try:
        listed = read_list(body, line.url, line, robots, MOST)
    except FetchFailed as refused:
        one_line(refused)
        return
    assert len(listed.pages) <= MOST
    for url in (*listed.pages, *listed.lists):
        assert url.startswith(("https://docs.example.org", "http://docs.example.org", "https://www.docs.example.org"))
        assert is_id(f"kb:{url}")
    assert 0 <= crawl_pause(robots) <= LONGEST_PAUSE


def made_pack() -> tuple[bytes, str]:
    blob, tree = Blob.from_string(b"# Rye\n"), Tree()
    tree.add(b"rye.md", 0o100644, blob.id)
    tree.add(b"link.md", 0o120000, blob.id)
    commit = Commit()
    commit.tree, commit.message, commit.encoding = tree.id, b"More", b"UTF-8"
    commit.author = commit.committer = b"Mill <mill@example.org>"
    commit.author_time = commit.commit_time = commit.author_timezone = commit.commit_timezone = 0
    file = BytesIO()
    write_pack_objects(file, [(commit, None), (tree, None), (blob, None)], object_format=SHA1)
    return file.getvalue(), commit.id.decode()


PACK, COMMIT = made_pack()


def test_the_pack_that_is_damaged_here_is_a_good_one() -> None:
    files = read_pack(PACK, COMMIT, RepositorySelection("", PathFilter(), MOST))
    assert list(files.blobs) == ["rye.md"]
    assert list(files.texts.values()) == [b"# Rye\n"]


@THOROUGHLY
@given(damaged(PACK))
def test_a_pack_gives_files_or_is_refused(pack: bytes) -> None:
    try:
        files = read_pack(pack, COMMIT, RepositorySelection("", PathFilter(), MOST))
    except FetchFailed as refused:
        one_line(refused)
    else:
        assert set(files.texts.values()) <= {b"# Rye\n"}
