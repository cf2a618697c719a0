"""Several operators: who may do what, what is offered to whom, and in whose name it is noted."""

from __future__ import annotations

import re
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from yarl import URL

from dashboard.access import COOKIE
from model.permissions import PERMISSIONS, ROLES, Act, Operator
from services.team import AuditEntry
from tests.dashboard.made import AT, BOB, NASTY, PAIR, TOKEN, UNANSWERED, Box, page, served
from tests.dashboard.test_drafts import DRAFT, FakeDrafts

pytestmark = pytest.mark.real_time

Browser = TestClient[Any, Any]
TOKENS = {name: f"the-token-of-{name}-alone" for name in ("lotte", "ana", "adam")}
OPERATORS = {
    TOKENS["lotte"]: Operator("lotte", "looks_on"),
    TOKENS["ana"]: Operator("ana", "corrects"),
    TOKENS["adam"]: Operator("adam", "administers"),
}
FORMS = {
    "/drafts/{id}/{action}": f"/drafts/{DRAFT.id}/post",
    "/gaps/{id}/{action}": "/gaps/b1/dismiss",
    "/gaps/{id}/answer": "/gaps/b1/answer",
    "/knowledge/pairs/{id}/{action}": f"/knowledge/pairs/{PAIR.id}/remove",
}
"""By the pattern of each form but that to log out: an address that it takes."""
LESSON = {"question": "Does it?", "answer": "It does.", "guild": "1"}
LOOKS = ("/", "/flow", "/answers", "/answers/b1", "/drafts", "/gaps", "/knowledge", "/knowledge/topics/quota", "/cost")


def made_box(*, texts: bool = True) -> Box:
    return Box(operators=OPERATORS, drafts=FakeDrafts(), texts=texts)


async def log_in(client: Browser, name: str) -> str:
    """Log in. Returns the key of the session's forms."""
    async with client.post("/login", data={"token": TOKENS[name]}) as response:
        (key,) = set(re.findall(r'name="key" value="(\w+)"', await response.text()))
    return key


def done_in(box: Box) -> list[list[str]]:
    assert isinstance(box.drafts, FakeDrafts)
    assert box.teacher is not None
    return [box.drafts.by, box.dismissed.by, box.teacher.by, box.team.by]


def test_each_role_may_what_those_before_it_may() -> None:
    may = [[Operator("x", role).may(act) for act in Act] for role in ROLES]
    assert set(PERMISSIONS) == set(Act)
    assert may == [[True, False, False, False, False], [True, True, True, True, False], [True] * 5]


async def test_who_looks_on_changes_nothing_by_any_form() -> None:
    box = made_box()
    async with served(box) as client:
        assert isinstance(client.app, web.Application)
        posts = [route for route in client.app.router.routes() if route.method == "POST" and route.resource]
        patterns = {str(route.resource.canonical) for route in posts if route.resource is not None}
        assert patterns == {*FORMS, "/login", "/logout"}  # a new form needs a row above, and a permission
        key, bearer = await log_in(client, "lotte"), {"Authorization": f"Bearer {TOKENS['lotte']}"}
        forged = {"role": "administers", "operator": "adam", "name": "adam"}
        for path in FORMS.values():
            for data, headers in (
                ({"key": key, **LESSON}, {}),
                ({"key": key, **LESSON, **forged}, {"X-Role": "administers", "X-Operator": "adam"}),
                (LESSON, bearer),
            ):
                async with client.post(path, data=data, headers=headers, params=forged) as response:
                    text = await response.text()
                    assert response.status == 403
                    assert re.search(r"<p>lotte \(looks on\): only an operator who corrects may [^<*]+\.</p>", text)
        for path in ("/audit", "/gaps/b1/answer", f"/knowledge/pairs/{PAIR.id}/remove"):
            for method in ("GET", "HEAD"):
                async with client.request(method, path) as response:
                    assert response.status == 403
    assert done_in(box) == [[], [], [], []]


async def test_a_forged_cookie_is_nobodys_session() -> None:
    box = made_box()
    async with served(box) as client:
        await log_in(client, "lotte")
        (cookie,) = [each.value for each in client.session.cookie_jar if each.key == COOKIE]
        client.session.cookie_jar.clear()
        for forged in (f"{cookie}.adam", f"adam:{cookie}", "adam", TOKENS["adam"], ""):
            for path in ("/audit", "/gaps"):
                async with client.get(
                    path, headers={"Cookie": f"{COOKIE}={forged}"}, allow_redirects=False
                ) as response:
                    assert response.status == 303
            async with client.post("/gaps/b1/dismiss", headers={"Cookie": f"{COOKIE}={forged}"}) as response:
                assert response.status == 401
    assert done_in(box) == [[], [], [], []]


async def test_who_looks_on_sees_all_and_is_offered_nothing() -> None:
    async with served(made_box()) as client:
        await log_in(client, "lotte")
        for path in LOOKS:
            text = await page(client, path)
            assert re.findall(r'method="post" action="([^"]+)"', text) == ["/logout"]
            assert re.search(r'href="(/audit|/gaps/[^"]+/answer|/knowledge/pairs/[^"]+)"', text) is None
        drafts = await page(client, "/drafts")
        assert '<blockquote class="said">Run restore. &lt;script' in drafts
        assert "<textarea" not in drafts
    async with served(made_box(texts=False)) as client:
        await log_in(client, "lotte")
        assert "Run restore" not in await page(client, "/drafts")


@pytest.mark.parametrize("name", ["ana", "adam"])
async def test_who_corrects_is_offered_each_form_and_is_named(name: str) -> None:
    box = made_box()
    async with served(box) as client:
        key = await log_in(client, name)
        offered = "".join([await page(client, path) for path in LOOKS])
        for path in FORMS.values():
            assert f'"{path}"' in offered
            async with client.post(path, data={"key": key, **LESSON}) as response:
                assert response.status == 200
    assert done_in(box) == [[name], [name, name], [name], [name]]  # the answered gap is dismissed, too


async def test_the_token_of_a_request_counts_and_not_whose_cookie_comes_with_it() -> None:
    box = made_box()
    async with served(box) as client:
        await log_in(client, "lotte")
        async with client.post("/gaps/b1/dismiss", headers={"Authorization": f"Bearer {TOKENS['ana']}"}) as response:
            assert response.status == 200
        client.session.cookie_jar.clear()
        await log_in(client, "adam")
        lotte = {"Authorization": f"Bearer {TOKENS['lotte']}"}
        async with client.post("/gaps/b1/restore", headers=lotte) as response:
            assert response.status == 403
    assert box.dismissed.by == ["ana"]


async def test_the_key_of_another_operators_session_serves_nobody() -> None:
    box = made_box()
    async with served(box) as client:
        key = await log_in(client, "adam")
        client.session.cookie_jar.clear()
        await log_in(client, "ana")
        async with client.post("/gaps/b1/dismiss", data={"key": key}) as response:
            assert response.status == 403
            assert "not sent from a page of this dashboard" in await response.text()
    assert box.dismissed.by == []


async def test_the_header_says_who_one_is_and_leaving_ends_ones_own_session_only() -> None:
    async with served(made_box()) as client:
        await log_in(client, "lotte")
        lotte = {each.key: each.value for each in client.session.cookie_jar}
        assert '<span class="dim words">lotte (looks on)</span>' in await page(client, "/")
        client.session.cookie_jar.clear()
        key = await log_in(client, "adam")
        text = await page(client, "/")
        assert '<span class="dim words">adam (administers)</span>' in text
        assert 'href="/audit"' in text
        await (await client.post("/logout", data={"key": key})).read()
        async with client.get("/audit", allow_redirects=False) as response:
            assert response.status == 303
        client.session.cookie_jar.update_cookies(lotte, URL(str(client.make_url("/"))))
        assert "lotte (looks on)" in await page(client, "/")


async def test_whoever_has_the_one_token_or_needs_none_administers() -> None:
    for box in (Box(), Box(token=TOKEN, operators=OPERATORS)):
        async with served(box) as client:
            if box.token:
                await (await client.post("/login", data={"token": TOKEN})).read()
                assert "operator (administers)" in await page(client, "/")
            assert "Nobody has decided anything yet." in await page(client, "/audit")
            (key,) = set(re.findall(r'name="key" value="(\w+)"', await page(client, "/gaps")))
            await (await client.post("/gaps/b1/dismiss", data={"key": key})).read()
        assert box.dismissed.by == ["operator"]


async def test_the_audit_page_tells_who_did_what_newest_first_with_people_as_pseudonyms() -> None:
    asked = str(UNANSWERED.message_ids[0])
    log = [
        AuditEntry(AT, "ana", "dismiss gap", asked),
        AuditEntry(AT + 60, str(BOB), "post draft", "7"),
        AuditEntry(AT + 120, "", f"odd {NASTY}", NASTY),
        *(AuditEntry(AT + 180 + each, "terminal", "remove conversation", f"qa_{each}") for each in range(38)),
    ]
    box = made_box()
    box.audited = log
    async with served(box) as client:
        await log_in(client, "adam")
        first, second = await page(client, "/audit"), await page(client, "/audit?from=40")
    assert first.index("qa_37") < first.index("qa_0") < first.index("somebody")
    assert "<code>46629f10</code>" in first
    assert f">{BOB}<" not in first + second
    assert NASTY not in first + second
    assert f'<a href="/answers/b1">{asked}</a>' in second
    assert "ana" in second
