"""The worked examples of docs/extending.md."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import reactivex as rx

from examples.extending.event_source import irc_log
from examples.extending.model_step import SIMPLIFY, SimplifyingResult, simplify
from examples.extending.operator import SIGN, sign, slow_mode
from examples.extending.team_message import TIP
from model import conversations
from model.events import Event
from model.messages import Place, PlaceKind
from model.outcomes import Outcome
from operators.step import step
from services.assistant.inquiry import Inquiry, Unanswered
from services.conversations import tracking
from services.llm.endpoint import Unavailable
from services.llm.usage import Usage
from tests.leaks import crashes
from tests.marbles import play
from tests.talk import ANN, Talk
from tests.world import BOT, GUILD, HELP, START, TESS, Script, World

__all__ = ["crashes"]

LOG = """\
10:00:05 <anna> How do I install it?
10:00:09 <anna> On Debian, I mean.
-!- ben has joined
10:30:00 <ben> Where is the log?
"""


def letter(item: str) -> str:
    return item[0]


def broken(item: str) -> str:
    raise KeyError(item)


async def test_an_operator_lets_one_item_a_key_and_interval_through() -> None:
    assert await play("--a-a-b----a--|", slow_mode(letter, 6)) == "--a---b----a--|"


async def test_an_operator_passes_on_errors_of_the_source_and_of_the_key() -> None:
    assert await play("-a-#", slow_mode(letter, 6)) == "-a-#"
    assert await play("-a-|", slow_mode(broken, 6)) == "-#"


async def test_a_step_gives_the_inquiry_as_it_goes_on() -> None:
    talk = Talk()
    part = talk.part(talk.says(ANN, "How do I install it?"))
    inquiry = Inquiry(part, addressed=False, usage=Usage(), decisions={}, draft="With pip.")
    signed: list[Inquiry | Unanswered | Outcome] = []
    rx.of(inquiry).pipe(step("sign", sign("Millrace"), 1)).subscribe(signed.append)
    await asyncio.sleep(1)
    assert [each.draft for each in signed if isinstance(each, Inquiry)] == ["With pip.\n\nMillrace"]
    assert SIGN.decision is not None
    assert SIGN.decision.describe is not None
    assert SIGN.decision.describe(inquiry.decisions["sign"]) == "19 characters with the signature"


@pytest.mark.parametrize(
    ("said", "draft", "told"),
    [
        (SimplifyingResult(answer="Use pip. See https://evil.example."), "Use pip. See.", "put into plain words"),
        (Unavailable("down"), "With pip.", "left as it was"),
        (None, "With pip.", "left as it was"),
    ],
    ids=["simplified", "failed", "no model"],
)
async def test_a_step_has_a_model_change_the_draft(
    said: SimplifyingResult | Unavailable | None, draft: str, told: str
) -> None:
    talk = Talk()
    part = talk.part(talk.says(ANN, "How do I install it?"))
    inquiry = Inquiry(part, addressed=False, usage=Usage(), decisions={}, draft="With pip.", first_draft="With pip.")
    script = Script(later={} if said is None else {"simplify": said})
    after = await simplify(script)(inquiry)
    assert (after.draft, after.first_draft) == (draft, "With pip.")
    assert script.asked[0].text == "With pip."
    assert SIMPLIFY.decision is not None
    assert SIMPLIFY.decision.describe is not None
    assert SIMPLIFY.decision.describe(inquiry.decisions["simplify"]) == told


async def test_a_message_of_the_team_is_filed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (*conversations.KINDS, TIP)
    for module in (conversations, tracking):
        monkeypatch.setattr(module, "KINDS", kinds)
    prefixes = "|".join(each.prefix for each in kinds)
    monkeypatch.setattr(conversations, "_ID", re.compile(f"(?:{prefixes})[0-9]+"))
    world = await World.begin(tmp_path, team=True)
    world.opens(Place(HELP, PlaceKind.CHANNEL, "help", GUILD))
    world.says(TESS, "!tip The relay listens on port 7070.")
    await world.wait(1)
    assert world.story == ["captured"]
    [topic] = world.topics.values()
    assert "Team: The relay listens on port 7070.\n" in topic
    assert await world.close()


async def test_an_event_source_feeds_the_same_graph(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    channel = Place(77, PlaceKind.CHANNEL, "#help", guild_id=9)
    ended = asyncio.Event()
    source = irc_log(LOG.splitlines(), midnight=START, channel=channel, bot=BOT)
    source.subscribe(world.happens, on_completed=ended.set)
    await ended.wait()
    await world.close()
    assert world.story == ["replied", "replied"]
    assert world.replies[0] == "About: How do I install it?\nOn Debian, I mean."


async def test_an_event_source_gives_the_same_ids_each_time() -> None:
    async def ids() -> list[Event]:
        seen: list[Event] = []
        ended = asyncio.Event()
        channel = Place(77, PlaceKind.CHANNEL)
        irc_log(LOG.splitlines(), midnight=START, channel=channel, bot=BOT).subscribe(
            seen.append, on_completed=ended.set
        )
        await ended.wait()
        return seen

    first = await ids()
    assert len(first) == 5
    assert await ids() == first
