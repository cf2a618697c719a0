"""Every page over HTTP: what it shows, to whom, and what it cannot be made to do."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from html import unescape
from typing import Any
from urllib.parse import unquote

import aiohttp
import pytest
from aiohttp.test_utils import TestClient
from yarl import URL

from dashboard import KnownSource, pages, serving
from dashboard.access import FREE_TRIES, MAX_SESSIONS
from model.health import Condition, HealthTopic, Trouble
from reporting.cost import Prices
from reporting.reading import VotedQuestion
from services.llm import StepTokens
from services.team import LibraryUnusable, LibraryUnwritable, Overview
from tests.dashboard.made import AT, CAPTURED, NASTY, PAIR, REFUSED, REPLIED, TOKEN, UNANSWERED, Box, page, served

pytestmark = pytest.mark.real_time

PAGES = (
    "/",
    "/flow",
    "/answers",
    "/answers?show=all",
    "/answers/a1",
    "/answers/b1",
    "/answers/c1",
    "/gaps",
    "/knowledge",
    "/knowledge?q=quota",
    "/knowledge?gap=b1",
    "/knowledge?state=failing",
    "/knowledge/topics/quota",
    f"/knowledge/pairs/{PAIR.id}/remove",
    "/cost",
    "/audit",
)
DISMISS, UNDISMISS, ANSWER = "/gaps/b1/dismiss", "/gaps/b1/restore", "/gaps/b1/answer"
REMOVE = f"/knowledge/pairs/{PAIR.id}/remove"
RESTORE = f"/knowledge/pairs/{PAIR.id}/restore"

Browser = TestClient[Any, Any]


async def key_on(client: Browser, path: str) -> str:
    (key,) = set(re.findall(r'name="key" value="(\w+)"', await page(client, path)))
    return key


def hostile(*, texts: bool) -> Box:
    """Names and words of others in each place that shows some."""
    broken = KnownSource(f"kb:https://example.org/{NASTY}", "url", f"not fetched: {NASTY}", True, 1, AT, NASTY, AT)
    trouble = Condition(topic=HealthTopic.SOURCES, troubles={NASTY: Trouble(AT, AT)}, detail=NASTY)
    error = Condition(topic=HealthTopic.ERRORS, troubles={"": Trouble(AT, AT)}, detail=f"streams: {NASTY}")
    voted = VotedQuestion(1, AT, f"Why? {NASTY}", (NASTY,), 0, 3, REPLIED.message_ids[-1])
    asked = replace(UNANSWERED, question=f"Does the quota count deleted snapshots? {NASTY}")
    return Box(
        entries=[REPLIED, asked, CAPTURED],
        held=[broken],
        voted=[voted],
        conditions=[Condition(topic=HealthTopic.DISCORD), trouble, error],
        notice=f"This is {NASTY}",
        texts=texts,
    )


@pytest.mark.parametrize("texts", [False, True])
async def test_pages_hold_no_markup_of_others_and_texts_only_where_asked_for(texts: bool) -> None:
    async with served(hostile(texts=texts)) as client:
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
    assert "4626f500" in everything  # of Anna
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


@pytest.mark.parametrize(
    "path",
    ["/answers/ff", "/knowledge/topics/none", "/knowledge/pairs/qa_1/remove", "/nowhere", "/a/b/c", "/processes"],
)
async def test_what_is_not_there_is_said_so_with_the_way_to_all_pages(path: str) -> None:
    async with served(Box()) as client, client.get(path) as response:
        assert response.status == 404
        text = await response.text()
        assert "Back" in text
        assert all(f'<a href="{other}">' in text for other in ("/", "/answers", "/gaps", "/knowledge", "/cost"))


async def test_a_page_can_be_asked_for_without_its_content() -> None:
    async with served(Box(token=TOKEN)) as client:
        async with client.head("/gaps", allow_redirects=False) as response:
            assert (response.status, response.headers["Location"]) == (303, "/login?to=/gaps")
        headers = {"Authorization": f"Bearer {TOKEN}"}
        for path in (*PAGES, "/login", "/static/app.js"):
            async with client.head(path, headers=headers) as response:
                assert (response.status, await response.read()) == (200, b"")
        async with client.head("/nowhere", headers=headers) as response:
            assert response.status == 404


async def test_answers_are_searched_and_paged() -> None:
    box = Box(entries=[REPLIED] * 90 + [UNANSWERED])
    async with served(box) as client:
        first = await page(client, "/answers?q=replied&show=replies")
        assert "90 fit, of the last 91 things" in first
        assert 'href="/answers?q=replied&amp;show=replies&amp;from=40">Older' in first
        assert "Newer" not in first
        last = await page(client, "/answers?from=80")
        assert ("Newer" in last, "Older" in last, "81 to 90 of 90" in last) == (True, False, True)
        assert "<tbody>" in await page(client, "/answers?from=x")
        assert "0 fit, of the last 91 things" in await page(client, "/answers", params={"q": "nowhere"})


async def test_replies_are_shown_first_and_the_rest_is_behind_a_filter() -> None:
    async with served(Box(texts=True)) as client:
        first = await page(client, "/answers")
        assert ('href="/answers/a1"' in first, 'href="/answers/b1"' in first) == (True, False)
        assert 'href="/answers?show=unanswered">Without a reply <span class="dim">1</span>' in first
        others = await page(client, "/answers?show=unanswered")
        assert ('href="/answers/a1"' in others, 'href="/answers/b1"' in others) == (False, True)
        assert "Does the quota count deleted" in others
        assert "not kept" in await page(client, "/answers?show=captures")
        assert 'href="/answers/a1"' in await page(client, "/answers?show=nonsense")


async def test_sources_are_filtered_and_paged() -> None:
    held = [KnownSource(f"kb:{at}.md", "file", "indexed", False, 1, AT, "About") for at in range(90)]
    box = Box(held=[*held, KnownSource("kb:bad.md", "file", "not fetched: HTTP 500", True, 1, AT, "")])
    async with served(box) as client:
        first = await page(client, "/knowledge")
        assert first.count("kb:") == 40
        assert "1 to 40 of 91" in first
        assert 'href="/knowledge?from=40#sources">More' in first
        failing = await page(client, "/knowledge?state=failing")
        assert (failing.count("kb:"), "HTTP 500" in failing) == (1, True)
        assert "None fits." in await page(client, "/knowledge?source=nowhere")


async def test_where_discord_is_gone_the_first_page_and_the_events_say_so() -> None:
    gone = Condition(topic=HealthTopic.DISCORD, troubles={"": Trouble(AT + 3400, AT + 3600)})
    async with served(Box(conditions=[gone])) as client:
        text = await page(client, "/")
        assert re.search(r'is-ill" id="verdict">Discord is not connected since 2026-02-02 03:36', text)
        assert "Live" not in text  # only the script says so
        async with client.get("/events") as response:
            health = (await next_event(response))["health"]
        assert (health["state"], health["rows"][0]["topic"]) == ("ill", "discord")
        assert health["verdict"] in text


async def test_what_nobody_runs_has_no_flow_and_a_replay_nothing_that_could_be_ill() -> None:
    async with served(Box(meter=None, notice="Nothing runs here.")) as client:
        text = await page(client, "/")
        assert "Nothing runs here." in text
        assert '"/flow"' not in text
        assert "<script" not in text
        assert "Is it well?" not in text
        for path in ("/flow", "/events"):
            async with client.get(path) as response:
                assert response.status == 404
        assert "2.3" not in await page(client, "/answers/a1")


async def test_the_numbers_of_the_charts_are_a_table_as_well() -> None:
    async with served(Box()) as client:
        text = await page(client, "/")
        assert re.search(r"<tr><th scope=\"row\"><time>2026-02-02</time></th><td class=\"number\">2</td>", text)
        assert text.count('role="img"') == 1
        assert "Nobody voted in this time." in text
    async with served(Box(entries=[])) as client:
        assert "Nobody asked anything in this time." in await page(client, "/")


async def test_a_library_that_cannot_be_read_hides_nothing_else_on_the_first_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = Box(conditions=[Condition(topic=HealthTopic.DISCORD)])

    async def broken() -> Overview:
        raise LibraryUnusable("decisions.jsonl: line 3 is damaged")

    monkeypatch.setattr(box.team, "overview", broken)
    async with served(box) as client:
        text = await page(client, "/")
    assert "decisions.jsonl: line 3 is damaged" in text
    assert "Nothing is wrong so far" in text


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
        assert "No model was asked in the last 30 days." in await page(client, "/cost")


async def test_what_cannot_be_read_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box()

    async def broken() -> Overview:
        raise LibraryUnusable("decisions.jsonl: line 3 is damaged")

    monkeypatch.setattr(box.team, "overview", broken)
    async with served(box) as client, client.get("/knowledge") as response:
        assert response.status == 500
        assert "decisions.jsonl: line 3 is damaged" in await response.text()


# Corrections


async def test_a_gap_is_dismissed_stays_so_and_can_be_restored() -> None:
    box = Box(texts=True)
    async with served(box) as client:
        async with client.post(DISMISS, data={"key": await key_on(client, "/gaps")}) as response:
            assert (response.status, response.url.path) == (200, "/gaps")
        assert box.dismissed.ids == {0xB1}
        left = await page(client, "/gaps")
        assert f'action="{UNDISMISS}"' in left
        assert f'action="{DISMISS}"' not in left
        assert "None is left: all were dismissed." in left
        assert "Write what is missing" not in await page(client, "/")
        async with client.post(UNDISMISS, data={"key": await key_on(client, "/gaps")}) as response:
            assert response.status == 200
        assert box.dismissed.ids == set()


async def test_a_gap_that_cannot_be_dismissed_now_says_so_and_an_answer_to_it_counts() -> None:
    box = Box(texts=True)
    box.dismissed.broken = OSError("no worker has partition 0 now; start one with --role worker")
    async with served(box) as client:
        async with client.post(DISMISS, data={"key": await key_on(client, "/gaps")}) as response:
            assert response.status == 500
            said = await response.text()
            assert "The gap stays as it is: no worker has partition 0 now; start one with --role worker" in said
        form = {"key": await key_on(client, ANSWER), "question": "Why?", "answer": "So."}
        async with client.post(ANSWER, data=form) as response:
            assert response.status == 200
            assert "Stored and filed. The gap is not dismissed: no worker has partition 0" in await response.text()


async def test_where_nothing_may_be_changed_no_gap_is_dismissed() -> None:
    box = Box(may_correct=False, token=TOKEN)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with served(box) as client:
        async with client.get("/gaps", headers=headers) as response:
            assert "Dismiss" not in await response.text()
        async with client.post(DISMISS, headers=headers) as response:
            assert response.status == 404
        box.may_correct = True
    async with served(box) as client:
        async with client.post("/gaps/ff/dismiss", headers=headers) as response:
            assert response.status == 404
        async with client.post(DISMISS) as response:
            assert response.status == 401
    assert box.dismissed.ids == set()


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
        for path in (REMOVE, DISMISS):
            async with client.post(path, data=sent, headers=headers) as response:
                assert response.status == 403
                assert "<nav" in await response.text()
    assert (box.team.removed, box.dismissed.ids) == ([], set())


async def test_the_key_of_one_session_does_not_serve_another() -> None:
    box = Box(token=TOKEN)
    async with served(box) as client:
        await client.post("/login", data={"token": TOKEN})
        key = await key_on(client, REMOVE)
        client.session.cookie_jar.clear()
        await client.post("/login", data={"token": TOKEN})
        async with client.post(REMOVE, data={"key": key}) as response:
            assert response.status == 403
    assert box.team.removed == []


async def test_a_page_of_another_origin_takes_the_dashboard_from_nobody() -> None:
    box = Box()
    async with served(box) as client:
        key = await key_on(client, "/gaps")
        strange = {"Sec-Fetch-Site": "cross-site", "Cookie": ""}
        for _ in range(MAX_SESSIONS + 1):
            await page(client, "/cost", headers=strange)
        async with client.get("/events", headers=strange) as response:
            assert response.status == 403
        async with client.post(DISMISS, data={"key": key}, allow_redirects=False) as response:
            assert response.status == 303


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
                to = "/login" if path == "/" else f"/login?to={path}"
                assert (response.status, unquote(response.headers["Location"])) == (303, to)
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


async def test_after_the_login_one_is_where_one_wanted_to_go() -> None:
    async with served(Box(token=TOKEN)) as client:
        async with client.get("/knowledge?state=failing&source=a%20b") as response:
            form = await response.text()
        (to,) = re.findall(r'name="to" value="([^"]+)"', form)
        async with client.post("/login", data={"token": "a guess", "to": unescape(to)}) as response:
            assert f'name="to" value="{to}"' in await response.text()
        async with client.post("/login", data={"token": TOKEN, "to": unescape(to)}) as response:
            assert response.url.path == "/knowledge"
            assert dict(response.url.query) == {"state": "failing", "source": "a b"}


@pytest.mark.parametrize(
    "to",
    [
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "/\r\nX: y",
        "gaps",
        "",
        "//[",
        "///",
        f"/{'a' * 3000}",
    ],
)
async def test_a_login_leads_to_pages_of_this_dashboard_only(to: str) -> None:
    async with served(Box(token=TOKEN)) as client:
        async with client.get("/login", params={"to": to}) as response:
            assert 'name="to" value="/"' in await response.text()
        async with client.post("/login", data={"token": TOKEN, "to": to}, allow_redirects=False) as response:
            assert (response.status, response.headers["Location"]) == (303, "/")


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
        assert (await next_event(response))["cells"]["gate"]["in_flight"] == ""
        assert box.meter is not None
        box.meter("gate", 2)
        assert (await next_event(response))["cells"]["gate"]["in_flight"] == "2 now"


async def test_a_page_that_was_closed_is_noticed_and_pages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr(serving, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(serving, "MAX_STREAMS", 1)
    box = Box()
    async with served(box) as client:
        async with client.get("/events") as response:
            await next_event(response)
            await next_event(response)  # a heartbeat
            async with client.get("/events") as refused:
                assert refused.status == 503
        async with asyncio.timeout(10):
            while box.meter is not None and box.meter.on_change:  # noqa: ASYNC110 (the server notices with its next heartbeat)
                await asyncio.sleep(0.01)


async def test_open_pages_do_not_keep_the_server_from_closing() -> None:
    box = Box()
    async with served(box) as client:
        response = await client.get("/events")
        await next_event(response)
        async with asyncio.timeout(5):
            await client.server.close()
        response.close()
    assert box.meter is not None
    assert box.meter.on_change == []


async def test_what_is_ill_is_the_first_thing_to_do_even_where_nothing_else_waits() -> None:
    ill = [Condition(topic=each, troubles={"": Trouble(AT, AT)}) for each in (HealthTopic.DISCORD, HealthTopic.MODEL)]
    async with served(Box(entries=[], held=[], conditions=ill)) as client:
        to_do = (await page(client, "/")).partition("What to do next")[2]
    assert re.findall(r'href="([^"]+)">([^<]+)', to_do) == [
        ("#well", "Discord is not connected"),
        ("#well", "The model does not answer"),
        ("/answers", "Ask it something in Discord"),
    ]
    assert 'id="steps-none" hidden' in to_do


async def test_an_overview_that_stays_open_learns_what_is_new_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "STEPS_SECONDS", 0.0)
    box = Box(texts=True, conditions=[Condition(topic=HealthTopic.DISCORD)])
    async with served(box) as client:
        assert "Write what is missing: Does the quota" in await page(client, "/")
        async with client.get("/events?steps") as response:
            assert [step["link"] for step in (await next_event(response))["steps"]] == ["/gaps#gap-b1"]
        box.dismissed.ids.add(0xB1)
        async with client.get("/events?steps") as response:
            assert (await next_event(response))["steps"] == []
        async with client.get("/events") as response:  # of the page "Flow"
            assert "steps" not in await next_event(response)


async def test_many_gaps_have_pages_and_those_of_nobody_say_so() -> None:
    asked = [replace(UNANSWERED, message_ids=(0xB00 + at,), question=f"word{at}?") for at in range(90)]
    async with served(Box(texts=True, entries=asked)) as client:
        first = await page(client, "/gaps")
        assert (first.count('class="card gap"'), "1 to 40 of 90" in first) == (40, True)
        assert 'href="/gaps?from=40">Smaller ones' in first
        assert "90 of the last questions got no answer, about 90 different things" in first
    async with served(Box(entries=[])) as client:
        assert "Nobody has asked anything yet" in await page(client, "/gaps")
    async with served(Box(entries=[REPLIED])) as client:
        assert "Every question was answered" in await page(client, "/gaps")
