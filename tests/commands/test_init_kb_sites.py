"""`--init-kb` over sitemaps and llms.txt, from the command line to the files."""

from __future__ import annotations

import gzip

import pytest
from aiohttp import web

from services.knowledge import page_lists
from tests.commands.kb_folder import Base, html
from tests.loopback.web_server import Play, kept, page, redirect, status

PAGES, LISTS = 500, 5


def urlset(*pages: tuple[str, str]) -> str:
    entries = "".join(f"<url><loc>{url}</loc><lastmod>{changed}</lastmod></url>" for url, changed in pages)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'


def index(*lists: tuple[str, str]) -> str:
    entries = "".join(f"<sitemap><loc>{url}</loc><lastmod>{changed}</lastmod></sitemap>" for url, changed in lists)
    return f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</sitemapindex>'


def packed(text: str) -> Play:
    return page(gzip.compress(text.encode()), "application/gzip")


class Site:
    """A site of many pages: an index, packed lists, rules and pages with validators."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self.changed = dict.fromkeys(range(PAGES), "2026-01-01")
        for number in self.changed:
            self.write(number, "rye")
        base.serve("/robots.txt", page("User-agent: *\nDisallow: /docs/private/\nCrawl-delay: 0.001\n", "text/plain"))
        self.publish()

    def write(self, number: int, grain: str) -> None:
        self._base.serve(f"/docs/{number}", kept(html(f"Mill {number} grinds {grain}."), f'"{number} {grain}"'))

    def publish(self) -> None:
        origin = self._base.server.origin
        lists: list[tuple[str, str]] = []
        for part in range(LISTS):
            numbers = range(part * PAGES // LISTS, (part + 1) * PAGES // LISTS)
            pages = [(f"{origin}/docs/{number}", self.changed[number]) for number in numbers]
            pages += [(f"{origin}/docs/private/{part}", "2026-01-01"), (f"{origin}/docs/{part}.png", "2026-01-01")]
            url = self._base.serve(f"/sitemap-{part}.xml.gz", packed(urlset(*pages, (f"{origin}/blog/{part}", ""))))
            lists.append((url, max(changed for _, changed in pages)))
        self._base.serve("/sitemap.xml", kept(index(*lists), f'"{max(self.changed.values())}"'))


def asked(base: Base) -> list[str]:
    return [path for path, _ in base.server.seen]


@pytest.mark.slow
def test_a_site_is_fetched_once_and_then_as_far_as_it_has_changed(base: Base) -> None:
    """Pitfalls 36 and 58."""
    site = Site(base)
    base.link(f"sitemap: {base.server.origin}/sitemap.xml docs/**", f"{base.server.origin}/docs/7")
    assert base.run() == 0
    pages = [f"/docs/{number}" for number in range(PAGES)]
    lists = [f"/sitemap-{part}.xml.gz" for part in range(LISTS)]
    assert sorted(asked(base)) == sorted(["/robots.txt", "/sitemap.xml", *lists, *pages])
    assert asked(base)[:2] == ["/robots.txt", "/sitemap.xml"]
    assert f"{PAGES} pages: {PAGES} described" in base.out
    assert "5 kept out by robots.txt, 5 no documents, by their names, 5 left out by the line's globs" in base.err

    assert base.run() == 0
    # A page that the operator named by hand is asked for as ever.
    assert sorted(asked(base)) == ["/docs/7", "/sitemap.xml"]
    assert f"{PAGES} pages: 0 described" in base.out

    site.changed[123] = "2026-02-02"
    site.write(123, "wheat")
    site.publish()
    assert base.run() == 0
    assert sorted(asked(base)) == ["/docs/123", "/docs/7", "/sitemap-1.xml.gz", "/sitemap.xml"]
    assert "wheat" in base.text(f"{base.server.origin}/docs/123")


@pytest.mark.slow
def test_what_a_site_lists_no_more_is_gone(base: Base) -> None:
    one, two = (base.serve(f"/{name}", page(html(f"Mill {name} grinds rye."))) for name in ("one", "two"))
    line = f"sitemap: {base.serve('/sitemap.xml', page(urlset((one, '1'), (two, '1'))))}"
    base.link(line)
    assert base.run() == 0
    base.serve("/sitemap.xml", page(urlset((one, "1"))))
    assert base.run() == 0
    assert "1 page: 0 described, 0 recognised, 1 unchanged, 0 failed; 1 gone" in base.out
    assert f"kb:{two}\n" not in base.index


@pytest.mark.parametrize("path", ["/sitemap.xml", "/robots.txt"])
def test_a_site_that_cannot_be_listed_keeps_its_pages(base: Base, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Pitfalls 11 and 46."""
    monkeypatch.setattr("services.knowledge.source_pages.ROBOTS_SECONDS", 0.0)
    one = base.serve("/one", page(html("Mill one grinds rye.")))
    base.link(f"sitemap: {base.serve('/sitemap.xml', page(urlset((one, '1'))))}")
    assert base.run() == 0
    before = base.index
    base.serve(path, status(500))
    assert base.run() == 1
    assert "links.txt, line 1" in base.err
    assert "HTTP 500; its pages stay as they are" in base.err
    assert base.index == before
    # A line that was never known takes none of the pages of its host away, either.
    base.link(f"sitemap: {base.server.origin}/other.xml")
    assert base.run() == 1
    assert base.index == before


def entities(depth: int = 9) -> str:
    lines = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, depth))
    return f'<!DOCTYPE urlset [<!ENTITY e0 "rye">{lines}]><urlset><url><loc>&e{depth - 1};</loc></url></urlset>'


def hostile_lists() -> dict[str, tuple[Play, str]]:
    return {
        "/laughs.xml": (page(entities(), "application/xml"), "it declares a document type"),
        "/outside.xml": (
            page('<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset/>', "text/xml"),
            "it declares a document type",
        ),
        "/bomb.xml.gz": (
            page(gzip.compress(bytes(60_000_000)), "application/gzip"),
            "unpacked, it is larger than 50 MiB",
        ),
        "/cut.xml.gz": (
            page(gzip.compress(b"<urlset>" * 999)[:-20], "application/gzip"),
            "it is packed, and breaks off",
        ),
        "/page.xml": (page(html("Not found")), "it is no sitemap"),
        "/broken.xml": (page("<urlset><url>", "text/xml"), "its XML breaks off or is wrong"),
        "/klingon.xml": (page("<?xml version='1.0' encoding='klingon'?><urlset/>", "text/xml"), "is wrong in line 1"),
        "/inside.xml": (redirect("http://169.254.169.254/latest/meta-data/"), "its address is not public"),
        "/circle.xml": (redirect("/circle.xml"), "its redirects lead in a circle"),
    }


def test_hostile_lists_bring_nothing_and_say_why(base: Base) -> None:
    """Pitfalls 17, 21 and 64."""
    lists = hostile_lists()
    lines = [f"sitemap: {base.serve(path, play)}" for path, (play, _) in lists.items()]
    base.link(*lines, base.serve("/good", page(html("Mill one grinds rye."))))
    assert base.run() == 1
    for number, (_, words) in enumerate(lists.values(), 1):
        [said] = [line for line in base.err.splitlines() if f"links.txt, line {number}: " in line]
        assert words in said
    assert "1 page: 1 described" in base.out
    assert not any(path.startswith("/latest") for path in asked(base))


@pytest.mark.slow
def test_only_pages_of_the_site_itself_count_and_no_more_than_the_limit(base: Base) -> None:
    """Pitfalls 17 and 64: a list of 100,000 addresses, some of them elsewhere."""
    base.settings["max_pages_per_site"] = 10
    origin = base.server.origin
    urls = [f"http://169.254.169.254/{n}" for n in range(20)] + ["file:///etc/passwd", "http://u:p@127.0.0.1/x"]
    urls += [f"{origin}/{number}" for number in range(100_000)]
    for number in range(10):
        base.serve(f"/{number}", page(html(f"Mill {number} grinds rye.")))
    base.link(f"sitemap: {base.serve('/sitemap.xml', page(urlset(*((url, '') for url in urls))))}")
    assert base.run() == 0
    assert "10 pages: 10 described" in base.out
    assert "99990 beyond kb.max_pages_per_site" in base.err
    assert "20 on other hosts" in base.err
    assert "u:p" not in base.err


def test_lists_of_lists_end(base: Base) -> None:
    """Pitfall 64."""
    origin = base.server.origin
    for level in range(9):
        again = [(f"{origin}/{level + 1}.xml", ""), (f"{origin}/{level}.xml", ""), (f"{origin}/0.xml", "")]
        base.serve(f"/{level}.xml", page(index(*again)))
    base.link(f"sitemap: {origin}/0.xml")
    assert base.run() == 1
    assert [path for path in asked(base) if path.endswith(".xml")] == ["/0.xml", "/1.xml", "/2.xml"]


def test_an_llms_txt_brings_the_pages_that_it_links_to(base: Base) -> None:
    text = "# Mill\n\n- [Rye](/rye.md): how\n- [Wheat](wheat.md#top)\n- [Elsewhere](https://other.example/x)\n"
    base.serve("/rye.md", page("# Rye\n\nIt is ground slowly.\n", "text/markdown"))
    base.serve("/docs/wheat.md", page("# Wheat\n\nIt is ground fast.\n", "application/octet-stream"))
    base.link(f"llms: {base.serve('/docs/llms.txt', page(text, 'text/plain'))}")
    assert base.run() == 0
    assert base.text(f"{base.server.origin}/rye.md") == "# Rye\n\nIt is ground slowly.\n"
    assert base.text(f"{base.server.origin}/docs/wheat.md") == "# Wheat\n\nIt is ground fast.\n"
    assert "1 on other hosts" in base.err


def test_a_wrong_line_is_named_and_the_others_count(base: Base) -> None:
    base.link("sitemp: https://a.example/sitemap.xml", base.serve("/good", page(html("Mill one grinds rye."))))
    assert base.run() == 0
    assert "links.txt, line 1" in base.err
    assert "begins with none of `sitemap:`" in base.err


def test_a_pause_that_a_site_asks_for_is_kept_within_reason() -> None:
    assert page_lists.crawl_pause("User-agent: *\nCrawl-delay: 2\n") == 2
    assert page_lists.crawl_pause("User-agent: Millrace\nCrawl-delay: 86400\n") == page_lists.LONGEST_PAUSE
    assert page_lists.crawl_pause("User-agent: other\nCrawl-delay: 2\n") == 0
    assert page_lists.crawl_pause("\0<html>") == 0


def test_every_request_names_the_project(base: Base) -> None:
    async def refuses(request: web.Request) -> web.Response:
        return web.Response(status=200 if "Millrace" in request.headers["User-Agent"] else 403, text="")

    base.serve("/robots.txt", refuses)
    one = base.serve("/one", page(html("Mill one grinds rye.")))
    base.link(f"sitemap: {base.serve('/sitemap.xml', page(urlset((one, ''))))}")
    assert base.run() == 0
