"""What `--check` says of the links file."""

from __future__ import annotations

import pytest
from aiohttp import ThreadedResolver

from commands.check import (
    LAST_ATTEMPT_FAILED,
    NOT_ASKED_YET,
    TRY_AGAIN,
    Finding,
    Verdict,
    address_rows,
    links_rows,
)
from services.knowledge import LINE_FORMS
from settings import load
from tests.commands.kb_folder import Base, html
from tests.commands.test_init_kb_sites import urlset
from tests.loopback.git_server import GIT, Repository, backend
from tests.loopback.web_server import page, status

WORDS = ", ".join(f"`{form.word}`" for form in LINE_FORMS)


def rows(base: Base) -> list[tuple[Verdict, str]]:
    found: list[Finding] = list(links_rows(load(base.root / "config.yaml").kb))
    assert {finding.about for finding in found} <= {"kb.links_file_path"}
    return [(finding.verdict, finding.says) for finding in found]


@pytest.mark.skipif(GIT is None, reason="git is not installed, which serves the repository of this test")
def test_each_line_tells_what_it_brings(base: Base) -> None:
    """Pitfall 70."""
    origin = base.server.origin
    Repository(base.root / "git" / "mill").commit({"docs/a.md": "# A\n\nRye.\n", "docs/b.png": b"\x89"})
    for path in ("/mill/info/refs", "/mill/git-upload-pack"):
        base.serve(path, backend(base.root / "git"))
    one = base.serve("/one", page(html("Mill one grinds rye.")))
    base.serve("/sitemap.xml", page(urlset((one, ""), (f"{origin}/x.css", ""))))
    lines = [one, f"sitemap: {origin}/sitemap.xml", f"git: {origin}/mill@main docs", "sitmap: oops"]
    base.link(*lines)
    (base.root / "config.yaml").write_text("kb: {}\n")
    assert rows(base)[1:3] == [
        (Verdict.WARNING, f"links.txt, line 2: sitemap: {origin}/sitemap.xml: {NOT_ASKED_YET}"),
        (Verdict.WARNING, f"links.txt, line 3: git: {origin}/mill@main docs: {NOT_ASKED_YET}"),
    ]
    assert base.run() == 0
    assert rows(base) == [
        (Verdict.OK, "named by themselves: 1 page"),
        (
            Verdict.OK,
            f"links.txt, line 2: sitemap: {origin}/sitemap.xml: 1 page; left out: 1 no documents, by their names",
        ),
        (
            Verdict.OK,
            f"links.txt, line 3: git: {origin}/mill@main docs: 1 file; left out: 1 no documents, by their names",
        ),
        (
            Verdict.WARNING,
            f"links.txt, line 4: it is no http or https URL, and begins with none of {WORDS}",
        ),
    ]


def test_a_line_that_could_not_be_had_says_so(base: Base) -> None:
    one = base.serve("/one", page(html("Mill one grinds rye.")))
    url = base.serve("/sitemap.xml", status(500))
    base.link(f"sitemap: {url}", f"git: {base.server.origin}/nothing")
    assert base.run() == 1
    failed = f"links.txt, line 1: sitemap: {url}: "
    why = f"{LAST_ATTEMPT_FAILED}: the server answered HTTP 500; {TRY_AGAIN}"
    assert rows(base)[0] == (Verdict.WARNING, f"{failed}{why}")
    second = f"links.txt, line 2: git: {base.server.origin}/nothing: {LAST_ATTEMPT_FAILED}: "
    assert rows(base)[1][1].startswith(f"{second}the server answered HTTP 404")
    base.serve("/sitemap.xml", page(urlset((one, ""))))
    base.run()
    base.serve("/sitemap.xml", status(500))
    base.run()
    assert rows(base)[0] == (Verdict.WARNING, f"{failed}1 page; {why}")


def test_a_list_that_is_not_there_or_cannot_be_read_has_no_rows(base: Base) -> None:
    (base.root / "config.yaml").write_text("kb: {}\n")
    assert rows(base) == []
    (base.folder / "links.txt").mkdir()
    assert rows(base) == []


def test_a_page_that_could_not_be_had_is_not_counted_and_named_with_the_reason(base: Base) -> None:
    one = base.serve("/one", page(html("Mill one grinds rye.")))
    gone, lost = base.serve("/gone", status(404)), base.serve("/lost", status(404))
    base.serve("/sitemap.xml", page(urlset((one, ""), (lost, ""))))
    base.link(one, gone, f"sitemap: {base.server.origin}/sitemap.xml")
    (base.root / "config.yaml").write_text("kb: {}\n")
    assert rows(base)[0] == (Verdict.OK, f"named by themselves: 2 pages; 2 of them {NOT_ASKED_YET}")
    assert base.run() == 1
    assert rows(base) == [
        (Verdict.OK, "named by themselves: 1 page, and 1 not fetched"),
        (Verdict.OK, f"links.txt, line 3: sitemap: {base.server.origin}/sitemap.xml: 1 page, and 1 not fetched"),
        (Verdict.WARNING, f"{gone}: not fetched: the server answered HTTP 404; {TRY_AGAIN}"),
        (Verdict.WARNING, f"{lost}: not fetched: the server answered HTTP 404; {TRY_AGAIN}"),
    ]
    base.link(one)
    assert rows(base) == [(Verdict.OK, "named by themselves: 1 page")], "also before the next update"
    base.run()
    assert rows(base) == [(Verdict.OK, "named by themselves: 1 page")]


async def test_an_address_that_is_not_public_is_foreseen(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 17: nothing is requested."""

    async def resolve(_: ThreadedResolver, host: str, *_more: object, **_named: object) -> list[dict[str, str]]:
        if host == "unknown.example":
            raise OSError("no such name")
        return [{"host": "10.0.0.5" if host == "wiki.example" else "93.184.215.14"}]

    monkeypatch.setattr(ThreadedResolver, "resolve", resolve)
    base.link(
        *("http://192.168.0.1/", "https://wiki.example/a", "https://wiki.example/b", "https://docs.example/faq"),
        *("https://unknown.example/", "http://127.0.0.1:9/", "http://nas.example/", "git: http://localhost/mill"),
    )
    (base.root / "config.yaml").write_text("kb: {web_fetch_private_hosts: [127.0.0.1, NAS.example]}\n")
    literal = "its address is not public; hosts of your own belong in kb.web_fetch_private_hosts"
    assert [(row.verdict, row.says) for row in await address_rows(load(base.root / "config.yaml"))] == [
        (Verdict.WARNING, f"192.168.0.1: {literal}"),
        (Verdict.WARNING, f"wiki.example: {literal.replace('address is', 'host name leads to an address that is')}"),
        (Verdict.WARNING, f"localhost: {literal}"),
    ]
    assert base.server.seen == []
