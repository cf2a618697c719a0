"""The dashboard in a real browser, where there is one: it moves, a keyboard is enough, and nothing gets out or in."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dashboard import KnownSource, pages
from model.health import Condition, HealthTopic, Trouble
from model.permissions import Operator
from services.knowledge.web.browser import chromium
from services.team import AuditEntry
from services.telemetry import current_part
from tests.dashboard.browsing import ALONE, Served, replayed, served_to_browsers
from tests.dashboard.made import AT, PAIR, TOKEN, UNANSWERED, Box
from tests.dashboard.test_meter import ended, part_of

pytest.importorskip("playwright", reason="needs the extra `browser`")

from playwright.sync_api import Browser, Page, expect, sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Dialog

pytestmark = [pytest.mark.slow, pytest.mark.skipif(chromium() is None, reason="there is no Chromium here")]

STARTED_MS = 60_000
"""How long a replay may take to begin on a busy machine."""


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=list(ALONE))
        yield opened
        opened.close()


@pytest.fixture
def shown(browser: Browser) -> Generator[Page]:
    """A page that tells at the end of what it must not have done."""
    context = browser.new_context()
    page, wrong, asked = context.new_page(), list[str](), set[str]()

    def complains(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text or "Trusted" in message.text:
            wrong.append(message.text)

    def opens(dialog: Dialog) -> None:
        wrong.append(dialog.message)
        dialog.dismiss()

    page.on("console", complains)
    page.on("dialog", opens)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.add(re.sub(r"^(\w+://[^/:]+).*", r"\1", request.url)))
    yield page
    context.close()
    assert wrong == []
    assert asked <= {"http://127.0.0.1"}


@pytest.fixture
def served() -> Generator[Served]:
    with served_to_browsers(Box(texts=True)) as opened:
        yield opened


def test_the_flow_moves_during_a_replay_and_its_question_can_be_followed(shown: Page, tmp_path: Path) -> None:
    with replayed(tmp_path, speed=60) as address:
        shown.goto(f"{address}flow")
        expect(shown.locator("#live")).to_have_text("Live", timeout=STARTED_MS)
        stream_time = shown.locator("#at").inner_text()
        for step in ("route", "gather", "gate", "select", "load", "generate", "reply"):
            line = shown.locator(f'[data-op="{step}"] [data-cell="line"]')
            expect(line).to_contain_text("1 done", timeout=STARTED_MS)
        expect(shown.locator('[data-count="replied"]')).to_have_text("1")
        assert shown.locator("#at").inner_text() >= stream_time
        shown.get_by_role("link", name="Answers").click()
        shown.get_by_role("row").filter(has_text="replied").get_by_role("link").click()
        steps = shown.locator(".path h3").all_inner_texts()
        assert [step.split()[0] for step in steps][:5] == ["gather", "permit", "announce", "gate", "select"]
        assert "kb:install.md" in shown.locator(".ranked").inner_text()
        assert "one-time setup code" in shown.get_by_role("main").inner_text()


def test_a_question_is_followed_step_by_step_while_it_is_on_its_way(shown: Page, served: Served) -> None:
    shown.goto(f"{served.address}/flow")
    expect(shown.locator("#live")).to_have_text("Live")
    expect(shown.locator("#in-progress-none")).to_be_visible()
    part, meter = part_of(10), served.box.meter
    assert meter is not None

    def step(name: str) -> None:
        current_part.set(part)
        meter.on_begin(name)(None)

    for name, so_far in (("gather", "gather 0 ms"), ("gate", "gather 0 ms, gate 0 ms")):
        served.tell(meter, name, 1)
        expect(shown.locator(f'[data-op="{name}"]')).to_have_class(re.compile(r"\bbusy\b"))
        served.tell(step, name)
        served.tell(meter, name, 0)
        expect(shown.locator("#in-progress .steps")).to_have_text(so_far)
        expect(shown.locator(f'[data-op="{name}"]')).not_to_have_class(re.compile(r"\bbusy\b"))
    served.tell(meter.add, ended(part))
    expect(shown.locator("#in-progress li")).to_have_count(0)
    expect(shown.locator('[data-count="replied"]')).to_have_text("1")


def test_a_lost_connection_is_told(shown: Page) -> None:
    with served_to_browsers(Box()) as served:
        shown.goto(served.address)
        expect(shown.locator("#live")).to_have_text("Live")
    expect(shown.locator("#live")).to_contain_text("Connection lost")


def test_where_discord_goes_the_open_page_says_so_and_is_not_live(shown: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "HEALTH_SECONDS", 0.0)
    well = Condition(topic=HealthTopic.DISCORD, detail="since 2026-02-01 00:00 UTC")
    gone = Condition(topic=HealthTopic.DISCORD, troubles={"": Trouble(AT + 3400, AT + 3600)})
    with served_to_browsers(Box(conditions=[well])) as served:
        assert served.box.meter is not None
        for path in ("/", "/flow"):
            served.box.conditions = [well]
            shown.goto(served.address + path)
            expect(shown.locator("#live")).to_have_text("Live")
            served.box.conditions = [gone]
            served.tell(served.box.meter, "gate", 0)
            expect(shown.locator("#live")).to_have_text("" if path == "/" else re.compile("Discord is not connected"))
        shown.goto(served.address)
        expect(shown.locator("#verdict")).to_have_class("verdict-line is-ill")
        expect(shown.locator("#steps li").first).to_contain_text("discordstatus.com")


def test_what_to_do_next_changes_on_an_open_page(shown: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "HEALTH_SECONDS", 0.0)
    monkeypatch.setattr(pages, "STEPS_SECONDS", 0.0)
    well = Condition(topic=HealthTopic.DISCORD, detail="since 2026-02-01 00:00 UTC")
    gone = Condition(topic=HealthTopic.DISCORD, troubles={"": Trouble(AT + 3400, AT + 3600)})
    with served_to_browsers(Box(conditions=[well], texts=True)) as served:
        assert served.box.meter is not None
        shown.goto(served.address)
        expect(shown.locator("#live")).to_have_text("Live")
        link = shown.get_by_role("link", name="Write what is missing: Does the quota")
        link.focus()
        served.box.conditions = [gone]
        served.tell(served.box.meter, "gate", 0)
        expect(shown.locator("#steps li")).to_have_count(2)
        assert shown.locator("#steps a").first.inner_text() == "Discord is not connected"
        link.click()
        assert shown.url.endswith("/gaps#gap-b1")
        shown.go_back()
        served.box.conditions = [well]
        served.box.dismissed.ids.add(0xB1)
        served.tell(served.box.meter, "gate", 0)
        expect(shown.locator("#steps-none")).to_be_visible()
        expect(shown.locator("#steps li")).to_have_count(0)


def test_what_was_not_known_is_shown_when_it_is_and_trouble_moves_up(
    shown: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "HEALTH_SECONDS", 0.0)
    full = Condition(topic=HealthTopic.DISK, troubles={"": Trouble(AT + 3400, AT + 3600)})
    with served_to_browsers(Box(conditions=[])) as served:
        assert served.box.meter is not None
        shown.goto(served.address)
        expect(shown.locator("#verdict")).to_contain_text("cannot be found out")
        expect(shown.locator("#steps a").first).to_have_text("Find out whether all is well")
        for conditions, first in (
            ([Condition(topic=HealthTopic.DISCORD), Condition(topic=HealthTopic.DISK)], "Discord"),
            ([Condition(topic=HealthTopic.DISCORD), full], "Disk"),
        ):
            served.box.conditions = conditions
            served.tell(served.box.meter, "gate", 0)
            expect(shown.locator("#health h3")).to_have_count(3)  # the model was not asked
            expect(shown.locator("#health h3").first).to_have_text(first)
        expect(shown.locator('#health [data-topic="disk"]')).to_have_class("card is-ill")


def test_a_gap_is_dismissed_and_restored_without_a_script(browser: Browser, served: Served) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{served.address}/gaps")
    page.get_by_role("button", name="Dismiss Does the quota").click()
    expect(page.get_by_role("heading", name="Dismissed")).to_be_visible()
    assert served.box.dismissed.ids == {0xB1}
    page.get_by_role("button", name="Restore Does the quota").click()
    expect(page.get_by_role("button", name="Dismiss Does the quota")).to_be_visible()
    page.goto(served.address)
    expect(page.locator("#live")).to_be_empty()
    context.close()


def test_a_gap_is_turned_into_a_search(shown: Page, served: Served) -> None:
    shown.goto(f"{served.address}/gaps")
    shown.get_by_role("link", name="Search the knowledge for Does the quota").click()
    expect(shown.get_by_label("Ask as people would")).to_have_value("Does the quota count deleted snapshots?")
    expect(shown.get_by_text("Enough to answer")).to_be_visible()
    shown.get_by_text("Why").click()
    expect(shown.get_by_text("words that occur nowhere")).to_be_visible()
    assert served.box.search.asked == ["Does the quota count deleted snapshots?"]


def test_a_pair_is_removed_and_restored_by_keyboard_alone(shown: Page, served: Served) -> None:
    def walk_to(name: str) -> None:
        wanted = shown.get_by_role("link", name=name).or_(shown.get_by_role("button", name=name)).first
        for _ in range(60):
            if wanted.evaluate("element => element === document.activeElement"):
                shown.keyboard.press("Enter")
                return
            shown.keyboard.press("Tab")
        raise AssertionError(f"Tab never came to {name}")

    shown.goto(f"{served.address}/knowledge")
    walk_to("quota")
    expect(shown.get_by_role("heading", level=1)).to_have_text("quota")
    walk_to(f"Remove… {PAIR.id}")
    expect(shown.get_by_role("heading", level=1)).to_have_text("Remove this conversation?")
    assert served.box.team.removed == []
    walk_to("Yes, remove it")
    expect(shown.get_by_role("heading", level=1)).to_have_text("Done")
    assert served.box.team.removed == [PAIR.id]
    walk_to("Restore…")
    walk_to("Yes, restore it")
    expect(shown.get_by_role("heading", level=1)).to_have_text("Done")
    assert served.box.team.removed == []


def test_markup_in_messages_is_text_and_runs_nowhere(shown: Page, served: Served) -> None:
    for path in ("/answers", "/answers/a1", "/gaps", "/knowledge?q=x", "/knowledge/topics/quota"):
        shown.goto(served.address + path)
        shown.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert shown.title().endswith("· Millrace")
        assert shown.locator("main script, main img").count() == 0
        if path != "/gaps":
            expect(shown.get_by_text('<script>document.title="broken"</script>').first).to_be_visible()


def test_the_first_tab_leads_past_the_menu_and_focus_is_seen(shown: Page, served: Served) -> None:
    shown.goto(served.address)
    shown.keyboard.press("Tab")
    skip = shown.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    box = skip.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert skip.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
    shown.keyboard.press("Enter")
    expect(shown.get_by_role("main")).to_be_focused()


LONG_NAMED = Operator("w" * 32, "administers")


def test_on_a_phone_nothing_is_wider_than_the_screen(shown: Page, served: Served) -> None:
    shown.set_viewport_size({"width": 390, "height": 844})
    long = f"https://docs.example.org/{'very-long' * 40}?q={'x' * 300}"
    asked = replace(UNANSWERED, question=f"Why is {long} empty?", path={"select": {"ranked": [[f"kb:{long}", 0.5]]}})
    served.box.entries = [*served.box.entries, asked]
    served.box.held = [KnownSource(f"kb:{long}", "url", f"not fetched: {long}", True, 1, AT, long)]
    served.box.conditions = [Condition(topic=HealthTopic.SOURCES, troubles={long: Trouble(AT, AT)}, detail=long)]
    gaps = "/gaps", "/gaps/b1/answer"
    paths = ("/answers?show=all", "/answers/a1", *gaps, "/knowledge?q=x", "/knowledge/topics/quota", "/cost")
    served.box.audited = [AuditEntry(AT, LONG_NAMED.name, "restore conversation", long)]
    for path in ("/", "/flow", *paths, "/audit", "/nowhere"):
        shown.goto(served.address + path)
        assert shown.evaluate("document.documentElement.scrollWidth") <= 390, path
    with served_to_browsers(Box(operators={TOKEN: LONG_NAMED})) as other:
        shown.goto(other.address)
        shown.get_by_label("Token").fill(TOKEN)
        shown.keyboard.press("Enter")
        expect(shown.get_by_role("banner")).to_contain_text(f"{LONG_NAMED.name} (administers)")
        assert shown.evaluate("document.documentElement.scrollWidth") <= 390


def test_people_log_in_and_out(shown: Page) -> None:
    with served_to_browsers(Box(token=TOKEN)) as served:
        shown.goto(served.address)
        shown.get_by_label("Token").fill("a guess")
        shown.keyboard.press("Enter")
        expect(shown.get_by_role("alert")).to_have_text("That is not the token.")
        shown.get_by_label("Token").fill(TOKEN)
        shown.get_by_role("button", name="Log in").click()
        expect(shown.locator("#live")).to_have_text("Live")
        assert TOKEN not in shown.url
        assert shown.evaluate("document.cookie") == ""
        shown.get_by_role("button", name="Log out").click()
        expect(shown.get_by_label("Token")).to_be_visible()
