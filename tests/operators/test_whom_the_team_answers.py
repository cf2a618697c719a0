"""Whom an answer of the team is to, from the messages to what is quoted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.conversations import READING_SECONDS
from model.events import PlaceSeen, Ready
from model.messages import Attachment, Author, Message, Place, Reference
from operators.capturing import ExtractedCapture, extract
from services.assistant import CaptureJob
from services.conversations import Context, ContextRules, ConversationTracker, History
from services.knowledge.topic_files import read_topic
from services.team import archive
from services.team.archive import Pair
from services.team.captures import (
    Capture,
    CapturedMessage,
    RecentCaptures,
    Revision,
    apply_revisions,
    captured_messages,
)
from services.team.topics import topic_block
from tests.services.team.test_archive import a_pair
from tests.talk import ANN, BEN, BOT, CHANNEL, POST, STAFF, STAFF_TOO, START, THREAD, SmallFetcher, Talk, snowflake

CAT = Author(3, "cat")
USERS = ANN, BEN, CAT
TOKEN = re.compile(r"\bx\d+x\b")


def tokens(text: str) -> list[str]:
    return TOKEN.findall(text)


class World(Talk):
    """A server whose bot captures what the team says, is told of edits and deletions, and may be started again."""

    def __init__(self, place: Place = CHANNEL) -> None:
        self.fetcher = SmallFetcher()
        super().__init__(fetcher=self.fetcher)
        self.where = place
        self.second = 0.0
        self.sent: list[Message] = []
        self.gone: set[int] = set()
        self.opted_out: set[int] = set()
        self.written_at: dict[str, tuple[int, float]] = {}  # author and second, by token
        self.writers: dict[int, tuple[float, int]] = {}  # second and author, by message of a user
        self.versions: dict[int, list[tuple[float, str]]] = {}  # second and token of each version, by message
        self.pairs: list[Pair] = []
        self.captures = RecentCaptures([], self.is_unwanted)

    def is_unwanted(self, said: CapturedMessage) -> bool:
        return said.author_id in self.opted_out

    def token(self, author: Author) -> str:
        token = f"x{len(self.written_at)}x"
        self.written_at[token] = author.id, self.second
        return token

    def writes(self, author: Author, text: str, wait: float = 60, to: Message | Reference | None = None) -> Message:
        self.second += max(wait, 0.5)
        said = text.replace("TOKEN", self.token(author))
        message = self.says(author, said, place=self.where, to=to, second=self.second)
        self.sent.append(message)
        self.fetcher.there[message.id] = message
        if author != STAFF:
            self.writers[message.id] = self.second, author.id
        self.versions[message.id] = [(self.second, (tokens(said) or [""])[0])]
        return message

    def removes(self, message: Message) -> None:
        self.gone.add(message.id)
        self.fetcher.there.pop(message.id, None)
        self.deletes(message)
        self.revises(Revision(message.id))

    def changes(self, message: Message, text: str, *, wait: float = 1, is_heard: bool = True) -> None:
        self.second += wait
        new = text.replace("TOKEN", self.token(message.author))
        self.versions[message.id].append((self.second, (tokens(new) or [""])[0]))
        self.fetcher.there[message.id] = replace(message, text=new, edited_at=START + self.second)
        if not is_heard:
            self.starts_again()
        else:
            self.edits(message, new, second=self.second)
            self.revises(Revision(message.id, new, message.author.id))

    def revises(self, revision: Revision) -> None:
        """As `RawArchive.revise`."""
        self.captures.revise([revision])
        for pair in {each.conversation_id: each for each in self.pairs}.values():
            messages = captured_messages(pair)
            revised = apply_revisions(messages, {revision.message_id: revision})
            if revised != tuple(messages):
                self.stores(Capture(None, pair.conversation_id, revised))

    def starts_again(self) -> None:
        self.second += 5
        self.writers = {each: said for each, said in self.writers.items() if each not in self.gone}
        self.history, self.tracker = History(self.fetcher), ConversationTracker()
        self.history.observe(Ready(START + self.second, BOT.id, BOT.name))
        for place in (CHANNEL, THREAD):
            self.history.add_place(place)
        self.captures = RecentCaptures(self.pairs, self.is_unwanted)

    def is_captured(self, *messages: Message) -> None:
        rules = ContextRules(withheld=lambda message: message.author.id in self.opted_out or "!nobot" in message.text)
        context = Context(self.history, self.people, self.tracker, rules)
        result = asyncio.run(extract(context)(CaptureJob(self.part(*messages))))
        if isinstance(result, ExtractedCapture):
            self.stores(self.captures.join(result.capture))

    def stores(self, capture: Capture) -> None:
        """As `RawArchive`."""
        if not capture.is_exchange:
            return
        pair = replace(
            a_pair(second=57),
            id=f"qa_20260201_031057.{len(self.pairs):06d}",
            timestamp=f"2026-02-01T03:10:57.{len(self.pairs):06d}Z",
            conversation_id=capture.conversation_id,
            message_ids=tuple(each.message_id for each in capture.messages),
            author_ids=tuple(each.author_id for each in capture.messages),
            turns=tuple(each.turn for each in capture.messages),
        )
        pair = archive.with_addressees(pair, [each.addressee_id for each in capture.messages])
        [stored] = archive.parse(archive.render(pair))
        assert stored == pair
        self.pairs.append(stored)
        self.captures.remember(stored)

    @property
    def quoted(self) -> list[tuple[str, str]]:
        """Each question and answer that is quoted now."""
        last = {pair.conversation_id: pair for pair in self.pairs}.values()
        sections = [each for pair in last for each in read_topic(topic_block(pair).text).sections]
        return [(each.headings[-1], each.text) for each in sections if each.quotable]


SCAM = "Should I send my recovery phrase to bob_support?"
LAMP = "Is it okay to leave the backup lamp on overnight?"
YES = "Yes, that is completely fine, and we recommend it to everybody."


def asked_by_two(*, place: Place = CHANNEL) -> tuple[World, Message, Message]:
    world = World(place)
    lamp = world.writes(ANN, LAMP)
    return world, lamp, world.writes(BEN, SCAM, to=lamp)


def test_a_reply_is_quoted_below_what_it_answers() -> None:
    world, lamp, _ = asked_by_two()
    world.is_captured(world.writes(STAFF, YES, to=lamp))
    assert world.quoted == [(LAMP, YES)]


@pytest.mark.parametrize("place", [CHANNEL, THREAD])
@pytest.mark.parametrize("way", ["deleted", "withheld", "marked later", "opted out"])
def test_an_answer_to_what_is_not_captured_is_not_quoted_below_another_users_words(way: str, place: Place) -> None:
    world, lamp, _ = asked_by_two(place=place)
    answer = world.writes(STAFF, YES, to=lamp)
    if way == "deleted":
        world.removes(lamp)
    elif way == "opted out":
        world.opted_out.add(ANN.id)
    else:
        world.changes(lamp, f"{LAMP} !nobot")
    world.is_captured(answer)
    assert world.quoted == []
    assert not any(ANN.id in pair.author_ids + pair.addressee_ids for pair in world.pairs if way == "opted out")


@pytest.mark.parametrize("is_reply", [True, False])
def test_one_account_cannot_take_away_what_was_answered(is_reply: bool) -> None:
    world = World()
    world.writes(ANN, SCAM)
    lamp = world.writes(ANN, f"And {LAMP}")
    answer = world.writes(STAFF, YES, to=lamp if is_reply else None)
    world.removes(lamp)
    world.is_captured(answer)
    assert world.quoted == []


@pytest.mark.parametrize("place", [CHANNEL, THREAD])
def test_what_is_deleted_after_the_capture_makes_its_answers_uncertain(place: Place) -> None:
    world = World(place)
    world.writes(ANN, SCAM)
    lamp = world.writes(ANN, f"Well, and {LAMP}")
    world.is_captured(world.writes(STAFF, YES, to=lamp))
    world.removes(lamp)
    assert world.quoted == []
    world.is_captured(world.writes(STAFF, "The lamp is on the left side of the box."))
    assert world.quoted == []


@pytest.mark.parametrize("place", [CHANNEL, THREAD])
def test_what_is_stored_stays_uncertain_when_somebody_opts_out_and_the_conversation_goes_on(place: Place) -> None:
    world, _lamp, _ = asked_by_two(place=place)
    answer = world.writes(STAFF, YES)
    world.is_captured(answer)
    world.opted_out.add(ANN.id)
    more = world.writes(BEN, "ah and where is the switch of it?", to=answer)
    world.is_captured(world.writes(STAFF, "It is on the left side of the box.", to=more))
    assert YES not in "".join(text for _, text in world.quoted)


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_thread_that_is_read_again_says_what_was_stored(is_deleted: bool) -> None:
    world = World(THREAD)
    lamp = world.writes(ANN, LAMP)
    world.is_captured(world.writes(STAFF, YES, to=lamp))
    assert world.quoted == [(LAMP, YES)]
    if is_deleted:
        world.removes(lamp)
    world.starts_again()
    if not is_deleted:
        world.changes(lamp, SCAM)
    world.is_captured(world.writes(STAFF, "The lamp is on the left side of the box, by the way."))
    said = str(world.pairs[-1].turns)
    assert [each in said for each in (LAMP, YES, SCAM)] == [False, not is_deleted, False]
    assert world.quoted == []  # what the team has added, it is not certain to whom, may correct it


@pytest.mark.parametrize("is_heard", [True, False])
def test_what_was_edited_after_the_answer_and_is_fetched_has_no_words(is_heard: bool) -> None:
    world = World()
    lamp = world.writes(ANN, LAMP)
    here = world.writes(ANN, "anybody here?", wait=2)
    world.starts_again()
    answer = world.writes(STAFF, YES, to=here)
    world.changes(lamp, SCAM, is_heard=is_heard)
    world.is_captured(answer)
    assert "recovery" not in str(world.pairs)
    assert world.quoted == []


def test_a_namesake_is_not_whom_the_team_mentions() -> None:
    world = World()
    scam = world.writes(Author(4, "ann"), SCAM)
    world.is_captured(world.writes(STAFF, "@ann one sec", to=scam))
    lamp = world.writes(ANN, LAMP)
    world.is_captured(world.writes(STAFF, f"@ann {YES}", to=lamp))
    assert [question for question, _ in world.quoted] == [LAMP]


@pytest.mark.parametrize(
    ("wait", "is_reply", "wanted"), [(60, False, []), (1, True, []), (1, False, []), (60, True, [SCAM])]
)
def test_without_a_reply_whoever_has_written_in_the_place_may_be_meant(
    wait: float, is_reply: bool, wanted: list[str]
) -> None:
    """A question that was just written cannot have been read, whatever the team replied to."""
    world = World()
    world.writes(ANN, LAMP)
    scam = world.writes(BEN, SCAM)
    world.is_captured(world.writes(STAFF, YES, wait=wait, to=scam if is_reply else None))
    assert [question for question, _ in world.quoted] == wanted


def test_without_a_reply_the_only_user_who_has_written_is_answered() -> None:
    world = World()
    world.writes(ANN, "Which lamp is the brightest of all?")
    world.writes(BEN, LAMP, wait=1_300)
    world.is_captured(world.writes(STAFF, YES))
    assert world.quoted == [(LAMP, YES)]


WIPE = "Stop it, run `lamp wipe --all`, which empties its data folder, and then start it once more as it was before."


def test_what_is_edited_while_the_answer_is_written_does_not_stand_above_it() -> None:
    world = World()
    lamp = world.writes(ANN, LAMP)
    world.changes(lamp, SCAM, wait=50)
    for wait in (12, 300):
        world.is_captured(world.writes(STAFF, WIPE, wait=wait, to=lamp))
        assert "recovery" not in str(world.pairs)
        assert world.quoted == []


@pytest.mark.parametrize(("wait", "wanted"), [(300, []), (700, [SCAM])])
def test_what_was_edited_lately_may_have_been_read_as_it_was(wait: float, wanted: list[str]) -> None:
    world = World()
    lamp = world.writes(ANN, LAMP)
    world.changes(lamp, SCAM, wait=5)
    world.is_captured(world.writes(STAFF, WIPE, wait=wait, to=lamp))
    assert [question for question, _ in world.quoted] == wanted


def test_a_reply_is_to_the_messages_around_its_target_alone() -> None:
    world, lamp, _ = asked_by_two()
    world.writes(ANN, "And where is the switch of it?")
    world.is_captured(world.writes(STAFF, YES, to=lamp))
    assert world.quoted == [(LAMP, YES)]


@pytest.mark.parametrize("is_reply", [True, False])
def test_what_came_too_late_to_be_read_is_not_taken_for_answered(is_reply: bool) -> None:
    """Neither does a quick reply to it answer what stands before it, nor what the team says next."""
    world = World()
    lamp = world.writes(ANN, LAMP)
    scam = world.writes(ANN, SCAM)
    world.is_captured(world.writes(STAFF, YES, wait=1, to=scam if is_reply else lamp))
    assert world.quoted == ([] if is_reply else [(LAMP, YES)])
    world.is_captured(world.writes(STAFF, WIPE))
    assert world.quoted == []


@pytest.mark.parametrize("gap", [5, 50, 400])
def test_a_reply_to_one_of_several_messages_is_not_quoted_below_another_one(gap: float) -> None:
    world = World()
    first = world.writes(ANN, "Never mind, that is solved, tell me how to get rid of the lamp, please")
    world.writes(ANN, LAMP, wait=gap)
    world.is_captured(world.writes(STAFF, WIPE, wait=25, to=first))
    assert not any(LAMP in question for question, _ in world.quoted)


def test_a_question_that_comes_while_the_answer_to_another_one_is_written_does_not_stand_above_it() -> None:
    world = World()
    world.writes(ANN, LAMP)
    world.writes(BEN, SCAM, wait=640)
    world.is_captured(world.writes(STAFF, WIPE, wait=25))
    assert world.quoted == []


@pytest.mark.parametrize(
    ("text", "more", "is_quoted"),
    [
        (LAMP, {"attachments": (Attachment(5, "q.png", 9, "https://cdn.example/q.png"),)}, False),
        (LAMP, {"has_unread_parts": True}, False),
        (f"{LAMP} https://example.com/q.png", {}, False),
        (f"{LAMP} <https://example.com/q.png", {}, False),
        (f"{LAMP} https://example.com/q.png>", {}, False),
        (f"{LAMP} <https://example.com/q.png>", {}, True),
        (f"{LAMP} ~~Or not?~~", {}, False),
    ],
)
def test_an_answer_to_a_question_with_more_than_words_is_not_quoted(
    text: str, more: dict[str, Any], is_quoted: bool
) -> None:
    """The question may stand in the file, the poll, or the preview of an address."""
    world = World()
    shown = world.says(ANN, text, second=60, **more)
    world.second = 60
    world.is_captured(world.writes(STAFF, WIPE, to=shown))
    assert (len(world.pairs), len(world.quoted)) == (1, int(is_quoted))


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("more", "is_quoted"),
    [
        ({}, True),
        ({"attachments": (Attachment(5, "q.png", 9, "https://cdn.example/q.png"),)}, False),
        ({"has_unread_parts": True}, False),
    ],
)
def test_an_answer_with_more_than_words_is_not_quoted_nor_what_goes_on_with_it(
    more: dict[str, Any], *, is_first: bool, is_quoted: bool
) -> None:
    world = World()
    lamp = world.writes(ANN, LAMP)
    first = world.says(STAFF, "Press the left button of it.", to=lamp, second=120, **(more if is_first else {}))
    then = world.says(STAFF, "Then restart the lamp.", second=150, **({} if is_first else more))
    world.second = 150
    world.is_captured(first, then)
    assert (len(world.pairs), len(world.quoted)) == (1, int(is_quoted))
    world.is_captured(world.writes(STAFF, WIPE, to=world.writes(BEN, SCAM)))
    assert (SCAM, WIPE) in world.quoted  # another question


@pytest.mark.parametrize("is_reply", [True, False])
def test_what_a_question_replies_to_or_stands_below_may_be_what_the_team_answers(*, is_reply: bool) -> None:
    opened = replace(THREAD, id=snowflake(60))
    world = World(CHANNEL if is_reply else opened)
    world.history.add_place(opened)
    first = world.says(BEN, SCAM, second=60)
    world.second = 1000
    lamp = world.writes(ANN, LAMP, to=first if is_reply else None)
    world.is_captured(world.writes(STAFF, YES, to=lamp))
    assert (len(world.pairs), world.quoted) == (1, [])


@pytest.mark.parametrize("others", ["<@&99>", "@here", "@everyone", f"<@{STAFF_TOO.id}>", f"<@!{BEN.id}>"])
@pytest.mark.parametrize("is_reply", [True, False])
def test_what_mentions_others_is_not_certainly_for_the_user(others: str, *, is_reply: bool) -> None:
    world = World()
    lamp = world.writes(ANN, LAMP)
    world.is_captured(world.writes(STAFF, f"{YES} {others}", to=lamp if is_reply else None))
    assert (len(world.pairs), world.quoted) == (1, [])


@pytest.mark.parametrize(
    ("by", "is_reply", "is_quoted"), [(STAFF, True, True), (STAFF, False, False), (STAFF_TOO, False, True)]
)
def test_what_follows_the_question_of_a_colleague_may_answer_that(
    by: Author, *, is_reply: bool, is_quoted: bool
) -> None:
    world = World()
    lamp = world.writes(ANN, LAMP)
    world.is_captured(world.writes(STAFF_TOO, "What is with this one?"))
    world.is_captured(world.writes(by, YES, to=lamp if is_reply else None))
    assert any(YES in answer for _, answer in world.quoted) == is_quoted


@pytest.mark.parametrize(
    ("name", "owner", "is_quoted"),
    [(SCAM, ANN, False), (SCAM, BOT, True), ("Backup lamp overnight", ANN, True), ("lamp, and the scam", ANN, False)],
)
def test_the_name_of_a_thread_may_be_what_the_team_answers(name: str, owner: Author, is_quoted: bool) -> None:
    world = World(replace(THREAD, name=name, owner_id=owner.id))
    world.history.add_place(world.where)
    lamp = world.writes(ANN, LAMP)
    world.is_captured(world.writes(STAFF, YES, to=lamp))
    assert [question for question, _ in world.quoted] == [LAMP] * is_quoted


@pytest.mark.parametrize(
    ("renamed_after", "to", "asked"),
    [
        (None, "", [f"{SCAM} {LAMP}"]),
        (1, "The lamp", [f"The lamp – {LAMP}"]),
        (900, "The lamp", []),
        (1100, "The lamp", []),
    ],
)
def test_the_title_of_a_forum_post_is_part_of_its_question_as_it_was_when_the_team_answered(
    renamed_after: float | None, to: str, asked: list[str]
) -> None:
    world = World(replace(POST, id=snowflake(60), name=SCAM))
    world.history.add_place(world.where)
    lamp = world.writes(ANN, LAMP)
    assert lamp.id == world.where.id
    if renamed_after is not None:
        at = START + 60 + renamed_after
        world.history.observe(PlaceSeen(at, replace(world.where, name=to)))
    world.is_captured(world.writes(STAFF, YES, wait=1000, to=lamp))
    assert [" ".join(question.split()) for question, _ in world.quoted] == asked


def test_a_quick_answer_to_the_only_question_is_quoted() -> None:
    """Who pastes an answer has not written it."""
    world = World()
    lamp = world.writes(ANN, LAMP)
    world.is_captured(world.writes(STAFF, WIPE * 9, wait=12, to=lamp))
    assert [question for question, _ in world.quoted] == [LAMP]


def test_a_message_of_a_bridge_may_be_what_the_team_answers() -> None:
    world = World()
    world.writes(ANN, LAMP)
    world.writes(Author(77, "cara (Matrix)", is_bot=True), SCAM)
    world.is_captured(world.writes(STAFF, WIPE))
    assert world.quoted == []


@pytest.mark.parametrize("way", ["withheld", "deleted"])
def test_the_message_that_a_thread_was_opened_on_may_be_what_the_team_answers(way: str) -> None:
    world = World()
    first = world.writes(ANN, SCAM if way == "deleted" else f"{SCAM} !nobot")
    world.where = replace(THREAD, id=first.id)
    world.history.add_place(world.where)
    if way == "deleted":
        world.removes(first)
    world.writes(BEN, LAMP, wait=900)
    world.is_captured(world.writes(STAFF, WIPE))
    assert world.quoted == []


def test_a_question_that_does_not_fit_above_the_answer_is_not_quoted() -> None:
    world = World()
    long = f"{SCAM} {'That is what somebody wrote to me, and I will not do it. ' * 6}{LAMP}"
    world.is_captured(world.writes(STAFF, YES, to=world.writes(ANN, long)))
    [section] = read_topic(topic_block(world.pairs[-1]).text).sections
    assert (section.text, section.quotable) == (YES, False)


# Whatever is done in between


@dataclass(frozen=True)
class Step:
    """What somebody does; `which`: the message, counted from the newest."""

    kind: str
    who: int = 0
    which: int = 0
    wait: float = 60
    asks: bool = True


waits = st.sampled_from([1.0, 5.0, 15.0, 60.0, 400.0, 700.0])
steps = st.builds(
    Step,
    st.sampled_from(
        ["asks"] * 5
        + ["answers", "replies", "mentions", "replies"] * 2
        + ["deletes", "edits", "edits unheard", "opts out", "starts again", "is captured"]
    ),
    st.integers(0, 2),
    st.integers(0, 5),
    waits,
    st.booleans(),
)


class Answer(NamedTuple):
    """A message of the team: when it was written, the user whom it names, and what it replies to."""

    second: float
    names: int | None
    replies_to: int | None


def play(world: World, moves: Sequence[Step]) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    for move in moves:
        of_users = [each for each in world.sent if each.author in USERS and each.id not in world.gone]
        chosen = of_users[-1 - move.which % len(of_users)] if of_users else None
        if move.kind == "asks":
            text = "How do I repair the wallet TOKEN of mine?" if move.asks else "the part TOKEN of it is broken here"
            world.writes(USERS[move.who], text, move.wait, chosen if move.which == 0 else None)
        elif move.kind in {"answers", "replies", "mentions"} and chosen is not None:
            opening = f"<@{chosen.author.id}> " if move.kind == "mentions" else ""
            to = chosen if move.kind == "replies" else None
            answer = world.writes(STAFF, f"{opening}Use the blue tool TOKEN and restart it.", move.wait, to)
            names = None if move.kind == "answers" else chosen.author.id
            answers[tokens(answer.text)[0]] = Answer(world.second, names, None if to is None else to.id)
            world.is_captured(answer)
        elif move.kind == "deletes" and chosen is not None:
            world.removes(chosen)
        elif move.kind.startswith("edits") and chosen is not None:
            world.changes(chosen, "Shall I trust TOKEN with the wallet?", wait=move.wait, is_heard=move.kind == "edits")
        elif move.kind == "opts out":
            world.opted_out.add(USERS[move.who].id)
        elif move.kind == "starts again":
            world.starts_again()
        elif move.kind == "is captured" and world.sent and world.sent[-1].author == STAFF:
            world.is_captured(world.sent[-1])
    return answers


@pytest.mark.parametrize("place", [CHANNEL, THREAD])
@settings(max_examples=60, deadline=None)
@given(moves=st.lists(steps, max_size=14))
def test_an_answer_is_quoted_below_words_of_its_asker_that_could_be_read_or_not_at_all(
    place: Place, moves: list[Step]
) -> None:
    world = World(place)
    answers = play(world, moves)
    for question, text in world.quoted:
        asked = [world.written_at[each] for each in tokens(question)]
        given = [answers[each] for each in tokens(text)]
        [author_id] = {who for who, _ in asked}
        assert {each.names for each in given} <= {author_id, None}
        assert all(second <= given[0].second - READING_SECONDS for _, second in asked)
        first = min(second for _, second in asked)
        for each in given:
            if each.names is None:
                assert {who for second, who in world.writers.values() if first - 600 <= second < each.second} <= {
                    author_id
                }
        if given[0].replies_to is not None:
            read_until = given[0].second - READING_SECONDS
            read = [token for at, token in world.versions[given[0].replies_to] if at < read_until]
            assert read[-1] in tokens(question)
