"""kill -9 at each step of a draft's life, over the real client: each draft ends once, and nothing is posted that nobody
approved, or twice.

An uncut life of each ending says which steps there are: changes of files and requests. Then the bot is killed before
and after each of them, and started again; whoever decides presses again where nothing has come of it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from services.conversations import Draft, DraftState, parse_draft
from services.storage import DataFolder
from tests.end_to_end.bots import answers_to
from tests.end_to_end.conftest import llm
from tests.end_to_end.knowledge import write_knowledge
from tests.end_to_end.mortal import MortalProcess, Plan, Step
from tests.end_to_end.processes import write_config
from tests.end_to_end.scenes import answering
from tests.loopback.discord_server import DiscordServer
from tests.loopback.interactions import Interaction
from tests.loopback.listener import API
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Message

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not tell"),
]

log = logging.getLogger(__name__)

QUESTION = "how can I restore a backup?"
PIECES = [f"{letter} " + "word " * 380 + "end." for letter in "AB"]
EDITED = "Run `restore --all`."
POST, EDIT, DISCARD, KEEP = "Post", "Edit", "Discard", "Post, and keep as the team's answer"
PATIENCE = 60.0
"""Seconds that anything may take on a busy machine; nothing waits for them in vain."""
PRESSED_SECONDS = 10.0
"""After so long without a word, somebody presses again: a client says "interaction failed" after three."""
SURE, UNSURE = "kb:guides/backup.md", "kb:guides/accounts.md"
"""What the model cites: the page that the search finds first, or another one."""
SHARED = ("seen.json", "usage.json", "tokens.json")
"""Files that hold something of all answers."""


@dataclass
class World:
    """A Discord, a data folder, and one life of the bot after another."""

    server: DiscordServer
    config: Path
    folder: DataFolder
    plan: Plan
    kills: list[Step | None] = field(default_factory=list[Step | None])
    asked: list[Message] = field(default_factory=list[Message])
    pressed: set[int] = field(default_factory=set[int])
    process: MortalProcess | None = None

    def __post_init__(self) -> None:
        self.help = next(each for each in self.server.state.channels() if each.name == "help")
        self.review = next(each for each in self.server.state.channels() if each.name == "review")
        self.tess = next(each.user for each in self.server.guild.members.values() if each.user.name == "tess")

    # Lives

    async def begin(self) -> None:
        # Long after: Discord does not know the nonces any more.
        self.server.state.nonces.clear()
        ready = self.server.count("PUT", "/commands$")
        root = self.config.parent
        self.process = MortalProcess(
            self.server.origin + API,
            self.server.gateway.url,
            self.server.token,
            config=self.config,
            folder=self.folder.root,
            plan=root / "plan.json",
            said=root / "said",
        )
        await self.until(lambda: self.is_dead or self.server.count("PUT", "/commands$") > ready)
        assert not self.is_dead, self.said

    @property
    def is_dead(self) -> bool:
        return self.process is None or self.process.is_over

    @property
    def said(self) -> str:
        return (self.config.parent / "said").read_text()[-8000:]

    async def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        await self.until(lambda: self.is_dead)
        assert self.process.code == 0, self.said

    async def until(self, condition: Callable[[], object], seconds: float = PATIENCE) -> None:
        await self.server.until(condition, seconds)

    # What people do

    async def ask(self, step: Step | None = None) -> Message:
        """Somebody new asks. `step`: at which the bot dies."""
        asker = self.server.add_member(f"asker {len(self.asked)}")
        state = self.server.state
        question = await self.server.say(self.help, asker, QUESTION, deliver=False)
        names = {self.help.id: "help", self.review.id: "review", self.server.bot.id: "bot", question.id: "question"}
        self.plan.make(step, names)
        self.asked.append(question)
        state.tell("MESSAGE_CREATE", state.event(question), self.help)
        await self.server.gateway.flush()
        return question

    async def press(self, question: Message, label: str) -> None:
        """Press a button until the bot says something, or dies. An edit is entered, too."""
        while not self.is_dead and (card := self.card(question)) is not None and label in labels_of(card):
            if label in {POST, KEEP}:
                self.pressed.add(question.id)
            one = await self.server.press(card, self.tess, label)
            if label == EDIT and await self.is_answered(one) and one.form is not None:
                one = await self.server.submit(one, EDITED)
            if await self.is_answered(one):
                return

    async def is_answered(self, one: Interaction) -> bool:
        try:
            await self.until(lambda: self.is_dead or one.answered, PRESSED_SECONDS)
        except TimeoutError:
            return False
        return not self.is_dead

    # What has come of it

    def card(self, question: Message) -> Message | None:
        found = [each for each in self.server.history(self.review) if str(question.id) in json.dumps(each.components)]
        assert len(found) <= 1, "a draft is shown twice"
        return found[0] if found else None

    def draft(self, question: Message) -> Draft | None:
        path = self.folder.drafts / f"{question.id}.json"
        return parse_draft(path.read_bytes()) if path.exists() else None

    def waits(self, question: Message) -> bool:
        """Whether people can decide about the draft."""
        draft, card = self.draft(question), self.card(question)
        shown = draft is not None and draft.state is DraftState.WAITING and draft.review_id
        return bool(shown and card is not None and labels_of(card))

    def has_ended(self, question: Message) -> bool:
        draft, card = self.draft(question), self.card(question)
        return draft is not None and draft.is_shown and (card is None or not labels_of(card))

    def is_replied(self, question: Message) -> bool:
        """Whether a reply is complete that nobody had to approve."""
        posts = self.folder.posts.read_text() if self.folder.posts.exists() else ""
        begun = any(self.folder.outbox.glob("*.json"))
        return str(question.id) in posts and not begun

    def rows(self, question: Message) -> list[tuple[str, str | None]]:
        lines = [line for path in self.folder.outcomes.glob("*.jsonl") for line in path.read_bytes().splitlines()]
        # A line may be cut off by a kill.
        rows = [json.loads(line) for line in lines if line.endswith(b"}")]
        found = [each for each in rows if str(question.id) in each["message_ids"]]
        return [(each["outcome"], each.get("reason")) for each in found]

    def ends(self, question: Message) -> list[tuple[str, str | None]]:
        return [row for row in self.rows(question) if row[0] != "held"]


def labels_of(card: Message) -> list[str]:
    shown: list[Any] = card.components
    return [button["label"] for each in shown if each["type"] == 1 for button in each["components"]]


# How a draft ends


Decide = Callable[[World, Message], Coroutine[Any, Any, None]]


def presses(*labels: str) -> Decide:
    async def decide(world: World, question: Message) -> None:
        for label in labels:
            await world.press(question, label)

    return decide


async def team_answers(world: World, question: Message) -> None:
    await world.server.say(world.help, world.tess, "Like this.", reply_to=question)
    await world.until(lambda: world.is_dead or not world.waits(question))


async def question_is_deleted(world: World, question: Message) -> None:
    if question.id in world.server.state.messages[world.help.id]:
        await world.server.delete(question)
        await world.until(lambda: world.is_dead or not world.waits(question))
    else:  # the bot was killed before it had heard of it, and asks when somebody wants to post
        await world.press(question, POST)


async def nobody_decides(world: World, question: Message) -> None:
    await world.until(lambda: world.is_dead or not world.waits(question))


@dataclass(frozen=True)
class Ending:
    """How answers end, with the settings and the model for it.

    Attributes:
        decide: None: the answer is posted at once.
        texts: what is posted.
        least: the least number of kills.
        whole: the bot is killed wherever it can be.
        shares: the number of tests over which the kills are spread.
        away: what happens while the bot is away, as it was killed while the draft waited.
    """

    name: str
    decide: Decide | None
    row: tuple[str, str | None]
    texts: Sequence[str] = ()
    least: int = 0
    approval: str = "all"
    cited: str = UNSURE
    minutes: float = 60.0
    away: bool = False
    whole: bool = False
    shares: int = 2


ENDINGS = [
    Ending("posted", presses(POST), ("replied", None), PIECES, whole=True, shares=8, least=40),
    Ending("posted as unsure", presses(POST), ("replied", None), PIECES, approval="unsure", least=16, shares=4),
    Ending("posted as edited", presses(EDIT, POST), ("replied", None), [EDITED], least=16, shares=4),
    Ending("kept", presses(EDIT, KEEP), ("replied", None), [EDITED], least=20, shares=5),
    Ending("discarded", presses(DISCARD), ("skipped", "discarded by a person"), least=8),
    Ending("team answered", team_answers, ("cancelled", "team answered"), away=True, least=6),
    Ending("deleted", question_is_deleted, ("cancelled", "deleted"), away=True, least=4),
    Ending("expired", nobody_decides, ("skipped", "nobody decided"), minutes=0.02, least=4),
    Ending("at once as sure", None, ("replied", None), PIECES, approval="unsure", cited=SURE, least=6),
    Ending("at once", None, ("replied", None), PIECES, approval="off", cited=SURE, least=6),
]


@asynccontextmanager
async def open_world(root: Path, ending: Ending) -> AsyncGenerator[World]:
    async with DiscordServer() as server, LLMServer() as model:
        server.add_channel("help")
        review, role = server.add_channel("review"), server.add_role("team")
        server.add_member("tess", role)
        model.otherwise = answering(AnswerResult={"answer": "\n\n".join(PIECES), "citations": [ending.cited]})
        folder = root / "data"
        write_knowledge(folder)  # which makes the folders
        config = write_config(
            folder,
            ai_response={
                "llm": llm(model, timeout_seconds=60),
                "approval": ending.approval,
                "approval_minutes": ending.minutes,
                "max_answer_chars": 9000,
            },
            discord={
                "team_role_ids": [str(role.id)],
                "review_channel_id": str(review.id),
                "message_batch_wait_seconds": 0.15,
                "team_active_seconds": 0.01,
            },
            kb={"settle_minutes": 0},
        )
        plan = Plan(root / "plan.json")
        plan.make(None, {})
        world = World(server, config, DataFolder(folder), plan)
        try:
            yield world
        finally:
            if world.process is not None and not world.is_dead:
                world.process.kill()


async def live_on(world: World, question: Message, ending: Ending, *, until_recorded: bool) -> None:
    """Let the life go on to the end of the answer, or of the bot, and decide wherever the draft waits."""

    def is_done() -> bool:
        has_ended = world.is_replied(question) if ending.decide is None else world.has_ended(question)
        return has_ended and (not until_recorded or bool(world.ends(question)))

    while not world.is_dead and not is_done():
        await world.until(lambda: world.is_dead or is_done() or world.waits(question))
        if world.waits(question) and not world.is_dead:
            assert question.id in world.pressed or answers_to(world.server, question) == []
            assert ending.decide is not None
            await ending.decide(world, question)


async def record(root: Path, ending: Ending) -> list[Step]:
    """The steps of an uncut life."""
    async with open_world(root, ending) as world:
        await world.begin()
        await world.until(world.folder.watermarks.exists)
        question = await world.ask()
        await live_on(world, question, ending, until_recorded=True)
        await world.stop()
        check(world, ending)
        return world.plan.steps


def cuts(steps: Sequence[Step], ending: Ending) -> list[Step]:
    """Where the bot is killed: with `whole` wherever it can be. Else not where the same is written for all answers, and
    after requests only that change something on Discord: after anything else is before the next step.
    """

    def counts(step: Step) -> bool:
        is_told = step.name.startswith(("POST ", "PATCH "))
        return (step.moment == "before" or is_told) and not step.name.endswith(SHARED)

    kept = [each for each in steps if ending.whole or counts(each)]
    first = next(number for number, each in enumerate(kept) if is_of_draft(each))
    offered = Step("replace state/drafts/question.json", 2)
    if ending.decide is not None and not ending.whole:
        first = kept.index(offered)  # what comes before is the same for all
    return kept[first:]


def is_of_draft(step: Step) -> bool:
    return "question" in step.name


async def revive(world: World, question: Message, ending: Ending) -> None:
    """A life that nothing cuts off goes on from there."""
    assert world.process is not None
    world.process.kill()
    world.plan.make(None, {})
    await world.begin()
    await live_on(world, question, ending, until_recorded=False)
    assert not world.is_dead, world.said


async def kill_at(world: World, ending: Ending, step: Step) -> None:
    question = await world.ask(step)
    await live_on(world, question, ending, until_recorded=True)
    if world.is_dead:
        assert world.process is not None
        assert world.process.code == -9, world.said
        world.kills.append(step)
    await revive(world, question, ending)


async def kill_and_stay_away(world: World, ending: Ending) -> None:
    """The bot is killed while the draft waits, and is away while something happens."""
    question = await world.ask()
    await world.until(lambda: world.waits(question))
    assert world.process is not None
    world.process.kill()
    world.kills.append(None)
    if ending.away:
        assert ending.decide is not None
        await ending.decide(world, question)
    await revive(world, question, ending)


async def kill_at_all(root: Path, ending: Ending, steps: Iterable[Step], *, at_rest: bool) -> list[Step | None]:
    async with open_world(root, ending) as world:
        await world.begin()
        await world.until(world.folder.watermarks.exists)
        if at_rest and ending.decide is not None:
            await kill_and_stay_away(world, ending)
        for step in steps:
            await kill_at(world, ending, step)
        if ending.decide is not None:
            await world.until(lambda: all(world.ends(each) for each in world.asked))
        await world.stop()
        check(world, ending)
        return world.kills


def check(world: World, ending: Ending) -> None:
    """Each answer has one end, as it was decided, and nothing is left over."""
    for question in world.asked:
        answers = [post.content.strip() for post in answers_to(world.server, question) if post.content]
        assert answers == list(ending.texts)
        # A kill loses the outcomes of replies of the last two seconds, but no end of a draft.
        assert world.ends(question) == [ending.row] or (ending.decide is None and not world.ends(question))
        assert world.rows(question).count(("held", "held for approval")) <= 1
        card, draft = world.card(question), world.draft(question)
        assert (card is not None, draft is not None) == (ending.decide is not None,) * 2
        assert card is None or not labels_of(card)
        assert draft is None or (draft.state, draft.is_shown) == (DraftState.ENDED, True)
        assert not answers or ending.decide is None or question.id in world.pressed
    kept = "".join(path.read_text() for path in world.folder.team_raw.glob("*.txt"))
    assert kept.count(f"Team: {EDITED}") == (len(world.asked) if ending.name == "kept" else 0)
    assert not [*world.folder.outbox.glob("*.json")]
    assert world.server.unknown == []


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[Step]]:
    """Where to kill, by ending."""
    return {}


SHARES = [(ending, share) for ending in ENDINGS for share in range(ending.shares)]


@pytest.mark.parametrize(("ending", "share"), SHARES, ids=[f"{ending.name} {share}" for ending, share in SHARES])
async def test_killed_at_any_step_a_draft_ends_once(
    tmp_path: Path, recorded: dict[str, list[Step]], ending: Ending, share: int
) -> None:
    """Pitfalls 8, 25 and 75. In shares, as a test ends after two minutes, and the machine may be busy."""
    if ending.name not in recorded:
        recorded[ending.name] = cuts(await record(tmp_path / "uncut", ending), ending)
    # Two bots side by side, with a Discord each.
    own = recorded[ending.name][share :: ending.shares]
    chains = [
        kill_at_all(tmp_path / str(number), ending, own[number::2], at_rest=(share, number) == (0, 0))
        for number in (0, 1)
    ]
    kills = [each for found in await asyncio.gather(*chains) for each in found]
    log.info("%d kills", len(kills))
    assert len(kills) >= ending.least / ending.shares
