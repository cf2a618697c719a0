"""Ends of parts, and a dashboard over sources that a test fills."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from dashboard import (
    AccessControl,
    DashboardData,
    DisplayRules,
    DraftList,
    FlowMeter,
    KnownSource,
    add_pages,
)
from model.health import Condition
from model.messages import AuthorType
from model.outcomes import OutcomeKind, Reason
from model.permissions import OWNER, Operator
from model.processes import Fleet
from reporting.cost import Costs, Price, Prices, costs
from reporting.reading import TimeSpan, VotedQuestion
from reporting.report import OwnerOf, shared_by_all
from services.llm import StepTokens
from services.search import Level, SearchResult, StoredPassage
from services.search.retrieval import Hit, Signals
from services.team import AuditEntry, LessonForm, Overview, Pair, PairTurn, Speaker, TeachingResult, removals
from services.team.topics import Topic
from services.telemetry import PartOutcome

AT = 1_770_000_000.0
GUILD, HELP, ANNA, BOB = 1, 20, 301_301_301_301, 302_302_302_302
NASTY = '<script>document.title="broken"</script><img src=x onerror=alert(1)>'
TOKEN = "a-token-of-some-length"

REPLIED = PartOutcome(
    at=AT,
    result=OutcomeKind.REPLIED,
    channel_id=HELP,
    place_id=HELP,
    message_ids=(0xA1, 0xA2),
    author_id=ANNA,
    author_type=AuthorType.COMMUNITY_USER,
    guild_id=GUILD,
    reply_place_id=0xA2,
    question=f"How do I restore? {NASTY}",
    reply=f"Run restore. {NASTY}",
    level="answer",
    sources=("kb:restore.md", "anna-private.log:7"),
    llm_calls=2,
    seconds=1.5,
    tokens={"gate": (100, 10), "generate": (2000, 200)},
    path={
        "gate": {"question": True, "answerable": True, "reason": "it is about restoring"},
        "select": {
            "offered": 2,
            "ranked": [["kb:restore.md", 0.91], ["kb:faq.md", 0.4]],
            "selected": ["kb:restore.md"],
        },
        "load": {"loaded": ["kb:restore.md"]},
        "tools": ["search"],
        "generate": {"answer": True, "characters": 12, "citations": ["kb:restore.md", "anna-private.log:7"]},
        "verify": {"good_enough": True, "issues": ["it says restore twice"]},
    },
)
UNANSWERED = replace(
    REPLIED,
    at=AT + 60,
    result=OutcomeKind.SKIPPED,
    reason=Reason.NO_ANSWER_IN_SOURCES,
    message_ids=(0xB1,),
    author_id=BOB,
    reply_place_id=None,
    question="Does the quota count deleted snapshots?",
    reply="",
    level=None,
    sources=("kb:restore.md",),
)
CAPTURED = replace(
    UNANSWERED,
    at=AT + 120,
    result=OutcomeKind.CAPTURED,
    reason=None,
    message_ids=(0xC1,),
    author_type=AuthorType.TEAM_MEMBER,
    question="",
    qa_id="qa_20260201_031057.000000",
    sources=(),
    tokens={},
    path={},
)
PAIR = Pair(
    "qa_20260201_031057.000000",
    "2026-02-01T03:10:57.000000Z",
    "2026-02-01T03:09:41.120000Z",
    "thread_77",
    (1, 2),
    (ANNA, 9),
    (PairTurn(Speaker.USER, f"My quota is full {NASTY}"), PairTurn(Speaker.TEAM, "Prune old snapshots.")),
)
PRICE = Price(2.0, 10.0)
OTHER = replace(PAIR, id="qa_20260202_031057.000000", timestamp="2026-02-02T03:10:57.000000Z")


def hit(source_id: str, text: str = "some text", score: float = 0.9) -> Hit:
    return Hit(StoredPassage(source_id, "Title", "", 0, ("Guide", "Quotas"), "", text), score, 0.5, 1.25)


FOUND = SearchResult(
    (hit("kb:restore.md", f"Restore with care. {NASTY}"), hit("team:quota.txt", "My quota is full", 0.7)),
    0.6,
    Level.ANSWER,
    Signals(0.5, 0.1, 1.25, 0.1, 3, 0.8, 6.2, 2.3),
)


@dataclass
class FakeSearch:
    asked: list[str] = field(default_factory=list[str])

    async def find(self, query: str) -> SearchResult:
        self.asked.append(query)
        return FOUND

    async def section(self, passage: StoredPassage) -> Sequence[StoredPassage]:
        return [passage]

    async def rerank(self, hits: Sequence[Hit], query: str) -> Sequence[Hit]:
        return hits

    async def passages_of(self, source_id: str, query: str) -> Sequence[str]:
        return [source_id, query]


@dataclass
class FakeTeam:
    """Two conversations in the topic `quota`, and `lessons` in another; `refusal`: what becomes of each correction."""

    removed: list[str] = field(default_factory=list[str])
    by: list[str] = field(default_factory=list[str])
    refusal: Exception | None = None
    lessons: tuple[Pair, ...] = ()

    async def overview(self) -> Overview:
        pairs = tuple(pair for pair in (PAIR, OTHER) if pair.id not in self.removed)
        return Overview(
            {each.name: each for each in (Topic("quota", pairs), Topic("lessons", self.lessons)) if each.pairs},
            {"quota": "My quota is full: what people asked"},
            tuple((each, "quota") for each in self.removed),
            {PAIR.id: ("qa_20250101_000000.000000",)},
            {PAIR.id: ((OTHER, "snapshots are pruned by themselves"),)},
            (),
            4,
            1,
            1,
        )

    def address(self, qa_id: str) -> str | None:
        return "https://discord.com/channels/1/20/2" if qa_id == PAIR.id else None

    async def correct(self, action: str, qa_id: str, operator: str) -> str:
        if self.refusal is not None:
            raise self.refusal
        self.by.append(operator)
        (self.removed.append if action == "remove" else self.removed.remove)(qa_id)
        return f"{qa_id}: {action}d."


@dataclass
class FakeDismissed:
    """`broken`: what each change raises."""

    ids: set[int] = field(default_factory=set[int])
    by: list[str] = field(default_factory=list[str])
    broken: OSError | None = None

    async def read(self) -> Collection[int]:
        return self.ids

    async def change(self, action: str, asked_ids: Collection[int], operator: str) -> None:
        if self.broken is not None:
            raise self.broken
        self.by.append(operator)
        (self.ids.update if action == "dismiss" else self.ids.difference_update)(asked_ids)


@dataclass
class FakeTeacher:
    """`refusal`: what becomes of each lesson; `private`: the questions that may not be told to everybody."""

    taught: list[LessonForm] = field(default_factory=list[LessonForm])
    refusal: Exception | None = None
    is_filed: bool = True
    by: list[str] = field(default_factory=list[str])
    private: Collection[str] = ()

    async def may_quote(self, asked: PartOutcome) -> bool:
        return asked.question not in self.private

    async def teach(self, form: LessonForm, operator: str) -> TeachingResult:
        if self.refusal is not None:
            raise self.refusal
        self.by.append(operator)
        self.taught.append(form)
        return TeachingResult("Stored and filed.", self.is_filed)


def showing(*, texts: bool = False) -> DisplayRules:
    return DisplayRules(texts, lambda user_id: f"{user_id:x}" * 8, lambda place_id: f"#channel-{place_id}")


@dataclass
class Box:
    """What a dashboard shows."""

    entries: list[PartOutcome] = field(default_factory=lambda: [REPLIED, UNANSWERED, CAPTURED])
    held: list[KnownSource] = field(
        default_factory=lambda: [KnownSource("kb:restore.md", "file", "indexed", False, 2048, AT, "About")]
    )
    days: Mapping[str, Mapping[str, StepTokens]] = field(
        default_factory=lambda: {"2026-02-02": {"gate": StepTokens(2, 1_000_000, 100_000)}}
    )
    prices: Prices = field(default_factory=lambda: Prices(PRICE, PRICE))
    search: FakeSearch = field(default_factory=FakeSearch)
    team: FakeTeam = field(default_factory=FakeTeam)
    meter: FlowMeter | None = field(default_factory=lambda: FlowMeter(lambda: 0.0))
    voted: list[VotedQuestion] = field(default_factory=list[VotedQuestion])
    dismissed: FakeDismissed = field(default_factory=FakeDismissed)
    conditions: list[Condition] | None = None
    notice: str = ""
    at: float = AT + 3600
    may_correct: bool = True
    texts: bool = False
    token: str = ""
    operators: Mapping[str, Operator] = field(default_factory=dict[str, Operator])
    audited: list[AuditEntry] = field(default_factory=list[AuditEntry])
    clock: list[float] = field(default_factory=lambda: [0.0])
    fleet: Fleet | None = None
    drafts: DraftList | None = None
    teacher: FakeTeacher | None = field(default_factory=FakeTeacher)
    owner_of: OwnerOf = shared_by_all

    async def last(self) -> Sequence[PartOutcome]:
        return self.entries

    async def of(self, period: TimeSpan) -> Sequence[PartOutcome]:
        return [entry for entry in self.entries if entry.at in period]

    async def votes(self, period: TimeSpan) -> Sequence[VotedQuestion]:
        return [vote for vote in self.voted if vote.at in period]

    async def audit(self) -> Sequence[AuditEntry]:
        return self.audited

    def add_to(self, application: web.Application) -> None:
        async def spent(days: int) -> Costs:
            return costs(self.days, self.entries, TimeSpan(AT - days * 86_400, AT + 1), self.prices)

        async def held() -> Sequence[KnownSource]:
            return self.held

        async def fleet() -> Fleet:
            assert self.fleet is not None
            return self.fleet

        async def health() -> Sequence[Condition]:
            return self.conditions or ()

        sources = DashboardData(
            meter=self.meter,
            history=self,
            dismissed=self.dismissed,
            costs=spent,
            known_sources=held,
            search=self.search,
            team=self.team,
            may_correct=self.may_correct,
            now=lambda: self.at,
            health=None if self.conditions is None else health,
            notice=self.notice,
            fleet=None if self.fleet is None else fleet,
            drafts=self.drafts,
            teacher=self.teacher,
            owner_of=self.owner_of,
        )
        operators = {**self.operators, **({self.token: OWNER} if self.token else {})}
        visitors = AccessControl(operators, frozenset({"bots.internal"}), lambda: self.clock[0])
        add_pages(application, sources, showing(texts=self.texts), visitors)


@asynccontextmanager
async def served(box: Box) -> AsyncGenerator[TestClient[web.Request, web.Application]]:
    application = web.Application()
    box.add_to(application)
    jar = partial(aiohttp.CookieJar, unsafe=True)
    async with TestClient(TestServer(application), cookie_jar=jar()) as client:
        yield client


async def page(client: TestClient[Any, Any], path: str, **options: Any) -> str:
    async with client.get(path, **options) as response:
        assert response.status == 200, await response.text()
        return await response.text()


REFUSED = removals.RemovalRefused("it was removed already")
