"""Answers that wait for a person: held, shown to the team, and ended once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from clock import now
from model.messages import Message, Place, PlaceKind, Reference
from model.outcomes import OutcomeKind, Reason
from reporting.reading import TimeSpan, read_outcomes
from services.conversations import UNKNOWN_DRAFT, Draft, DraftAction, DraftRequest, Drafts, DraftState
from services.conversations.drafts import STOPPING
from services.discord.protocols import PostFailed
from services.discord.review_cards import ReviewCard
from services.storage import DataFolder
from services.team import read_audit
from sinks.drafts import NOT_KEPT, QUESTION_EDITED, capture_of, card_of
from sinks.results import OutcomeRecord
from tests.searching import ScriptedSearch, found, passage
from tests.services.conversations.made_drafts import made_draft
from tests.talk import SmallFetcher
from tests.world import ANNA, BEN, GUIDE, GUILD, HELP, START, TESS, Noticeboard, Script, World, answer

REVIEW = 77
EDITED = "Download the installer from the release page and run `setup --all` as an administrator, @everyone."


@dataclass
class ReviewChannel:
    """The messages of the review channel, by id."""

    cards: dict[int, ReviewCard] = field(default_factory=dict[int, ReviewCard])
    refusal: PostFailed | None = None
    offered: int = 0

    async def offer(self, channel_id: int, card: ReviewCard, *, nonce: str) -> int:
        assert (channel_id, len(nonce) <= 25) == (REVIEW, True)
        self.offered += 1
        if self.refusal is not None:
            raise self.refusal
        self.cards[len(self.cards) + 1] = card
        return len(self.cards)

    async def show(self, channel_id: int, message_id: int, card: ReviewCard) -> None:
        assert channel_id == REVIEW
        if self.refusal is not None:
            raise self.refusal
        self.cards[message_id] = card

    async def find(self, channel_id: int, draft_id: int) -> int | None:
        assert channel_id == REVIEW
        found = [number for number, card in self.cards.items() if card.draft_id == draft_id and card.actions]
        return found[0] if found else None

    @property
    def last(self) -> ReviewCard:
        return self.cards[max(self.cards)]


class SlowDiscord(SmallFetcher):
    """Takes five seconds to say what a message is."""

    async def message(self, channel_id: int, message_id: int) -> Message | None:
        await asyncio.sleep(5)
        return await super().message(channel_id, message_id)


def surely(confidence: float, source: str) -> ScriptedSearch:
    return ScriptedSearch(found(passage(source), confidence=confidence))


async def begin(
    folder: Path, channel: ReviewChannel, approval: str = "all", minutes: float = 60, **changes: Any
) -> World:
    answering: Mapping[str, Any] = {"approval": approval, "approval_minutes": minutes}
    discord = {"review_channel_id": REVIEW, **changes.pop("discord", {})}
    changes = {"durable": True, **changes}
    return await World.begin(folder, reviews=channel, ai_response=answering, discord=discord, **changes)


async def held(world: World, text: str = "How do I install it?") -> int:
    """Ask, and wait until the answer is held. Returns the draft's id."""
    message = world.says(ANNA, text)
    await world.wait(61)
    return message.id


def drafts_of(world: World) -> Drafts:
    return world.parts.services.drafts


async def decide(world: World, draft_id: int, action: str, text: str = "") -> str:
    return await drafts_of(world).decide(draft_id, DraftAction(action), TESS.id, text)


@pytest.fixture
def channel() -> ReviewChannel:
    return ReviewChannel()


async def test_an_edit_of_somebody_who_is_forgotten_meanwhile_is_not_kept(
    tmp_path: Path, channel: ReviewChannel
) -> None:
    world = await begin(tmp_path, channel)
    draft_id = await held(world)
    edit = asyncio.create_task(decide(world, draft_id, "edit", EDITED))
    await asyncio.sleep(0)
    drafts_of(world).forget(TESS.id)
    await edit
    await world.wait(1)
    assert world.story[1:] == ["cancelled: deleted"]
    assert not any("setup --all" in path.read_text() for path in DataFolder(tmp_path / "data").drafts.glob("*"))
    assert await world.close()


async def test_an_answer_waits_and_is_posted_once_a_person_says_so(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel)
    draft_id = await held(world)
    assert (world.story, world.replies) == (["held: held for approval"], [])
    card = channel.last
    assert card.answer.startswith("About: How do I install it?")
    assert "How do I install it?" in card.heading
    assert card.actions == ("post", "edit", "discard")
    assert f"channels/9/{HELP}/{draft_id}" in card.heading
    assert await decide(world, draft_id, "post") == "It is posted."
    assert world.story[1:] == ["replied"]
    assert world.replies == [card.answer]
    assert channel.last.actions == ()
    assert channel.last.heading.startswith(f"**Posted by <@{TESS.id}>**")
    assert "install" not in channel.last.heading
    assert await decide(world, draft_id, "post") == (
        f"Nothing was done, as this draft has ended. Posted by <@{TESS.id}>."
    )
    assert len(world.replies) == 1
    assert world.tally.adds_up
    assert len(world.parts.services.in_flight) == 0
    assert await world.close()


async def test_who_decided_is_noted_and_what_was_refused_is_not(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel)
    drafts, draft_id = drafts_of(world), await held(world)
    log = DataFolder(tmp_path / "data").audit
    await decide(world, draft_id, "edit", " ")
    await decide(world, draft_id, "keep")
    assert read_audit(log) == []
    await decide(world, draft_id, "edit", EDITED)
    await drafts.decide(draft_id, DraftAction.DISCARD, operator="ana")
    await decide(world, draft_id, "post")  # too late
    assert [(each.by, each.action, each.about) for each in read_audit(log)] == [
        (str(TESS.id), "edit draft", str(draft_id)),
        ("ana", "discard draft", str(draft_id)),
    ]
    assert await world.close()


async def test_what_cannot_be_noted_is_not_posted(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel)
    draft_id = await held(world)
    DataFolder(tmp_path / "data").audit.mkdir()
    for action in ("post", "edit", "discard"):
        assert "cannot write to its disk" in await decide(world, draft_id, action, EDITED)
    assert (world.replies, [draft.text == EDITED for draft in drafts_of(world).waiting]) == ([], [False])
    DataFolder(tmp_path / "data").audit.rmdir()
    assert await decide(world, draft_id, "post") == "It is posted."
    assert await world.close()


async def test_what_was_edited_is_posted_as_edited_and_may_be_kept(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel, team=True)
    draft_id = await held(world)
    assert "cannot be empty" in await decide(world, draft_id, "edit", "  ")
    assert "at most 4,000 characters, and this 4,001" in await decide(world, draft_id, "edit", "x" * 4_001)
    assert "can be kept" in await decide(world, draft_id, "keep")
    await decide(world, draft_id, "edit", EDITED)
    assert channel.last.answer == EDITED
    assert channel.last.actions == ("post", "edit", "discard", "keep")
    assert (
        await decide(world, draft_id, "keep") == "It is posted as edited. It is kept as something that the team taught."
    )
    assert world.replies == [EDITED]
    assert "kept as what the team taught" in channel.last.heading
    await world.wait(3600)
    (topic,) = world.topics.values()
    assert "User: How do I install it?" in topic
    assert f"Team: {EDITED}" in topic
    thread_id, post_id = world.board.sent[-1].place_id, world.parts.services.posts.answer_to(draft_id)
    assert post_id is not None
    wrong = world.writes(TESS, "This is wrong.", where=thread_id, reply_to=Reference(post_id, thread_id))
    world.delivers(wrong)
    await world.wait(3600)
    (topic,) = world.topics.values()
    assert "speakers: User, Team (doubted)" in topic
    assert await world.close()


@pytest.mark.parametrize("question", ["a" * 4000, "*" * 4000], ids=["long", "escaped"])
def test_no_question_hides_what_else_the_team_is_told(question: str) -> None:
    draft = replace(made_draft(question=question), edited_by=TESS.id, until=1e10)
    assert not draft.may_be_kept, "nobody has read what would be quoted"
    sources = tuple(f"kb:{number}/{'long/' * 20}page.md" for number in range(20))
    post = replace(draft.reply.post, sources=sources)
    heading, answer = card_of(replace(draft, reply=replace(draft.reply, post=post))).texts
    assert answer == "Run restore."
    assert "… (4,000 characters)\n-# Sources: kb:0/long/" in heading
    assert heading.endswith(f"… · confidence 0.42\nEdited by <@{TESS.id}>.\n**The answer:**")


def test_a_draft_of_an_earlier_version_is_kept_whole() -> None:
    """It has the texts of its messages together."""
    draft = made_draft(8, question="How?\nThanks.")
    draft = replace(draft, reply=replace(draft.reply, asked_ids=(7, 8)))
    said = [(each.message_id, each.turn.text) for each in capture_of(draft, [9]).messages]
    assert said == [(8, "How?\nThanks."), (9, "Run restore.")]
    draft = replace(draft, asked_texts=("How?", "Thanks."))
    said = [(each.message_id, each.turn.text) for each in capture_of(draft, [9]).messages]
    assert said == [(7, "How?"), (8, "Thanks."), (9, "Run restore.")]


@pytest.mark.parametrize("action", ["post", "keep", "discard", "edit"])
@pytest.mark.parametrize("editor", [0, 999])
async def test_a_decision_is_about_the_text_that_was_seen(
    tmp_path: Path, channel: ReviewChannel, action: str, editor: int
) -> None:
    world = await begin(tmp_path, channel)
    draft_id = await held(world)
    drafts = drafts_of(world)
    seen = channel.last.version
    text = "An older text." if action == "edit" else ""
    await drafts.decide(draft_id, DraftAction.EDIT, editor, EDITED)
    told = await drafts.decide(draft_id, DraftAction(action), TESS.id, text, seen=seen)
    who = f"<@{editor}>" if editor else "Somebody at the dashboard"
    assert told.startswith(f"{who} has edited the answer meanwhile, and nothing was done: look at it again.")
    assert told.endswith(text)
    assert [(draft.state, draft.text) for draft in drafts.waiting] == [(DraftState.WAITING, EDITED)]
    assert world.replies == []
    # The same edit twice, as a client may send it.
    assert "It is changed" in await drafts.decide(draft_id, DraftAction.EDIT, editor, EDITED, seen=seen)
    await drafts.decide(draft_id, DraftAction.POST, TESS.id, seen=channel.last.version)
    assert world.replies == [EDITED]
    assert f"Posted as edited by {who}, approved by <@{TESS.id}>" in channel.last.heading


async def test_a_private_place_teaches_nothing(tmp_path: Path, channel: ReviewChannel) -> None:
    """Pitfall 47."""
    world = await begin(tmp_path, channel)
    world.opens(Place(HELP, PlaceKind.CHANNEL, "help", 9, public=False))
    draft_id = await held(world)
    await decide(world, draft_id, "edit", "Run it.")
    assert "keep" not in channel.last.actions
    assert "in a public channel" in await decide(world, draft_id, "keep")
    assert await world.close()


SECRET = "How do I install it? My customer number is 4711."


@pytest.mark.parametrize("operator", ["", "ana"], ids=["discord", "dashboard"])
@pytest.mark.parametrize("first", ["", "Hello from Anna,"])
async def test_a_question_is_kept_only_as_it_stands_on_discord(
    tmp_path: Path, channel: ReviewChannel, operator: str, first: str
) -> None:
    """What its author has edited away is no part of what the team taught."""
    world = await begin(tmp_path, channel, team=True, fetcher=(discord := SmallFetcher()))
    asked = [world.says(ANNA, text) for text in (first, SECRET) if text]
    discord.there = {each.id: each for each in asked}
    await world.wait(61)
    draft_id, drafts, by = asked[-1].id, drafts_of(world), 0 if operator else TESS.id
    await decide(world, draft_id, "edit", EDITED)
    world.edits(asked[0], "How do I install it?")
    discord.there[asked[0].id] = replace(asked[0], text="How do I install it?", edited_at=now())
    assert await drafts.decide(draft_id, DraftAction.KEEP, by, operator=operator) == QUESTION_EDITED
    assert (world.replies, len(drafts.waiting)) == ([], 1)
    told = await drafts.decide(draft_id, DraftAction.KEEP, by, operator=operator)
    assert told.endswith("that has not been edited since. Use *Post*.")
    assert await drafts.decide(draft_id, DraftAction.POST, by, operator=operator) == "It is posted as edited."
    await world.wait(3600)
    assert (world.replies, world.topics) == ([EDITED], {})


@pytest.mark.parametrize("pressed_after", [1, 3600], ids=["at once", "once it is shown"])
async def test_what_the_asker_has_edited_away_is_neither_shown_nor_the_name_of_the_thread(
    tmp_path: Path, channel: ReviewChannel, pressed_after: float
) -> None:
    world = await begin(tmp_path, channel, minutes=1440)
    question = world.says(ANNA, "How do I install it for customer olsen4711?")
    await world.wait(61)
    assert "olsen4711" in channel.last.heading
    world.edits(question, "How do I install it?")
    await world.wait(pressed_after)
    if pressed_after == 1:
        assert await decide(world, question.id, "post") == QUESTION_EDITED
    assert "How do I install it?" in channel.last.heading
    assert "olsen4711" not in channel.last.heading
    assert await decide(world, question.id, "post") == "It is posted."
    assert [name for _, _, name in world.board.threads] == ["How do I install it?"]


async def test_a_question_that_changes_while_its_answer_is_posted_is_not_kept(
    tmp_path: Path, channel: ReviewChannel
) -> None:
    discord, board = SmallFetcher(), Noticeboard(seconds=5)
    world = await begin(tmp_path, channel, team=True, fetcher=discord, board=board)
    question = world.says(ANNA, SECRET)
    discord.there[question.id] = question
    await world.wait(61)
    await decide(world, question.id, "edit", EDITED)
    keeping = asyncio.ensure_future(decide(world, question.id, "keep"))
    await world.wait(1)
    discord.there[question.id] = replace(question, text="How do I install it?")
    assert await keeping == f"It is posted as edited. {NOT_KEPT}"
    await world.wait(3600)
    assert world.topics == {}


async def test_what_is_discarded_is_not_posted(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel)
    draft_id = await held(world)
    assert await decide(world, draft_id, "discard") == "It is discarded."
    assert "has ended" in await decide(world, draft_id, "post")
    await world.wait(7200)
    assert world.story == ["held: held for approval", "skipped: discarded by a person"]
    assert world.replies == []
    assert await world.close()


async def test_its_time_is_up(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel, minutes=5)
    draft_id = await held(world)
    await world.wait(301)
    assert world.story[1:] == ["skipped: nobody decided"]
    assert "nobody decided in time" in await decide(world, draft_id, "post")
    assert world.replies == []


async def test_a_team_member_who_answers_ends_it(tmp_path: Path, channel: ReviewChannel) -> None:
    """Pitfall 34."""
    world = await begin(tmp_path, channel)
    question = world.says(ANNA, "How do I install it?")
    await world.wait(61)
    world.says(TESS, "Like this.", to=question)
    await world.wait(1)
    assert "cancelled: team answered" in world.story
    assert "the team answered" in channel.last.heading
    assert "has ended" in await decide(world, question.id, "post")
    assert world.replies == []


async def test_a_deleted_question_ends_it(tmp_path: Path, channel: ReviewChannel) -> None:
    """Pitfall 29."""
    world = await begin(tmp_path, channel)
    question = world.says(ANNA, "How do I install it?")
    await world.wait(61)
    world.deletes(question)
    await world.wait(1)
    assert world.story[1:] == ["cancelled: deleted"]
    assert "has ended" in await decide(world, question.id, "post")


async def test_an_asker_who_withdraws_ends_it(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel)
    await held(world)
    world.parts.services.in_flight.withdraw(ANNA.id)
    await world.wait(1)
    assert world.story[1:] == ["cancelled: deleted"]
    (path,) = DataFolder(tmp_path / "data").drafts.glob("*")
    assert str(ANNA.id) not in path.read_text()
    assert "install" not in path.read_text()


@pytest.mark.parametrize("how", ["post", "restart"])
async def test_an_asker_who_has_opted_out_unheard_gets_no_answer(
    tmp_path: Path, channel: ReviewChannel, how: str
) -> None:
    """As while nobody owned the partition, or before a crash."""
    world = await begin(tmp_path, channel)
    draft_id = await held(world)
    await world.parts.state.opt_outs.add(ANNA.id)
    if how == "restart":
        assert await world.close()
        world = await begin(tmp_path, channel)
    else:
        assert "has opted out" in await decide(world, draft_id, "post")
    await world.wait(1)
    assert [str(end.reason) for end in world.outcomes if end.ends_draft] == [str(Reason.DELETED)]
    assert world.replies == []


@pytest.mark.parametrize(
    ("confidence", "source", "waits"), [(0.9, GUIDE, False), (0.7, GUIDE, True), (0.9, "team:setup.txt", True)]
)
async def test_unsure_holds_what_is_not_sure_and_what_the_team_taught(
    tmp_path: Path, channel: ReviewChannel, confidence: float, source: str, waits: bool
) -> None:
    script = Script(picks=(source,), answers=[answer("So.", source)])
    world = await begin(tmp_path, channel, "unsure", script=script, search=surely(confidence, source))
    world.shelf.texts = {source: "The text."}
    await held(world)
    assert world.story == (["held: held for approval"] if waits else ["replied"])
    (outcome,) = world.outcomes
    assert outcome.decisions["approve"] == {"held": waits, "confidence": confidence}


async def test_one_channel_differs(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel, discord={"channels": {str(HELP): {"approval": "off"}}})
    await held(world)
    assert world.story == ["replied"]


async def test_the_askers_next_question_does_not_wait_for_the_first(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel)
    first, second = await held(world, "How do I install it?"), await held(world, "How do I remove it?")
    await decide(world, second, "post")
    await decide(world, first, "post")
    assert world.story[2:] == ["replied", "replied"]
    assert [text.split("?")[0] for text in world.replies] == ["About: How do I remove it", "About: How do I install it"]


async def test_a_crash_before_the_end_is_recorded_has_it_given_again_and_no_more(
    tmp_path: Path, channel: ReviewChannel
) -> None:
    world = await begin(tmp_path, channel)
    draft_id = await held(world)
    await decide(world, draft_id, "discard")
    # A request that was made before, such as to show the draft.
    drafts_of(world).requests.on_next(DraftRequest(draft_id, DraftAction.RESUME))
    await world.wait(1)
    assert world.story[1:] == ["skipped: discarded by a person"]
    for recorded in (False, True):
        world.running.cut_off()
        world = await begin(tmp_path, channel)
        await world.wait(1)
        assert world.story == ([] if recorded else ["skipped: discarded by a person"])
        # Then it is cut off before it has noted that the record is written.
        await world.parts.state.record.save()
    await world.close()
    outcomes = read_outcomes(DataFolder(tmp_path / "data").outcomes, TimeSpan(0.0, 4e9))
    assert [entry.reason for entry in outcomes] == ["discarded by a person"]


async def test_a_stop_keeps_it_and_the_next_start_goes_on(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel)
    draft_id = await held(world)
    assert await world.close()
    assert await decide(world, draft_id, "post") == STOPPING
    world = await begin(tmp_path, channel)
    await world.wait(1)
    assert (channel.offered, len(drafts_of(world).waiting)) == (1, 1)
    assert await decide(world, draft_id, "post") == "It is posted."
    assert world.story == ["replied"]
    assert await world.close()
    world = await begin(tmp_path, channel)
    await world.wait(1)
    assert world.story == []
    assert "has ended" in await decide(world, draft_id, "discard")
    assert drafts_of(world).waiting == []


async def test_what_ends_it_ends_it_after_a_restart_too(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel, minutes=600)
    kept = [world.says(ANNA, "How do I install it?")]
    await world.wait(61)
    kept += [world.says(ANNA, "How do I remove it?")]
    await world.wait(61)
    expires = await held(world, "How do I sell it?")
    assert await world.close()
    world = await begin(tmp_path, channel, minutes=600)
    await world.wait(1)
    # Catch-up reads a message again: its draft is known, and goes on waiting.
    world.delivers(kept[0])
    await world.wait(61)
    world.says(TESS, "Like this.", to=kept[0])
    world.deletes(kept[1])
    await world.wait(1)
    ends = [end for end in world.outcomes if end.ends_draft]
    assert [str(end.reason) for end in ends] == ["team answered", "deleted"]
    await world.wait(36_000)
    assert "nobody decided in time" in await decide(world, expires, "post")
    assert await decide(world, 5, "post") == UNKNOWN_DRAFT
    assert world.replies == []


async def test_a_review_channel_that_is_forbidden_loses_nothing(
    tmp_path: Path, channel: ReviewChannel, caplog: pytest.LogCaptureFixture
) -> None:
    channel.refusal = PostFailed("nothing sent to 77: the bot cannot see the channel (View Channel)")
    world = await begin(tmp_path, channel)
    await held(world)
    await held(world, "How do I remove it?")
    await world.wait(1300)
    assert channel.offered == 6
    lines = [record for record in caplog.records if "review_channel_id" in record.message]
    assert len(lines) == 1
    assert (world.replies, len(drafts_of(world).waiting)) == ([], 2)
    channel.refusal = None
    await world.wait(600)
    assert len(channel.cards) == 2


@pytest.mark.parametrize("is_public", [True, False])
async def test_what_was_asked_in_a_hidden_channel_is_not_shown_in_a_review_channel_that_everybody_views(
    tmp_path: Path, channel: ReviewChannel, caplog: pytest.LogCaptureFixture, is_public: bool
) -> None:
    """Also if one role is shut out of it, or nobody can read its history."""
    world = await begin(tmp_path, channel)
    world.opens(Place(REVIEW, PlaceKind.CHANNEL, "review", GUILD, public=is_public))
    world.opens(Place(HELP, PlaceKind.CHANNEL, "help", GUILD, public=False))
    hidden = await held(world)
    world.opens(Place(HELP, PlaceKind.CHANNEL, "help", GUILD))
    shown = await held(world, "How do I remove it?")
    await world.wait(700)
    assert [card.draft_id for card in channel.cards.values()] == [shown]
    assert len([each for each in caplog.records if f"everybody can view {REVIEW}" in each.getMessage()]) == 1
    assert len(drafts_of(world).waiting) == 2
    world.opens(Place(REVIEW, PlaceKind.CHANNEL, "review", GUILD, public=False, viewable=False))
    await world.wait(601)
    assert channel.last.draft_id == hidden
    assert await world.close()


@pytest.mark.parametrize("how", ["captured", "hidden since"])
async def test_nor_is_what_the_bot_may_learn_from_or_what_was_hidden_before_it_could_be_shown(
    tmp_path: Path, channel: ReviewChannel, how: str
) -> None:
    world = await begin(tmp_path, channel, discord={"capture_channels": [HELP]} if how == "captured" else {})
    world.opens(Place(REVIEW, PlaceKind.CHANNEL, "review", GUILD))
    world.opens(Place(HELP, PlaceKind.CHANNEL, "help", GUILD, public=how == "hidden since"))
    channel.refusal = PostFailed("down", is_passing=True)
    await held(world)
    world.opens(Place(HELP, PlaceKind.CHANNEL, "help", GUILD, public=False))
    channel.refusal = None
    await world.wait(1300)
    assert channel.cards == {}
    assert await world.close()


async def test_what_stands_in_a_review_channel_that_is_opened_to_everybody_loses_its_words(
    tmp_path: Path, channel: ReviewChannel
) -> None:
    world = await begin(tmp_path, channel)
    world.opens(Place(REVIEW, PlaceKind.CHANNEL, "review", GUILD, public=False, viewable=False))
    world.opens(Place(HELP, PlaceKind.CHANNEL, "help", GUILD, public=False))
    draft_id = await held(world)
    card = channel.last
    world.opens(Place(REVIEW, PlaceKind.CHANNEL, "review", GUILD))
    assert await decide(world, draft_id, "edit", EDITED) == "It is changed. *Post* posts it as it is now."
    assert (channel.last.answer, channel.last.actions, "install" in channel.last.heading) == ("", (), False)
    await held(world, "How do I remove it?")
    world.opens(Place(REVIEW, PlaceKind.CHANNEL, "review", GUILD, public=False, viewable=False))
    await world.wait(601)
    assert channel.cards[1].answer == EDITED
    assert channel.cards[1].actions == (*card.actions,)
    assert await world.close()


async def test_a_refused_post_waits_on(tmp_path: Path, channel: ReviewChannel) -> None:
    board = Noticeboard(refusal=PostFailed("no thread: the bot lacks a permission there"))
    world = await begin(tmp_path, channel, board=board)
    draft_id = await held(world)
    assert "cannot be posted: no thread: the bot lacks a permission there. The draft waits on" in (
        await decide(world, draft_id, "post")
    )
    draft = drafts_of(world).find(draft_id)
    assert draft is not None
    assert draft.state is DraftState.WAITING
    board.refusal = None
    assert await decide(world, draft_id, "post") == "It is posted."
    assert len(world.replies) == 1


async def test_two_presses_at_once_post_it_once(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel, board=Noticeboard(seconds=1))
    draft_id = await held(world)
    drafts = drafts_of(world)
    first = drafts.decide(draft_id, DraftAction.POST, TESS.id)
    second = drafts.decide(draft_id, DraftAction.DISCARD, 5)
    told = await asyncio.gather(first, second)
    assert told[0] == "It is posted."
    assert "has ended. Posted by" in told[1]
    assert len(world.replies) == 1


async def test_a_rehearsal_shows_drafts_as_drafts(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel, durable=False)
    question = world.says(ANNA, "How do I install it?")
    await world.wait(61)
    world.deletes(question)
    await world.wait(100_000)
    assert await world.close()
    assert world.story == ["held: held for approval"]
    assert channel.cards == {}
    line = json.loads(world.lines[0])
    assert (line["outcome"], line["reason"]) == ("held", "held for approval")
    assert line["reply_text"].startswith("About: How do I install it?")
    assert world.tally.summary()["held"] == 1
    assert world.tally.adds_up


async def test_the_report_counts_it_once(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel)
    record = OutcomeRecord(tmp_path / "outcomes", str)
    draft_id = await held(world)
    record.add(world.outcomes[0])
    await decide(world, draft_id, "discard")
    record.add(world.outcomes[1])
    await record.save()
    (entry,) = read_outcomes(tmp_path / "outcomes", TimeSpan(0, START * 2))
    assert (entry.result, entry.reason) == (OutcomeKind.SKIPPED, "discarded by a person")
    assert entry.question == "How do I install it?"
    assert (entry.llm_calls, entry.path["approve"]["end"]) == (world.outcomes[0].llm_calls, "discarded")


async def test_a_draft_that_cannot_be_stored_is_a_failure(
    tmp_path: Path, channel: ReviewChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await begin(tmp_path, channel)

    async def full(_self: Drafts, _draft: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Drafts, "put", full)
    await held(world)
    assert world.story == ["failed: OSError at approve"]
    assert (world.replies, channel.cards, len(world.parts.services.in_flight)) == ([], {}, 0)


@pytest.mark.parametrize("state", [DraftState.WAITING, DraftState.APPROVED, DraftState.ENDED])
@pytest.mark.parametrize("action", ["post", "edit", "discard"])
async def test_a_disk_that_is_full_for_a_while_loses_nothing(
    tmp_path: Path, channel: ReviewChannel, monkeypatch: pytest.MonkeyPatch, state: DraftState, action: str
) -> None:
    world = await begin(tmp_path, channel)
    draft_id = await held(world)
    put = Drafts.put

    async def full(drafts: Drafts, draft: Draft) -> None:
        if draft.state is state:
            raise OSError(28, "No space left on device")
        await put(drafts, draft)

    with monkeypatch.context() as patch:
        patch.setattr(Drafts, "put", full)
        await decide(world, draft_id, action, "Run it.")
        posted = len(world.replies)
        assert posted == (action == "post" and state is not DraftState.APPROVED)
    await world.wait(700)
    await decide(world, draft_id, action, "Run it.")
    await decide(world, draft_id, "post")
    assert len(world.replies) == (action != "discard")
    assert [str(end.result) for end in world.outcomes] == ["held", "skipped" if action == "discard" else "replied"]
    draft = drafts_of(world).find(draft_id)
    assert draft is not None
    assert draft.is_shown


async def test_an_end_that_cannot_be_stored_comes_later(
    tmp_path: Path, channel: ReviewChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await begin(tmp_path, channel)
    question = world.says(ANNA, "How do I install it?")
    await world.wait(61)

    async def full(_drafts: Drafts, _draft: Draft) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Drafts, "put", full)
        world.deletes(question)
        await world.wait(1)
        assert world.story == ["held: held for approval"]
    await world.wait(700)
    assert world.story[1:] == ["cancelled: deleted"]


async def test_a_team_member_who_answers_while_the_press_is_looked_at_comes_first(
    tmp_path: Path, channel: ReviewChannel
) -> None:
    """Pitfall 34."""
    world = await begin(tmp_path, channel, fetcher=(discord := SlowDiscord()))
    question = world.says(ANNA, "How do I install it?")
    discord.there[question.id] = question
    await world.wait(61)
    pressing = asyncio.ensure_future(decide(world, question.id, "post"))
    await world.wait(1)
    world.says(TESS, "Like this.", to=question)
    assert await pressing == "It is not needed any more, so nothing is posted."
    await world.wait(1)
    assert [str(end.reason) for end in world.outcomes if end.ends_draft] == ["team answered"]
    assert world.replies == []


async def test_a_question_that_is_reworded_under_the_form_is_neither_kept_nor_posted_unseen(
    tmp_path: Path, channel: ReviewChannel
) -> None:
    world = await begin(tmp_path, channel, minutes=1440)
    question = world.says(ANNA, "How do I install it?")
    await world.wait(61)
    drafts, seen = drafts_of(world), channel.last.version  # the form of *Edit* has the version of the card
    world.edits(question, "Is it safe to delete everything?")
    await world.wait(60)
    assert "(edited since)" in channel.last.heading
    told = await drafts.decide(question.id, DraftAction.EDIT, TESS.id, EDITED, seen=seen)
    assert told == f"{QUESTION_EDITED} You wrote:\n{EDITED}"
    for text in ("", channel.last.answer):
        told = await drafts.decide(question.id, DraftAction.POST, TESS.id, text, seen=seen)
        assert told.startswith(QUESTION_EDITED)
    assert world.replies == []
    await drafts.decide(question.id, DraftAction.EDIT, TESS.id, EDITED, seen=channel.last.version)
    assert "keep" not in channel.last.actions
    told = await drafts.decide(question.id, DraftAction.KEEP, TESS.id, seen=channel.last.version)
    assert told.endswith("that has not been edited since. Use *Post*.")


async def test_whom_a_question_mentions_may_be_called_otherwise_meanwhile(
    tmp_path: Path, channel: ReviewChannel
) -> None:
    """A message of the gateway has nicknames, one of the other interface has not."""
    world = await begin(tmp_path, channel, fetcher=(discord := SmallFetcher()))
    question = world.says(ANNA, f"How do I install it, <@{BEN.id}>?", mentions=((BEN.id, "Big Ben"),))
    discord.there[question.id] = replace(question, mentions=((BEN.id, "ben"),))
    await world.wait(61)
    assert await decide(world, question.id, "post") == "It is posted."
