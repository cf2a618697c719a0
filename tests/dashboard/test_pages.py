"""Every page over HTTP: what it shows, to whom, and what it cannot be made to do."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestClient
from yarl import URL

from dashboard import serving
from dashboard.access import FREE_TRIES
from reporting.cost import Prices
from services.llm import StepTokens
from services.team import LibraryUnusable, LibraryUnwritable, Overview
from tests.dashboard.made import NASTY, PAIR, REFUSED, REPLIED, TOKEN, Box, page, served

pytestmark = pytest.mark.real_time

PAGES = (
    "/",
    "/answers",
    "/answers/a1",
    "/answers/b1",
    "/answers/c1",
    "/gaps",
    "/knowledge",
    "/knowledge?q=quota",
    "/knowledge?gap=b1",
    "/knowledge/topics/quota",
    f"/knowledge/pairs/{PAIR.id}/remove",
    "/cost",
)
REMOVE = f"/knowledge/pairs/{PAIR.id}/remove"
RESTORE = f"/knowledge/pairs/{PAIR.id}/restore"

Browser = TestClient[Any, Any]


async def key_on(client: Browser, path: str) -> str:
    (key,) = set(re.findall(r'name="key" value="(\w+)"', await page(client, path)))
    return key


@pytest.mark.parametrize("texts", [False, True])
async def test_pages_hold_no_markup_of_others_and_texts_only_where_asked_for(texts: bool) -> None:
    async with served(Box(texts=texts)) as client:
        everything = "".join([await page(client, path) for path in PAGES])
    assert "<script>" not in everything
    assert "onerror=alert(1)>" not in everything
    assert NASTY not in everything
    # Documentation may hold the same, and is shown in any case.
    assert ("How do I restore?" in everything) is texts
    assert ("My quota is full" in everything) is texts
    assert ("Does the quota count deleted" in everything) is texts
    assert ("anna-private" in everything) is texts


async def test_people_are_pseudonyms_everywhere() -> None:
    async with served(Box(texts=True)) as client:
        everything = "".join([await page(client, path) for path in PAGES])
    assert "12d12d12" in everything  # of Anna, whose id is 301
    assert re.search(r"\b30[12]\b", everything) is None


async def test_every_page_has_the_strict_headers_landmarks_and_a_way_past_the_menu() -> None:
    async with served(Box()) as client:
        for path in PAGES:
            async with client.get(path) as response:
                text = await response.text()
                policy = response.headers["Content-Security-Policy"]
                assert policy.startswith("default-src 'self'; ")
                assert "unsafe" not in policy
                assert "frame-ancestors 'none'" in policy
                assert response.headers["Cache-Control"] == "no-store"
                assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert text.index('class="skip" href="#content"') < text.index("<header") < text.index("<main")
            assert text.count("<h1>") == 1
            assert text.count('aria-current="page"') == 1
            assert re.search(r"<[^>]+ (?:style|on\w+)=", text) is None
            assert re.findall(r"<script(?![^>]* src=)", text) == []
            for table in re.findall(r"<table.*?</table>", text, re.DOTALL):
                assert '<th scope="col"' in table
            for field in re.findall(r'<(?:input|select) id="(\w+)"', text):
                assert f'<label for="{field}">' in text


async def test_nothing_is_asked_of_other_machines() -> None:
    async with served(Box()) as client:
        for path in PAGES:
            text = await page(client, path)
            loaded = re.findall(r'<(?:script|img|link|iframe)[^>]* (?:src|href)="([^"]+)"', text)
            assert all(address.startswith("/static/") for address in loaded)


async def test_static_files_may_be_kept_and_others_are_none() -> None:
    async with served(Box()) as client:
        (address,) = set(re.findall(r'href="(/static/style.css\?v=\w+)"', await page(client, "/")))
        async with client.get(address) as response:
            assert "immutable" in response.headers["Cache-Control"]
            assert response.content_type == "text/css"
        for name in ("nothing.js", "..%2Faccess.py"):
            async with client.get(URL(f"/static/{name}", encoded=True)) as response:
                assert response.status == 404


@pytest.mark.parametrize("path", ["/answers/ff", "/knowledge/topics/none", "/knowledge/pairs/qa_1/remove"])
async def test_what_is_not_there_is_said_so(path: str) -> None:
    async with served(Box()) as client, client.get(path) as response:
        assert response.status == 404
        assert "Back" in await response.text()


async def test_answers_are_searched_and_paged() -> None:
    box = Box(entries=[REPLIED] * 250)
    async with served(box) as client:
        first = await page(client, "/answers?q=replied&result=replied")
        assert "250 of the last ones fit." in first
        assert 'href="/answers?q=replied&amp;result=replied&amp;from=100">Older' in first
        assert "Newer" not in first
        last = await page(client, "/answers?from=200")
        assert ("Newer" in last, "Older" in last) == (True, False)
        assert "<tbody>" in await page(client, "/answers?from=x")
        assert "0 of the last ones fit." in await page(client, "/answers", params={"q": "nowhere"})


async def test_a_gap_becomes_a_search_without_its_words_in_the_address() -> None:
    box = Box()
    async with served(box) as client:
        (path,) = re.findall(r'href="(/knowledge\?gap=\w+)"', await page(client, "/gaps"))
        text = await page(client, path)
    assert box.search.asked == [box.entries[1].question]
    assert "its words are not shown" in text
    assert "Enough to <strong>answer</strong>" in text


async def test_cost_is_shown_with_and_without_a_price() -> None:
    async with served(Box()) as client:
        assert "3.00" in await page(client, "/cost")
    async with served(Box(prices=Prices(), days={"2026-02-02": {"gate": StepTokens(1, 7, 0)}}, entries=[])) as client:
        text = await page(client, "/cost")
        assert "price_per_million" in text
    async with served(Box(days={}, entries=[])) as client:
        assert "No model was asked." in await page(client, "/cost")


async def test_what_cannot_be_read_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box()

    async def broken() -> Overview:
        raise LibraryUnusable("decisions.jsonl: line 3 is damaged")

    monkeypatch.setattr(box.team, "overview", broken)
    async with served(box) as client, client.get("/knowledge") as response:
        assert response.status == 500
        assert "decisions.jsonl: line 3 is damaged" in await response.text()


# Corrections


async def test_a_pair_is_removed_and_restored_after_a_second_question() -> None:
    box = Box()
    async with served(box) as client:
        assert f'href="{REMOVE}"' in await page(client, "/knowledge/topics/quota")
        asked = await page(client, REMOVE)
        assert "Remove this conversation?" in asked
        assert box.team.removed == []
        async with client.post(REMOVE, data={"key": await key_on(client, REMOVE)}) as response:
            assert response.status == 200
            assert "removed." in (text := await response.text())
            assert f'href="{RESTORE}"' in text
        assert box.team.removed == [PAIR.id]
        assert f'href="{RESTORE}"' in await page(client, "/knowledge")
        async with client.post(RESTORE, data={"key": await key_on(client, RESTORE)}) as response:
            assert response.status == 200
        assert box.team.removed == []


@pytest.mark.parametrize(
    ("data", "headers"),
    [
        ({}, {}),
        ({"key": "0" * 64}, {}),
        (None, {"Origin": "http://evil.example"}),
        (None, {"Sec-Fetch-Site": "cross-site"}),
    ],
)
async def test_a_form_of_another_page_changes_nothing(data: dict[str, str] | None, headers: dict[str, str]) -> None:
    box = Box()
    async with served(box) as client:
        sent = {"key": await key_on(client, REMOVE)} if data is None else data
        async with client.post(REMOVE, data=sent, headers=headers) as response:
            assert response.status == 403
    assert box.team.removed == []


async def test_the_key_of_one_session_does_not_serve_another() -> None:
    box = Box()
    async with served(box) as client:
        key = await key_on(client, REMOVE)
        client.session.cookie_jar.clear()
        async with client.post(REMOVE, data={"key": key}) as response:
            assert response.status == 403
    assert box.team.removed == []


async def test_where_nothing_may_be_corrected_nothing_is_offered() -> None:
    box = Box(may_correct=False)
    async with served(box) as client:
        assert "Remove" not in await page(client, "/knowledge/topics/quota")
        async with client.get(REMOVE) as response:
            assert response.status == 404
    box.token = TOKEN
    async with served(box) as client, client.post(REMOVE, headers={"Authorization": f"Bearer {TOKEN}"}) as response:
        assert response.status == 404
    assert box.team.removed == []


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (REFUSED, 409, "it was removed already"),
        (LibraryUnwritable("the disk is full"), 500, "the disk is full"),
        (OSError(28, "No space left"), 500, "No space left"),
    ],
)
async def test_a_correction_that_fails_says_why(error: Exception, status: int, says: str) -> None:
    box = Box()
    box.team.refusal = error
    async with served(box) as client, client.post(REMOVE, data={"key": await key_on(client, REMOVE)}) as response:
        assert response.status == status
        assert says in await response.text()


# Who may look


async def test_another_name_is_not_served_so_that_rebound_names_lead_nowhere() -> None:
    async with served(Box()) as client:
        for path in (*PAGES, "/login", "/events", "/static/app.js"):
            async with client.get(path, headers={"Host": "rebound.example"}) as response:
                assert response.status == 421
        async with client.get("/", headers={"Host": "bots.internal:9090"}) as response:
            assert response.status == 200


async def test_without_the_token_there_is_only_the_form() -> None:
    async with served(Box(token=TOKEN)) as client:
        for path in PAGES:
            async with client.get(path, allow_redirects=False) as response:
                assert (response.status, response.headers["Location"]) == (303, "/login")
        for method, path in (("GET", "/events"), ("POST", REMOVE), ("POST", "/logout")):
            async with client.request(method, path) as response:
                assert response.status == 401
        assert 'type="password"' in await page(client, "/login")


async def test_the_token_gives_a_cookie_that_scripts_and_other_sites_cannot_use() -> None:
    async with served(Box(token=TOKEN)) as client:
        async with client.post("/login", data={"token": TOKEN}, allow_redirects=False) as response:
            assert (response.status, response.headers["Location"]) == (303, "/")
            cookie = response.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            assert TOKEN not in cookie
            assert "Secure" not in cookie
        text = await page(client, "/")
        assert TOKEN not in text
        async with client.post("/logout", data={"key": await key_on(client, "/")}) as response:
            assert 'type="password"' in await response.text()
        assert 'type="password"' in await page(client, "/")


async def test_behind_a_proxy_with_tls_the_cookie_stays_there() -> None:
    async with served(Box(token=TOKEN)) as client:
        headers = {"X-Forwarded-Proto": "https"}
        async with client.post("/login", data={"token": TOKEN}, headers=headers, allow_redirects=False) as response:
            assert "Secure" in response.headers["Set-Cookie"]


async def test_wrong_tokens_are_refused_and_slowed_down() -> None:
    box = Box(token=TOKEN)
    async with served(box) as client:
        for _ in range(FREE_TRIES):
            async with client.post("/login", data={"token": "a guess"}) as response:
                assert response.status == 401
                assert "That is not the token" in await response.text()
        for _ in range(2):
            async with client.post("/login", data={"token": "a guess"}) as response:
                assert (response.status, response.headers["Retry-After"]) == (429, "2")
        async with client.get("/", headers={"Authorization": "Bearer guess"}) as response:
            assert response.status == 429
        # The right one is let in all the while.
        async with client.get("/", headers={"Authorization": f"Bearer {TOKEN}"}) as response:
            assert response.status == 200
        async with client.post("/login", data={"token": TOKEN}, allow_redirects=False) as response:
            assert response.status == 303


async def test_programs_send_the_token_in_a_header_and_need_no_key() -> None:
    box = Box(token=TOKEN)
    async with served(box) as client:
        async with client.get("/", headers={"Authorization": "Bearer wrong"}) as response:
            assert response.status == 401
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with client.get("/answers", headers=headers) as response:
            assert response.status == 200
            assert "Set-Cookie" not in response.headers
        async with client.post(REMOVE, headers=headers) as response:
            assert response.status == 200
    assert box.team.removed == [PAIR.id]


async def test_without_a_token_there_is_nothing_to_log_in_to() -> None:
    async with served(Box()) as client:
        async with client.get("/login", allow_redirects=False) as response:
            assert (response.status, response.headers["Location"]) == (303, "/")
        assert "Log out" not in await page(client, "/")


# Events


async def next_event(response: aiohttp.ClientResponse) -> dict[str, Any]:
    async for line in response.content:
        if line.startswith(b"data: "):
            return json.loads(line[6:])
    raise AssertionError("the stream has ended")


async def test_events_bring_what_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "EVERY_SECONDS", 0.0)
    box = Box()
    async with served(box) as client, client.get("/events") as response:
        assert response.content_type == "text/event-stream"
        assert (await next_event(response))["cells"]["gate"]["in_flight"] == "0"
        box.meter("gate", 2)
        assert (await next_event(response))["cells"]["gate"]["in_flight"] == "2"


async def test_a_page_that_was_closed_is_noticed_and_pages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr(serving, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(serving, "STREAMS", 1)
    box = Box()
    async with served(box) as client:
        async with client.get("/events") as response:
            await next_event(response)
            await next_event(response)  # a heartbeat
            async with client.get("/events") as refused:
                assert refused.status == 503
        async with asyncio.timeout(10):
            while box.meter.changed:  # noqa: ASYNC110 (the server notices with its next heartbeat)
                await asyncio.sleep(0.01)


async def test_open_pages_do_not_keep_the_server_from_closing() -> None:
    box = Box()
    async with served(box) as client:
        response = await client.get("/events")
        await next_event(response)
        async with asyncio.timeout(5):
            await client.server.close()
        response.close()
    assert box.meter.changed == []
