"""Takes `docs/dashboard.png`: the page "Overview" of the dashboard after the demo's day.

The demo is one day, and connects to nothing: the days before it, the votes and the health are made up.

python examples/dashboard.py          takes it; needs the extra `browser` and a Chromium
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from aiohttp import web
from playwright.async_api import async_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import dashboard  # noqa: E402 - found only once the path is set
from assembly.dashboard import pages_of_folder  # noqa: E402
from assembly.sources import temporary_index  # noqa: E402
from dashboard import DashboardData, FlowMeter, History  # noqa: E402
from dashboard.overview import DAYS  # noqa: E402
from model.health import Condition, HealthTopic  # noqa: E402
from model.outcomes import OutcomeKind  # noqa: E402
from reporting.reading import TimeSpan, VotedQuestion  # noqa: E402
from reporting.report import is_gap  # noqa: E402
from services.knowledge.web.browser import chromium  # noqa: E402
from services.team import AuditEntry  # noqa: E402
from services.telemetry import PartOutcome  # noqa: E402
from settings import load  # noqa: E402

PICTURE = ROOT / "docs" / "dashboard.png"
DEMO = ROOT / "examples" / "demo.yaml"
WIDTH, HEIGHT = 1100, 800
DAY = 86_400.0
TENTHS = (10, 7, 8, 9, 3, 2, 7)
"""Of the day's questions, how many were asked on it and on the days before."""
DISMISSED = ("pizza", "hacker camp", "does anyone know why", "still up", "help me")
"""Parts of unanswered questions that an operator would dismiss."""


@dataclass(frozen=True, slots=True)
class Fortnight:
    """The demo's day, and days like it before."""

    day: History

    async def last(self) -> Sequence[PartOutcome]:
        return await self.day.last()

    async def of(self, period: TimeSpan) -> Sequence[PartOutcome]:
        entries = await self.day.of(period)
        return [
            replace(entry, at=entry.at - back * DAY)
            for back in range(DAYS)
            for number, entry in enumerate(entries)
            if (3 * number + back) % 10 < TENTHS[back % len(TENTHS)]
        ]

    async def votes(self, period: TimeSpan) -> Sequence[VotedQuestion]:
        found: list[VotedQuestion] = []
        for number, entry in enumerate(await self.of(period)):
            if entry.result is OutcomeKind.REPLIED and number % 3 == 0:
                ups, downs = (0, 1) if number % 21 == 0 else (1 + number % 2, 0)
                found.append(VotedQuestion(number, entry.at, entry.question, entry.sources, ups, downs))
        return found

    async def audit(self) -> Sequence[AuditEntry]:
        return ()


@dataclass(frozen=True, slots=True)
class OffTopic:
    history: History

    async def read(self) -> Collection[int]:
        asked = [entry for entry in await self.history.last() if is_gap(entry)]
        return [entry.message_ids[0] for entry in asked if any(words in entry.question.lower() for words in DISMISSED)]

    async def change(self, action: str, asked_ids: Collection[int], operator: str) -> None:
        """Nothing is changed."""


async def health() -> Sequence[Condition]:
    return [
        Condition(topic=HealthTopic.DISCORD, detail="since 2026-03-02 08:14 UTC"),
        Condition(topic=HealthTopic.KNOWLEDGE, detail="last updated 2026-03-11 23:41 UTC"),
        Condition(topic=HealthTopic.SOURCES, detail="28 sources"),
        Condition(topic=HealthTopic.BUDGET),
        Condition(topic=HealthTopic.DISK, detail="81,213 of 120,034 MB are free"),
        Condition(topic=HealthTopic.ERRORS),
    ]


def replay(data: Path) -> None:
    """Keep what the demo's day leaves in `data`."""
    arguments = ("--config", DEMO, "--replay", ROOT / "examples" / "demo.jsonl", "--data", data)
    subprocess.run([sys.executable, ROOT / "app.py", *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 (our own program)


async def take(data: Path) -> None:
    settings = load(DEMO).for_replay(data)
    shown = settings.dashboard.model_copy(update={"show_texts": True})
    with temporary_index(settings.model_copy(update={"dashboard": shown})) as indexed:
        async with pages_of_folder(indexed, is_replay=True) as add_pages:
            known = cast("partial[None]", add_pages).keywords
            sources = cast("DashboardData", known["sources"])
            history = Fortnight(sources.history)
            application = web.Application()
            made_up = replace(
                sources,
                history=history,
                dismissed=OffTopic(history),
                health=health,
                has_model=False,
                meter=FlowMeter(lambda: 0.0),
                notice="",
            )
            partial(dashboard.add_pages, **{**known, "sources": made_up})(application)
            runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            await photograph(f"http://127.0.0.1:{runner.addresses[0][1]}/")
            await runner.cleanup()


async def photograph(address: str) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = await browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        await page.goto(address)
        await page.get_by_text("Live").wait_for()
        await page.screenshot(path=PICTURE, full_page=True)
        await browser.close()


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        replay(Path(folder))
        asyncio.run(take(Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
