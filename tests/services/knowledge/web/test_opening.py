from __future__ import annotations

import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest

from clock import WorkRunner
from services.knowledge.web.fetcher import RendererMissing, WebFetcher, open_web
from services.knowledge.web_interface import FetchFailed, Web
from services.storage import in_thread
from tests.loopback.web_server import WebServer, page
from tests.services.knowledge.web.fetching import failure_of, page_of

P = ParamSpec("P")
T = TypeVar("T")


def opened(renderer: str, run: WorkRunner = in_thread) -> Web:
    return open_web(
        run,
        renderer="browser" if renderer == "browser" else "http",
        timeout_seconds=20,
        max_bytes=1000,
        requests_per_second=100,
        private_hosts=["127.0.0.1"],
    ).pages


async def test_pages_are_fetched_over_plain_http(server: WebServer) -> None:
    server.paths["/"] = page("As it stands.", "text/plain")
    web = opened("http")
    assert isinstance(web, WebFetcher)
    assert (await page_of(web, server.origin)).text == "As it stands."
    await web.aclose()


async def test_what_is_configured_holds_of_the_page_and_of_its_text(server: WebServer) -> None:
    """`max_source_bytes` bounds both, as the text of a PDF may be longer than its bytes."""
    server.paths |= {"/": page("As it stands.", "text/plain"), "/long": page("x" * 1001, "text/plain")}
    bounds: list[int] = []

    async def run(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        bounds.extend(each for each in args if isinstance(each, int))
        return function(*args, **kwargs)

    web = opened("http", run)
    assert (await page_of(web, server.origin)).text == "As it stands."
    assert bounds == [1000]
    assert "larger than 1000 bytes" in await failure_of(web, f"{server.origin}/long")


async def test_a_browser_is_not_started_before_it_is_needed(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("playwright", reason="needs the extra `browser`")
    started: list[str] = []

    class NeverReady:
        async def __aenter__(self) -> None:
            started.append("a browser")
            raise FetchFailed("it does not start")

        async def __aexit__(self, *_: object) -> None:
            pytest.fail("it never began")

    monkeypatch.setattr("services.knowledge.web.browser.async_playwright", NeverReady)
    server.paths |= {"/plain": page("As it stands.", "text/plain"), "/shell": page("<p>To be rendered.")}
    web = opened("browser")
    assert (await page_of(web, f"{server.origin}/plain")).text == "As it stands."
    assert not started
    assert await failure_of(web, f"{server.origin}/shell") == "it does not start"
    assert started == ["a browser"]
    await web.aclose()


def test_without_its_extra_the_browser_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    monkeypatch.delitem(sys.modules, "services.knowledge.web.browser", raising=False)
    with pytest.raises(RendererMissing, match=r"kb\.web_fetch_renderer is `browser`.*set it to `http`"):
        opened("browser")
