"""`--init-kb` over web pages, from the command line to the files: pages that behave, and pages that do not."""

from __future__ import annotations

import asyncio
import gzip
import socket
from functools import partial

import pytest
from aiohttp import web

import streams.knowledge
from services.knowledge.source_kinds import stored_name
from services.knowledge.web import exchange, fetcher
from services.knowledge.web.client import CheckedClient
from tests.commands.kb_folder import Base, html
from tests.loopback.web_server import Play, hang, kept, page, redirect, status, stream
from tests.services.knowledge.web.fetching import Names

FILES = 40
PUBLIC = "93.184.215.14"


@pytest.mark.slow
def test_two_hundred_pages_cost_a_description_each_once(base: Base) -> None:
    """Pitfalls 36 and 37."""
    paths = [f"/{number:03}" for number in range(200)]
    base.link(*(base.serve(path, kept(html(f"Mill {path[1:]} grinds rye."), f'"{path}"')) for path in paths))
    assert base.run() == 0
    assert "0 files, 200 pages: 200 described, 0 recognised, 0 unchanged, 0 failed; 0 gone" in base.out
    assert base.index.count("\nkb:http") == 199
    assert {base.status(f"{base.server.origin}{path}") for path in paths} == {"success"}
    index, pages = base.index, base.stamps()

    assert base.run() == 0
    assert {path for path, _ in base.server.seen} == set(paths)
    assert base.server.body_bytes == 0
    assert "200 pages: 0 described" in base.out
    assert {base.status(f"{base.server.origin}{path}") for path in paths} == {"not_modified"}
    assert (base.index, base.stamps()) == (index, pages)

    changed = base.serve("/007", kept(html("Mill 007 grinds wheat now."), '"new"'))
    assert base.run() == 0
    assert "200 pages: 1 described" in base.out
    assert base.status(changed) == "success"
    assert "wheat now" in base.text(changed)
    assert "wheat now" in base.index


def test_whoever_runs_it_by_hand_waits_for_no_retry(base: Base) -> None:
    """What was had is asked for again in its time."""
    base.settings |= {"runtime_refresh_tick_seconds": 86_400, "url_refresh_min_interval_hours": 72}
    good, bad = base.serve("/good", page(html("Mill one grinds rye."))), base.serve("/bad", status(500))
    base.link(good, bad)
    assert base.run() == 1
    base.serve("/bad", page(html("Mill two grinds wheat.")))
    assert base.run() == 0
    assert [path for path, _ in base.server.seen] == ["/bad"]
    assert base.status(bad) == "success"
    assert base.run() == 0
    assert base.server.seen == []


def bad_pages() -> dict[str, tuple[Play, str, str]]:
    return {
        "/large": (stream(b"x" * 65_536, repeat=800), "error", "larger than 100000 bytes"),
        "/announced": (stream(b"x", length=50_000_000, cut=True), "error", "larger than 100000 bytes"),
        "/bomb": (page(gzip.compress(bytes(50_000_000)), Content_Encoding="gzip"), "error", "larger than 100000 bytes"),
        "/circle": (redirect("/circle"), "error", "in a circle"),
        "/far": (redirect("/far1"), "error", "more than 5 times"),
        "/inside": (redirect("http://127.0.0.2:1/"), "error", "not public"),
        "/metadata": (redirect("http://169.254.169.254/latest/meta-data/"), "error", "not public"),
        "/gone": (status(404), "error", "HTTP 404"),
        "/broken": (status(500), "error", "HTTP 500"),
        "/empty": (page("<html><body> </body></html>"), "error", "no text"),
        "/hangs": (hang, "timeout", "within 5 s"),
    }


@pytest.mark.slow
@pytest.mark.real_time
def test_pages_that_misbehave_end_as_they_should_and_hold_nobody_up(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfalls 17, 21, 36 and 43: what each page is met with, in the cache, on the console and in the exit code."""
    monkeypatch.setattr(streams.knowledge, "PAUSE_SECONDS", 0.01)  # so that what is done early can be seen early
    base.settings["web_fetch_timeout_seconds"] = 5
    base.settings["url_refresh_min_interval_hours"] = 72
    bad = {base.serve(path, play): expected for path, (play, *expected) in bad_pages().items()}
    for number in range(1, 9):
        base.serve(f"/far{number}", redirect(f"/far{number + 1}"))
    early: list[str] = []

    async def watches_and_hangs(request: web.Request) -> web.StreamResponse:
        while True:
            await asyncio.sleep(0.01)
            if (base.folder / "index.txt").exists() and base.index.count("kb:files/") == FILES:
                early.append(base.index)
                return await hang(request)

    base.serve("/hangs", watches_and_hangs)
    good = base.serve("/good", page(html("The miller's wages.")))
    # What it says it is, it is not.
    misnamed = base.serve("/misnamed", page(html("Mühle, größer").encode(), "text/html; charset=iso-8859-1"))
    base.link(*bad, misnamed, good)
    (base.folder / "sources" / "files").mkdir()
    for number in range(FILES):
        (base.folder / "sources" / "files" / f"{number:02}.md").write_text(f"# Subject {number}\n")

    assert base.run() == 1
    for url, (expected, words) in bad.items():
        assert base.status(url) == expected, url
        [line] = [line for line in base.err.splitlines() if f"fetch: {url}: " in line]
        assert words in line
        assert not (base.folder / "web-cache" / stored_name(url)).exists()
        assert f"kb:{url}\n" not in base.index
    # The files' descriptions were on disk while the slowest page was still being waited for.
    assert early
    assert f"{FILES} files, {len(bad) + 2} pages: {FILES + 2} described, 0 recognised" in base.out
    assert f"0 unchanged, {len(bad)} failed" in base.out
    assert f"the index has {FILES + 2} entries" in base.out
    assert base.status(good) == base.status(misnamed) == "success"
    assert "Mühle, größer" in base.text(misnamed)

    assert base.run() == 1  # by hand: what failed is tried again, and nothing else is due
    assert base.server.seen
    assert not {"/good", "/misnamed"} & {path for path, _ in base.server.seen}


def test_a_page_that_fails_later_keeps_its_text_and_its_place(base: Base) -> None:
    """Pitfall 36."""
    url = base.serve("/mill", page(html("The miller's wages.")))
    base.link(url)
    assert base.run() == 0
    index, text = base.index, base.text(url)
    base.serve("/mill", status(500))
    assert base.run() == 1
    assert base.status(url) == "error"
    assert (base.index, base.text(url)) == (index, text)


class Rerouted(socket.socket):
    """Ends on loopback where it is told to dial `PUBLIC`."""

    def connect(self, address: tuple[str, int], /) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (IP alone)
        super().connect(("127.0.0.1", address[1]) if address[0] == PUBLIC else address)


@pytest.mark.parametrize("hops", [0, 1], ids=["in the next run", "behind a redirect"])
def test_a_name_that_leads_inside_at_the_second_look_is_not_followed(
    base: Base, monkeypatch: pytest.MonkeyPatch, hops: int
) -> None:
    """Pitfall 17."""

    def rerouted(info: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
        return Rerouted(info[0], info[1], info[2])

    names = Names([PUBLIC], ["127.0.0.1"])
    monkeypatch.setattr(exchange, "_socket", rerouted)
    monkeypatch.setattr(fetcher, "CheckedClient", partial(CheckedClient, resolver=lambda: names))
    base.settings["web_fetch_private_hosts"] = []
    base.serve("/page", page(html("The miller's wages.")))
    base.serve("/away", redirect("/page"))
    url = f"http://mill.example:{base.server.port}/{'away' if hops else 'page'}"
    base.link(url)
    if hops:
        assert base.run() == 1
        assert "Nothing to answer from" in base.out
    else:
        assert base.run() == 0
        assert base.run() == 1
        assert "miller's wages" in base.text(url)
    assert base.status(url) == "error"
    assert "its host name leads to an address that is not public" in base.err
    assert [path for path, _ in base.server.seen] == (["/away"] if hops else [])
    assert len(names.asked) == 2
