"""The bot is killed at each step of a draft's life: the draft ends once, and is posted once or never, as was decided.

A kill is a cut: from then on no write reaches the disk, and no call returns from Discord.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from clock import now
from model.messages import Message
from services.conversations import Draft, DraftAction, DraftState
from services.discord.review_cards import ReviewCard
from services.storage import DataFolder, files
from services.team import read_audit
from tests.contract.test_approval import REVIEW, ReviewChannel
from tests.talk import SmallFetcher
from tests.world import ANNA, BOT, GUIDE, TESS, Noticeboard, Script, World, answer, run

T = TypeVar("T")

PIECES = tuple(f"{letter} " + "word " * 380 + "end." for letter in "AB")
EDITED = "Download the installer from the release page, and run it as an administrator."


@dataclass
class Power:
    """Counts the steps and cuts the power before the step `cut`, or with `taken` when Discord has taken it."""

    cut: int | None = None
    taken: bool = False
    steps: list[str] = field(default_factory=list[str])
    is_off: bool = False

    def is_cut(self, step: str) -> bool:
        self.steps.append(step)
        if self.cut is not None and len(self.steps) > self.cut:
            self.is_off = True
        return self.is_off

    async def call(self, step: str, effect: Callable[[], Coroutine[Any, Any, T]]) -> T:
        was_on = not self.is_off
        if self.is_cut(step):
            if self.taken and was_on:
                await effect()
            await asyncio.Event().wait()
        return await effect()


class Discord(SmallFetcher):
    """The state of Discord, which outlives the bot."""

    def __init__(self) -> None:
        super().__init__()
        self.channel = ReviewChannel()
        self.question: Message | None = None
        self.posted: list[Message] = []

    def ask(self, message: Message) -> None:
        self.question = self.there[message.id] = message

    def post(self, message: Message) -> None:
        self.posted.append(message)
        self.there[message.id] = message


class Board(Noticeboard):
    """Posts to Discord, as long as there is power."""

    def __init__(self, discord: Discord, power: Power) -> None:
        super().__init__()
        self.discord, self.power, self.may_post = discord, power, False

    async def open_thread(self, channel_id: int, message_id: int, name: str) -> int:
        return await self.power.call("thread", lambda: super(Board, self).open_thread(channel_id, message_id, name))

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        async def effect() -> int:
            assert self.may_post, "nobody has approved it"
            await asyncio.sleep(0.01)
            message_id = await super(Board, self).send(place_id, text, nonce=nonce, reply_to=reply_to)
            self.discord.post(Message(message_id, place_id, BOT, text, now()))
            return message_id

        return await self.power.call("send", effect)


@dataclass
class Reviewing:
    """The review channel, as long as there is power."""

    channel: ReviewChannel
    power: Power

    async def offer(self, channel_id: int, card: ReviewCard, *, nonce: str) -> int:
        return await self.power.call("offer", lambda: self.channel.offer(channel_id, card, nonce=nonce))

    async def show(self, channel_id: int, message_id: int, card: ReviewCard) -> None:
        await self.power.call("show", lambda: self.channel.show(channel_id, message_id, card))

    async def find(self, channel_id: int, draft_id: int) -> int | None:
        return await self.channel.find(channel_id, draft_id)


class Life:
    """One life of the bot."""

    def __init__(self, world: World, board: Board) -> None:
        self.world, self.board = world, board

    @classmethod
    async def begin(cls, folder: Path, discord: Discord, power: Power) -> Life:
        board = Board(discord, power)
        world = await World.begin(
            folder,
            script=Script(answers=[answer("\n\n".join(PIECES), GUIDE)] * 3),
            board=board,
            fetcher=discord,
            reviews=Reviewing(discord.channel, power),
            durable=True,
            ai_response={"approval": "all", "approval_minutes": 60, "max_answer_chars": 9000},
            discord={"review_channel_id": REVIEW},
        )
        return cls(world, board)

    @property
    def draft(self) -> Draft | None:
        drafts = self.world.parts.services.drafts
        question = self.board.discord.question
        return None if question is None else drafts.find(question.id)

    async def decide(self, action: DraftAction, text: str = "") -> None:
        draft = self.draft
        assert draft is not None
        self.board.may_post = self.board.may_post or action in {DraftAction.POST, DraftAction.KEEP}
        deciding = asyncio.ensure_future(self.world.parts.services.drafts.decide(draft.id, action, TESS.id, text))
        await asyncio.wait({deciding}, timeout=30)
        deciding.cancel()


async def posts(life: Life) -> None:
    await life.decide(DraftAction.POST)


async def posts_edited(life: Life) -> None:
    await life.decide(DraftAction.EDIT, EDITED)
    await life.decide(DraftAction.POST)


async def keeps(life: Life) -> None:
    await life.decide(DraftAction.EDIT, EDITED)
    await life.decide(DraftAction.KEEP)


async def discards(life: Life) -> None:
    await life.decide(DraftAction.DISCARD)


async def deletes(life: Life) -> None:
    question = life.board.discord.question
    assert question is not None
    life.world.deletes(question)
    await life.world.wait(1)


async def team_answers(life: Life) -> None:
    question = life.board.discord.question
    assert question is not None
    life.world.says(TESS, "Like this.", to=question)
    await life.world.wait(1)


async def waits(life: Life) -> None:
    await life.world.wait(3700)


Ending = Callable[[Life], Coroutine[Any, Any, None]]
ENDINGS: dict[Ending, tuple[str, list[str], int]] = {
    posts: ("posted", list(PIECES), 18),
    posts_edited: ("posted as edited", [EDITED], 14),
    keeps: ("posted as edited", [EDITED], 16),
    discards: ("discarded", [], 5),
    deletes: ("deleted", [], 5),
    team_answers: ("team answered", [], 5),
    waits: ("expired", [], 5),
}
"""By how it is decided: the end, what is posted, and the least number of kills (68 together)."""


DECIDED: dict[Ending, tuple[str, ...]] = {
    posts: ("post",),
    posts_edited: ("edit", "post"),
    keeps: ("edit", "keep"),
    discards: ("discard",),
}
"""The decisions of a person, by the test of what comes of them."""


async def first_life(life: Life, ending: Ending) -> None:
    question = life.world.writes(ANNA, "How do I install it?")
    life.board.discord.ask(question)
    life.world.delivers(question)
    await life.world.wait(62)
    if life.draft is not None and not life.board.power.is_off:
        await ending(life)


async def play(folder: Path, ending: Ending, power: Power, patch: pytest.MonkeyPatch) -> tuple[Life, Discord]:
    """A life that the power ends, and the next one, in which the person decides again if the draft still waits."""
    for write in (files.replace, files.append, files.remove):

        def cut_write(*args: Any, _write: Callable[..., Any] = write, **kwargs: Any) -> Any:
            return 0 if power.is_cut("write") else _write(*args, **kwargs)

        patch.setattr(files, write.__name__, cut_write)
    discord = Discord()
    life = await Life.begin(folder, discord, power)
    await first_life(life, ending)
    patch.undo()
    if power.cut is None:
        return life, discord
    life.world.running.cut_off()
    may_post = life.board.may_post
    life = await Life.begin(folder, discord, Power())
    life.board.may_post = may_post
    question = discord.question
    assert question is not None
    # Catch-up: the marks were not saved.
    life.world.delivers(question)
    await life.world.wait(62)
    draft = life.draft
    assert draft is not None
    if draft.state is DraftState.WAITING:
        await ending(life)
    await life.world.wait(10)
    return life, discord


def check(life: Life, discord: Discord, ending: Ending, folder: Path) -> None:
    end, texts, _ = ENDINGS[ending]
    draft = life.draft
    assert draft is not None
    assert (draft.state, draft.end, draft.is_shown) == (DraftState.ENDED, end, True)
    assert [message.text.strip() for message in discord.posted] == texts
    (card,) = discord.channel.cards.values()
    assert card.actions == ()
    kept = [path.read_text() for path in DataFolder(folder / "data").team_raw.glob("*.txt")]
    assert sum(text.count("--- QA ---") for text in kept if EDITED in text) == (ending is keeps)
    recorded = [line for line in DataFolder(folder / "data").posts.read_text().splitlines() if line] if texts else []
    assert len(recorded) == bool(texts)
    assert sum(outcome.ends_draft for outcome in life.world.outcomes) <= 1
    # Nothing was done without a line; what a kill has kept from being done, and was decided again, has two.
    audited = [(each.by, each.action, each.about) for each in read_audit(DataFolder(folder / "data").audit)]
    expected = [(str(TESS.id), f"{action} draft", str(draft.id)) for action in DECIDED.get(ending, ())]
    assert list(dict.fromkeys(audited)) == expected
    assert len(audited) <= len(expected) + 2


@pytest.fixture
def impatient_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of writes: nobody waits for the real disk."""

    def fsync(_descriptor: int) -> None:
        pass

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.usefixtures("impatient_disk")
@pytest.mark.parametrize("ending", ENDINGS, ids=lambda each: each.__name__)
def test_killed_at_any_step_a_draft_ends_once(tmp_path: Path, ending: Ending) -> None:
    uncut = Power()
    with pytest.MonkeyPatch.context() as patch:
        life, discord = run(lambda: play(tmp_path / "uncut", ending, uncut, patch))
    check(life, discord, ending, tmp_path / "uncut")
    # The first steps are the same for all.
    first = 0 if ending is posts else uncut.steps.index("offer") + 1
    cuts = [(cut, taken) for cut in range(first, len(uncut.steps)) for taken in (False, True)]
    kills, least = list[str](), ENDINGS[ending][-1]
    for cut, taken in cuts:
        if taken and uncut.steps[cut] == "write":
            continue  # the same as before the next step
        folder, power = tmp_path / f"{cut}-{taken}", Power(cut, taken)
        with pytest.MonkeyPatch.context() as patch:
            life, discord = run(lambda folder=folder, power=power: play(folder, ending, power, patch))
        assert power.is_off
        check(life, discord, ending, folder)
        kills.append(uncut.steps[cut])
    assert len(kills) >= least
