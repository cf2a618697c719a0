from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

import pytest
from reactivex import operators as ops
from reactivex.subject import Subject

from model.messages import Author, Message, Part, Place, PlaceKind, Reference
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason
from model.servers import Servers
from operators.route import RoutedItem, item_of, route
from services.assistant.inquiry import CaptureJob, Inquiry
from services.conversations.drafts import Drafts
from services.conversations.posts import Outbox, Post, Posts
from services.conversations.routing import Router, RouteRules
from services.discord.protocols import LookupFailed
from services.llm import Usage
from tests.services.conversations.made_drafts import made_draft
from tests.talk import (
    ANN,
    BEN,
    BOT,
    CHANNEL,
    GUILD,
    OTHER_BOT,
    POST,
    PRIVATE,
    PRIVATE_THREAD,
    STAFF,
    STAFF_TOO,
    START,
    THREAD,
    SmallFetcher,
    Talk,
    snowflake,
)

WEBHOOK = Author(97, "hook", is_bot=True)


UNCOUNTED = Servers({None: Usage()})


def router_of(talk: Talk, rules: RouteRules | None = None, posts: Posts | None = None) -> Router:
    servers = Servers({None: rules or RouteRules()})
    return Router(talk.people, talk.history, talk.team, posts or Posts(), talk.tracker, servers)


async def where(talk: Talk, *messages: Message, rules: RouteRules | None = None, posts: Posts | None = None) -> str:
    """Where a part of these messages goes."""
    return told(await result_of(router_of(talk, rules, posts), talk.part(*messages)))


async def result_of(router: Router, part: Part) -> Inquiry | CaptureJob | Ignored | Outcome:
    result = item_of(part, await router.route(part), None)
    if isinstance(result, Ignored):
        named = result.channel_id, result.message_ids, result.part_number
        assert named == (part.place.id, part.message_ids, part.number)
    else:
        assert result.part == part
    if isinstance(result, Inquiry):
        assert result.decisions == {}
    return result


def told(result: Inquiry | CaptureJob | Ignored | Outcome) -> str:
    match result:
        case Inquiry():
            return "answer"
        case CaptureJob():
            return "capture"
        case Ignored():
            assert result.reason is Reason.NOT_ADDRESSED
            return "nothing"
        case Outcome():
            return f"{result.result}: {result.reason}"


# Community users in channels


async def test_a_question_without_a_reply_is_answered() -> None:
    talk = Talk()
    assert await where(talk, talk.says(ANN)) == "answer"


async def test_a_reply_to_oneself_is_answered() -> None:
    talk = Talk()
    assert await where(talk, talk.says(ANN, to=talk.says(ANN))) == "answer"


@pytest.mark.parametrize("other", [BEN, STAFF, OTHER_BOT, WEBHOOK])
async def test_a_reply_to_somebody_else_is_left_alone(other: Author) -> None:
    talk = Talk()
    assert await where(talk, talk.says(ANN, to=talk.says(other))) == "nothing"


async def test_a_reply_to_the_bot_is_answered_and_counts_as_a_mention() -> None:
    talk = Talk()
    result = await result_of(router_of(talk), talk.part(talk.says(ANN, to=talk.says(BOT))))
    assert isinstance(result, Inquiry)
    assert result.addressed


async def test_a_mention_of_the_bot_is_answered_even_in_a_reply_to_somebody_else() -> None:
    talk = Talk()
    assert await where(talk, talk.says(ANN, to=talk.says(BEN), mentions=[BOT])) == "answer"


async def test_a_mention_in_any_message_of_the_part_counts() -> None:
    talk = Talk()
    first = talk.says(ANN, to=talk.says(BEN))
    assert await where(talk, first, talk.says(ANN, mentions=[BEN, BOT])) == "answer"


async def test_role_and_everyone_mentions_are_no_mentions_of_the_bot() -> None:
    talk = Talk()
    message = talk.says(ANN, f"@everyone <@&{BOT.id}>", to=talk.says(BEN))
    assert await where(talk, message) == "nothing"


async def test_a_reply_to_oneself_that_was_deleted_is_no_reply() -> None:
    talk = Talk()
    own = talk.says(ANN)
    message = talk.says(ANN, to=own)
    talk.deletes(own)
    assert await where(talk, message) == "answer"


async def test_what_was_said_to_somebody_stays_with_them_when_their_message_is_deleted() -> None:
    talk = Talk()
    theirs = talk.says(BEN)
    message = talk.says(ANN, to=theirs)
    talk.deletes(theirs)
    assert await where(talk, message) == "nothing"


async def test_a_reply_to_what_discord_says_is_gone_is_no_reply() -> None:
    talk = Talk()
    message = replace(talk.says(ANN), reply_to=Reference(5, CHANNEL.id, gone=True))
    assert await where(talk, message) == "answer"


# Community users in threads


async def test_the_talk_of_others_in_a_thread_is_left_alone() -> None:
    talk = Talk()
    talk.says(BEN, place=THREAD)
    assert await where(talk, talk.says(ANN, place=THREAD)) == "nothing"


async def test_a_mention_in_a_thread_is_answered() -> None:
    talk = Talk()
    assert await where(talk, talk.says(ANN, place=THREAD, mentions=[BOT])) == "answer"


async def test_a_thread_that_the_bot_owns_is_its_affair() -> None:
    talk = Talk()
    talk.history.add_place(replace(THREAD, owner_id=BOT.id))
    assert await where(talk, talk.says(BEN, place=THREAD)) == "answer"


async def test_so_is_one_in_which_it_has_posted() -> None:
    talk = Talk()
    talk.says(BOT, place=THREAD)
    assert await where(talk, talk.says(BEN, place=THREAD)) == "answer"


async def test_so_is_one_in_which_it_posted_before_it_was_started_again() -> None:
    talk = Talk()
    post = Post(0.0, 5, THREAD.id, CHANNEL.id, ANN.id, 4, opened_thread=False, question="?", sources=())
    assert await where(talk, talk.says(BEN, place=THREAD), posts=Posts([post])) == "answer"


async def test_another_bot_makes_a_thread_nobodys_affair() -> None:
    """Pitfall 23."""
    talk = Talk()
    talk.says(OTHER_BOT, place=THREAD)
    assert await where(talk, talk.says(BEN, place=THREAD)) == "nothing"


async def test_the_author_of_a_forum_post_is_answered() -> None:
    talk = Talk()
    assert await where(talk, talk.says(ANN, place=POST)) == "answer"


async def test_what_opens_a_forum_post_addresses_the_bot_and_what_follows_does_not() -> None:
    talk = Talk()
    opening = replace(talk.says(ANN, place=POST), id=POST.id)
    router = router_of(talk)
    first = await result_of(router, talk.part(opening))
    later = await result_of(router, talk.part(talk.says(ANN, place=POST)))
    assert isinstance(first, Inquiry)
    assert isinstance(later, Inquiry)
    assert (first.addressed, later.addressed) == (True, False)


async def test_others_in_a_forum_post_are_not() -> None:
    talk = Talk()
    talk.says(ANN, place=POST)
    assert await where(talk, talk.says(BEN, place=POST)) == "nothing"


async def test_nor_is_its_author_once_a_team_member_has_posted() -> None:
    """Pitfall 34."""
    talk = Talk()
    talk.says(ANN, place=POST)
    talk.says(STAFF, place=POST)
    talk.says(ANN, place=POST)
    assert await where(talk, talk.says(ANN, place=POST)) == "nothing"


async def test_the_author_of_an_ordinary_thread_has_no_such_privilege() -> None:
    talk = Talk()
    assert THREAD.owner_id == ANN.id
    assert await where(talk, talk.says(ANN, place=THREAD)) == "nothing"


# Where the team is answering


def bot_thread() -> Talk:
    talk = Talk()
    talk.history.add_place(replace(THREAD, owner_id=BOT.id))
    return talk


async def test_the_bot_keeps_out_of_a_thread_where_the_team_posted_after_the_asker() -> None:
    """Pitfall 34."""
    talk = bot_thread()
    talk.says(ANN, place=THREAD)
    talk.says(STAFF, place=THREAD)
    assert await where(talk, talk.says(ANN, place=THREAD)) == "skipped: team is answering"


async def test_unless_it_is_mentioned() -> None:
    talk = bot_thread()
    talk.says(ANN, place=THREAD)
    talk.says(STAFF, place=THREAD)
    assert await where(talk, talk.says(ANN, place=THREAD, mentions=[BOT])) == "answer"


async def test_it_comes_back_when_the_asker_has_written_after_the_team() -> None:
    talk = bot_thread()
    talk.says(STAFF, place=THREAD)
    talk.says(ANN, place=THREAD)
    assert await where(talk, talk.says(ANN, place=THREAD)) == "answer"


async def test_a_team_member_known_from_history_only_counts_in_a_thread_as_well() -> None:
    talk = Talk()
    theirs = talk.says(BEN, place=THREAD, unheard=True)
    fetcher = SmallFetcher(theirs, roles={BEN.id: (5,)})
    live = Talk(fetcher=fetcher, team=frozenset(), team_roles=frozenset({5}))
    live.history.add_place(replace(THREAD, owner_id=BOT.id))
    asked = live.says(replace(ANN, role_ids=()), place=THREAD, second=90)
    assert await where(live, asked) == "skipped: team is answering"
    assert fetcher.calls.count(f"roles of {BEN.id}") == 1


@pytest.mark.parametrize("other", [BEN, STAFF])
async def test_in_a_channel_it_keeps_out_of_what_follows_a_conversation_between_people(other: Author) -> None:
    """Pitfall 63."""
    talk = Talk()
    talk.says(other, to=talk.says(ANN, second=0), second=1)
    assert await where(talk, talk.says(ANN, "It says E7.", second=600)) == "nothing"


async def test_it_comes_back_for_what_does_not_follow() -> None:
    talk = Talk()
    talk.says(STAFF, to=talk.says(ANN, second=0), second=1)
    assert await where(talk, talk.says(ANN, second=601)) == "answer"


async def test_it_keeps_out_of_a_conversation_that_people_name_each_other_in() -> None:
    """Pitfall 63."""
    talk = Talk()
    talk.says(ANN)
    assert await where(talk, talk.says(BEN, "ann: which version?")) == "nothing"


async def test_what_follows_its_own_answer_is_a_question_to_it() -> None:
    talk = Talk()
    talk.says(BOT, to=talk.says(ANN))
    assert await where(talk, talk.says(ANN, "And on Windows?")) == "answer"


async def test_what_follows_the_words_of_another_bot_is_a_question_to_it_as_well() -> None:
    """Pitfall 23."""
    talk = Talk()
    talk.says(OTHER_BOT, to=talk.says(ANN))
    assert await where(talk, talk.says(ANN, "And on Windows?")) == "answer"


async def test_somebody_else_who_begins_something_is_answered_while_people_talk() -> None:
    talk = Talk()
    talk.says(STAFF, to=talk.says(ANN))
    assert await where(talk, talk.says(BEN, "How do I install it?")) == "answer"


@pytest.mark.parametrize(("second", "expected"), [(1201, "skipped: team is answering"), (1202, "answer")])
async def test_in_a_channel_it_keeps_out_for_a_while_after_the_team_replied_to_the_asker(
    second: float, expected: str
) -> None:
    talk = Talk()
    talk.says(STAFF, to=talk.says(ANN, second=0), second=1)
    assert await where(talk, talk.says(ANN, second=second), rules=RouteRules(team_active_seconds=1200)) == expected


async def test_it_keeps_out_even_when_the_team_replies_once_more_while_the_asker_goes_on() -> None:
    talk = Talk()
    asked = talk.says(ANN, second=0)
    talk.says(STAFF, to=asked, second=1)
    more = talk.says(ANN, second=700)
    talk.says(STAFF, to=asked, second=710)
    assert await where(talk, more, rules=RouteRules(team_active_seconds=1200)) == "skipped: team is answering"


async def test_a_reply_of_the_team_to_somebody_else_or_elsewhere_does_not_keep_it_out() -> None:
    talk = Talk()
    talk.says(STAFF, to=talk.says(BEN))
    talk.says(STAFF, to=talk.says(ANN, place=PRIVATE), place=PRIVATE)
    assert await where(talk, talk.says(ANN)) == "answer"


async def test_a_mention_brings_it_into_a_channel_where_the_team_is_answering() -> None:
    talk = Talk()
    talk.says(STAFF, to=talk.says(ANN))
    assert await where(talk, talk.says(ANN, mentions=[BOT])) == "answer"


# Reply modes


@pytest.mark.parametrize(
    ("mode", "plain", "mention"),
    [
        ("all", "answer", "answer"),
        ("mention", "skipped: reply mode", "answer"),
        ("off", "skipped: reply mode", "skipped: reply mode"),
    ],
)
async def test_the_reply_mode_narrows_when_it_answers(mode: str, plain: str, mention: str) -> None:
    talk = Talk()
    for rules in (RouteRules(reply_mode=mode), RouteRules(reply_mode_by_channel={CHANNEL.id: mode})):
        assert await where(talk, talk.says(ANN), rules=rules) == plain
        assert await where(talk, talk.says(ANN, mentions=[BOT]), rules=rules) == mention
        assert await where(talk, talk.says(ANN, to=talk.says(BOT)), rules=rules) == mention


async def test_a_channels_mode_wins_and_holds_in_its_threads() -> None:
    rules = RouteRules(reply_mode="off", reply_mode_by_channel={CHANNEL.id: "all"})
    talk = bot_thread()
    assert await where(talk, talk.says(ANN, place=THREAD), rules=rules) == "answer"
    assert await where(talk, talk.says(ANN, place=PRIVATE), rules=rules) == "skipped: reply mode"


async def test_the_reply_mode_does_not_concern_captures() -> None:
    talk = Talk()
    assert await where(talk, talk.says(STAFF, to=talk.says(ANN)), rules=RouteRules(reply_mode="off")) == "capture"


# Team members


async def test_a_reply_of_the_team_to_a_user_is_captured_anywhere() -> None:
    for place in (CHANNEL, THREAD, POST):
        talk = Talk()
        assert await where(talk, talk.says(STAFF, place=place, to=talk.says(ANN, place=place))) == "capture"


async def test_all_messages_of_a_part_are_looked_at_for_the_reply() -> None:
    """Pitfall 1."""
    talk = Talk()
    asked = talk.says(ANN)
    first, second = talk.says(STAFF, "It is there,", to=asked), talk.says(STAFF, "in the corner.")
    assert await where(talk, first, second) == "capture"
    talk = Talk()
    asked = talk.says(ANN)
    first, second = talk.says(STAFF, "Hm."), talk.says(STAFF, "It is there.", to=asked)
    assert await where(talk, first, second) == "capture"


async def test_of_several_messages_replied_to_one_that_was_deleted_does_not_decide() -> None:
    theirs = old(ANN)
    talk, _ = live(theirs)
    gone = talk.says(STAFF)
    answers = talk.says(STAFF, to=gone), talk.says(STAFF, to=theirs)
    talk.deletes(gone)
    assert await where(talk, *answers) == "capture"
    assert await where(talk, answers[0]) == "nothing"


@pytest.mark.parametrize("other", [STAFF, STAFF_TOO, BOT, OTHER_BOT, WEBHOOK])
async def test_a_reply_of_the_team_to_the_team_or_a_bot_teaches_nothing_in_a_channel(other: Author) -> None:
    """Pitfall 23."""
    talk = Talk()
    assert await where(talk, talk.says(STAFF, to=talk.says(other))) == "nothing"


async def test_what_the_team_says_to_nobody_in_a_channel_teaches_nothing() -> None:
    talk = Talk()
    talk.says(ANN, second=0)
    assert await where(talk, talk.says(STAFF, second=600)) == "nothing", "no question waits that long"
    assert await where(talk, talk.says(STAFF, second=900)) == "nothing"


async def test_an_answer_without_a_reply_to_a_question_that_waits_is_captured() -> None:
    """Pitfall 63."""
    talk = Talk()
    asked = talk.says(ANN, second=0)
    answer = talk.says(STAFF, second=599)
    assert await where(talk, answer) == "capture"
    assert talk.tracker.conversation_of(answer.id) == asked.id


@pytest.mark.parametrize("place", [THREAD, POST])
async def test_in_a_thread_where_a_user_has_posted_the_team_need_not_reply(place: Place) -> None:
    talk = Talk()
    talk.says(ANN, place=place)
    assert await where(talk, talk.says(STAFF, place=place)) == "capture"
    assert await where(talk, talk.says(STAFF, place=place, to=talk.says(BOT, place=place))) == "capture"


async def test_a_reply_to_the_team_in_a_thread_teaches_nothing() -> None:
    talk = Talk()
    talk.says(ANN, place=THREAD)
    assert await where(talk, talk.says(STAFF, place=THREAD, to=talk.says(STAFF_TOO, place=THREAD))) == "nothing"


async def test_a_reply_in_a_thread_to_what_was_deleted_is_captured() -> None:
    talk = Talk()
    talk.says(ANN, place=THREAD)
    theirs = talk.says(STAFF_TOO, place=THREAD)
    message = talk.says(STAFF, place=THREAD, to=theirs)
    talk.deletes(theirs)
    assert await where(talk, message) == "capture"


async def test_a_thread_of_the_team_and_bots_alone_teaches_nothing() -> None:
    talk = Talk()
    talk.says(STAFF_TOO, place=THREAD)
    talk.says(BOT, place=THREAD)
    assert await where(talk, talk.says(STAFF, place=THREAD)) == "nothing"


async def test_the_question_that_a_thread_was_opened_on_counts_as_posted_in_it() -> None:
    talk = Talk()
    starter = talk.says(ANN)
    thread = replace(THREAD, id=starter.id)
    talk.history.add_place(thread)
    assert await where(talk, talk.says(STAFF, place=thread)) == "capture"


# Private channels


@pytest.mark.parametrize("place", [PRIVATE, PRIVATE_THREAD])
async def test_private_talk_is_never_captured(place: Place) -> None:
    """Pitfall 47."""
    talk = Talk()
    assert await where(talk, talk.says(STAFF, place=place, to=talk.says(ANN, place=place))) == "nothing"


async def test_unless_the_channel_is_named_for_it() -> None:
    """Pitfall 47."""
    rules = RouteRules(capture_channels=frozenset({PRIVATE.id}))
    for place in (PRIVATE, PRIVATE_THREAD):
        talk = Talk()
        asked = talk.says(ANN, place=place)
        assert await where(talk, talk.says(STAFF, place=place, to=asked), rules=rules) == "capture"


async def test_an_invite_only_thread_has_to_be_named_itself() -> None:
    place = replace(PRIVATE_THREAD, invited_only=True)
    for named, expected in ((PRIVATE.id, "nothing"), (place.id, "capture")):
        talk = Talk()
        talk.history.add_place(place)
        asked = talk.says(ANN, place=place)
        rules = RouteRules(capture_channels=frozenset({named}))
        assert await where(talk, talk.says(STAFF, place=place, to=asked), rules=rules) == expected


async def test_a_public_answer_to_a_private_question_does_not_make_it_public() -> None:
    """Pitfall 47."""
    talk = Talk()
    asked = talk.says(ANN, place=PRIVATE)
    assert await where(talk, talk.says(STAFF, to=asked)) == "nothing"


# What follows a conversation with a community user


async def after_a_capture(talk: Talk, *, second: float = 10) -> Message:
    captured = talk.says(STAFF, to=talk.says(ANN, second=0), second=second)
    assert await where(talk, captured) == "capture"
    return captured


@pytest.mark.parametrize(("second", "expected"), [(99, "capture"), (100, "nothing")])
async def test_a_team_member_who_goes_on_is_captured(second: float, expected: str) -> None:
    """Pitfall 63."""
    talk = Talk()
    captured = await after_a_capture(talk)
    more = talk.says(STAFF, second=second)
    assert await where(talk, more) == expected
    together = talk.tracker.conversation_of(more.id) == talk.tracker.conversation_of(captured.id)
    assert together is (expected == "capture")


async def test_the_answer_to_what_an_asker_went_on_with_is_captured() -> None:
    """Pitfall 63."""
    talk = Talk()
    await after_a_capture(talk)
    talk.says(ANN, "It says E7.", second=200)
    assert await where(talk, talk.says(STAFF, second=400)) == "capture"


async def test_not_for_another_team_member_or_elsewhere() -> None:
    talk = Talk()
    await after_a_capture(talk)
    assert await where(talk, talk.says(STAFF_TOO, second=20)) == "nothing"
    elsewhere = replace(CHANNEL, id=1009)
    assert await where(talk, talk.says(STAFF, place=elsewhere, second=21)) == "nothing"


async def test_a_reply_to_the_team_in_a_channel_is_no_capture_although_a_user_is_helped_there() -> None:
    talk = Talk()
    captured = await after_a_capture(talk)
    assert await where(talk, talk.says(STAFF_TOO, to=captured, second=20)) == "nothing"


@pytest.mark.parametrize("named", [False, True])
async def test_who_is_answered_next_is_who_has_spoken_to_them_since(named: bool) -> None:
    """Pitfall 63."""
    talk = Talk()
    captured = await after_a_capture(talk)
    theirs = talk.says(BEN, to=None if named else captured, mentions=[STAFF] if named else [], second=15)
    answer = talk.says(STAFF, second=120)
    assert await where(talk, answer) == "capture"
    assert talk.tracker.conversation_of(answer.id) == talk.tracker.conversation_of(theirs.id)


async def test_thanks_that_come_after_it_do_not_undo_a_continuation() -> None:
    talk = Talk()
    captured = await after_a_capture(talk)
    more = talk.says(STAFF, second=20)
    talk.says(ANN, "thanks!", to=captured, second=30)
    assert await where(talk, more) == "capture"


async def test_a_continuation_of_private_talk_is_private_as_well() -> None:
    """Pitfall 47."""
    talk = Talk()
    await after_a_capture(talk)
    talk.history.add_place(replace(CHANNEL, public=False))
    assert await where(talk, talk.says(STAFF, second=20)) == "nothing"


# What has to be asked of Discord


def live(*there: Message, roles: dict[int, tuple[int, ...]] | None = None) -> tuple[Talk, SmallFetcher]:
    fetcher = SmallFetcher(*there, roles=roles)
    return Talk(fetcher=fetcher, team=frozenset({STAFF.id}), team_roles=frozenset({5})), fetcher


def old(author: Author, place_id: int = CHANNEL.id) -> Message:
    """A message from before the session began."""
    return Message(snowflake(-500), place_id, author, "…", 0.0, guild_id=GUILD)


async def test_a_target_from_before_is_asked_for() -> None:
    theirs = old(BEN)
    talk, fetcher = live(theirs)
    assert await where(talk, talk.says(replace(ANN, role_ids=()), to=theirs)) == "nothing"
    assert fetcher.calls == [f"messages of {CHANNEL.id}"]


async def test_a_target_that_discord_does_not_have_is_no_reply() -> None:
    talk, _ = live()
    assert await where(talk, talk.says(replace(ANN, role_ids=()), to=old(BEN))) == "answer"


async def test_one_look_up_decides_about_somebody_known_from_history_only() -> None:
    theirs = old(BEN)
    talk, fetcher = live(theirs, roles={BEN.id: (5,)})
    for _ in range(2):
        assert await where(talk, talk.says(STAFF, to=theirs)) == "nothing"
    assert fetcher.calls.count(f"roles of {BEN.id}") == 1
    talk, _ = live(theirs, roles={BEN.id: (6,)})
    assert await where(talk, talk.says(STAFF, to=theirs)) == "capture"


async def test_without_team_roles_nobody_is_looked_up() -> None:
    theirs = old(BEN)
    fetcher = SmallFetcher(theirs, roles={BEN.id: (5,)})
    talk = Talk(fetcher=fetcher)
    assert await where(talk, talk.says(STAFF, to=theirs)) == "capture"
    assert not any(call.startswith("roles") for call in fetcher.calls)


@pytest.mark.parametrize("author", [replace(ANN, role_ids=()), STAFF])
async def test_a_look_up_that_fails_is_never_taken_for_no_reply(author: Author) -> None:
    """Pitfall 28."""
    talk, fetcher = live(old(BEN))
    fetcher.broken = LookupFailed("500")
    message = talk.says(author, to=old(BEN))
    with pytest.raises(LookupFailed):
        await where(talk, message)


async def test_a_part_whose_look_up_fails_ends_as_failed_and_disturbs_no_other() -> None:
    """Pitfall 28."""
    talk, fetcher = live(old(BEN))
    fetcher.broken = LookupFailed("500")
    parts: Subject[Part] = Subject()
    results: asyncio.Future[list[Inquiry | CaptureJob | Ignored | Outcome]] = asyncio.get_running_loop().create_future()
    parts.pipe(route(router_of(talk), UNCOUNTED), ops.to_list()).subscribe(results.set_result, results.set_exception)
    parts.on_next(talk.part(talk.says(replace(ANN, role_ids=()), to=old(BEN))))
    parts.on_next(talk.part(talk.says(replace(BEN, role_ids=()))))
    parts.on_completed()
    ends = {type(end): end for end in await results}
    failed = ends[Outcome]
    assert isinstance(failed, Outcome)
    assert (failed.result, failed.reason) == (OutcomeKind.FAILED, "LookupFailed at route")
    assert Inquiry in ends


async def test_a_reply_whose_target_must_be_fetched_is_not_overtaken_by_the_next_part(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Pitfall 26."""
    caplog.set_level(logging.INFO, "operators.route")
    theirs = old(BEN)
    talk, fetcher = live(theirs)
    asked = replace(ANN, role_ids=())
    slow = fetcher.messages

    async def slowly(channel_id: int, **limits: int | None) -> list[Message]:
        await asyncio.sleep(5)
        return list(await slow(channel_id, around=limits["around"]))

    fetcher.messages = slowly  # the same answers, later
    parts: Subject[Part] = Subject()
    results: asyncio.Future[list[Inquiry | CaptureJob | Ignored | Outcome]] = asyncio.get_running_loop().create_future()
    parts.pipe(route(router_of(talk), UNCOUNTED), ops.to_list()).subscribe(results.set_result, results.set_exception)
    parts.on_next(talk.part(talk.says(asked, to=theirs)))
    parts.on_next(talk.part(talk.says(asked)))
    parts.on_completed()
    assert [told(end) for end in await results] == ["nothing", "answer"]
    assert caplog.messages == ["discord.user_batch_process_start: 1 message"] * 2


async def test_what_was_answered_before_the_note_was_lost_is_not_answered_again() -> None:
    """Pitfall 25: catch-up brings a question whose reply is on record."""
    talk = Talk()
    asked = talk.says(ANN)
    post = Post(0.0, 5, asked.id, CHANNEL.id, ANN.id, asked.id, opened_thread=True, question="?", sources=())
    result = await result_of(router_of(talk, posts=Posts([post])), talk.part(asked))
    assert isinstance(result, Ignored)
    assert result.reason is Reason.DUPLICATE


def in_thread(thread_id: int, author: Author, second: float, *, to: Message | None = None) -> Message:
    """A message that only Discord knows of."""
    reference = None if to is None else Reference(to.id, to.channel_id)
    return Message(snowflake(second), thread_id, author, "…", START + second, GUILD, reply_to=reference)


async def test_an_answer_that_was_never_noted_down_is_recognised_in_a_thread_that_is_used_again() -> None:
    """Pitfall 25: a crash between posting and noting it down; the asker's next question is not taken for answered."""
    noted = snowflake(-50)
    opened = Post(0.0, noted, THREAD.id, CHANNEL.id, ANN.id, 4, opened_thread=True, question="?", sources=())
    answer = [in_thread(THREAD.id, BOT, -20), in_thread(THREAD.id, BOT, -19)]
    fetcher = SmallFetcher(
        in_thread(THREAD.id, BOT, -50),
        *answer,
        in_thread(THREAD.id, BOT, -10, to=in_thread(THREAD.id, BEN, -11)),
        in_thread(THREAD.id, BEN, -9),
    )
    talk, posts = Talk(fetcher=fetcher), Posts([opened])
    router = router_of(talk, posts=posts)
    asked = talk.part(talk.says(ANN, second=-30))
    result = await result_of(router, asked)
    assert isinstance(result, Ignored)
    assert result.reason is Reason.DUPLICATE
    assert posts.newest_in(THREAD.id) == answer[-1].id
    assert posts.has_answered(asked.last.id)
    assert told(await result_of(router, talk.part(talk.says(ANN, second=-25)))) == "answer"


async def test_a_post_in_the_thread_on_a_question_answers_it_whatever_else_was_noted_there() -> None:
    """Pitfall 25: the note of the answer could not be written, that of the one to a follow-up could."""
    talk = Talk(fetcher=SmallFetcher())
    asked = talk.says(ANN, second=-30)
    follow_up = in_thread(asked.id, ANN, -20)
    later = in_thread(asked.id, BOT, -10, to=follow_up)
    noted = Post(0.0, later.id, asked.id, asked.id, ANN.id, follow_up.id, opened_thread=False, question="?", sources=())
    talk = Talk(fetcher=SmallFetcher(in_thread(asked.id, BOT, -25), follow_up, later))
    result = await result_of(router_of(talk, posts=Posts([noted])), talk.part(asked))
    assert isinstance(result, Ignored)
    assert result.reason is Reason.DUPLICATE


async def test_a_thread_that_was_opened_and_nothing_said_in_it_is_no_answer() -> None:
    """Pitfalls 24 and 25: killed between the two."""
    asked = Talk().says(ANN, second=-30)
    opened = replace(in_thread(asked.id, BOT, -29), is_system=True)
    assert await where(Talk(fetcher=SmallFetcher(opened)), asked) == "answer"


async def test_what_a_draft_answers_is_not_answered_again() -> None:
    talk, drafts = Talk(), Drafts()
    asked = talk.says(ANN)
    await drafts.put(made_draft(asked.id))
    router = replace(router_of(talk), drafts=drafts)
    answered = await result_of(router, talk.part(asked))
    assert isinstance(answered, Ignored)
    assert answered.reason is Reason.DUPLICATE
    assert told(await result_of(router, talk.part(talk.says(ANN)))) == "answer"


async def test_a_reply_that_is_still_being_posted_after_a_start_answers_its_question() -> None:
    """Pitfall 25."""
    talk = Talk(fetcher=SmallFetcher())
    asked, posts = talk.says(ANN, second=-30), Posts()
    post = Post(0.0, 5, asked.id, CHANNEL.id, ANN.id, asked.id, opened_thread=True, question="?", sources=())

    class Finishing(Outbox):
        async def wait_until_finished(self) -> None:
            await posts.add(post)

    result = await result_of(replace(router_of(talk, posts=posts), outbox=Finishing()), talk.part(asked))
    assert isinstance(result, Ignored)
    assert result.reason is Reason.DUPLICATE


async def test_an_asker_without_a_thread_is_answered_by_catch_up() -> None:
    fetcher = SmallFetcher()
    talk = Talk(fetcher=fetcher)
    asked = talk.says(ANN, second=-30)
    assert await where(talk, asked) == "answer"
    assert set(fetcher.calls) == {f"messages of {asked.id}"}


@pytest.mark.parametrize(
    ("author", "is_reply", "expected"), [(BOT, True, Reason.DUPLICATE), (BOT, False, None), (BEN, True, None)]
)
async def test_in_a_thread_a_reply_of_the_bot_answers_a_question_and_nothing_else(
    author: Author, is_reply: bool, expected: Reason | None
) -> None:
    """Pitfall 25."""
    asked = in_thread(THREAD.id, ANN, -30)
    talk = Talk(fetcher=SmallFetcher(asked, in_thread(THREAD.id, author, -20, to=asked if is_reply else None)))
    talk.history.add_place(replace(THREAD, owner_id=BOT.id))
    result = await result_of(router_of(talk), talk.part(asked))
    assert (result.reason if isinstance(result, Ignored) else None) is expected


async def test_what_is_routed_is_measured_by_the_name_of_the_step() -> None:
    counts: list[tuple[str, int]] = []
    begun: list[str] = []

    class Heard:
        def __call__(self, operator: str, count: int) -> None:
            counts.append((operator, count))

        def on_waiting(self, operator: str, count: int) -> None:
            assert operator == "route"

        def on_begin(self, operator: str) -> Callable[[Exception | None], object]:
            begun.append(operator)
            return lambda failure: failure

    talk = Talk()
    parts: Subject[Part] = Subject()
    found: asyncio.Future[list[RoutedItem]] = asyncio.get_running_loop().create_future()
    parts.pipe(route(router_of(talk), UNCOUNTED, Heard()), ops.to_list()).subscribe(found.set_result)
    parts.on_next(talk.part(talk.says(ANN)))
    parts.on_completed()
    await found
    assert (counts, begun) == ([("route", 1), ("route", 0)], ["route"])


async def test_what_an_inquiry_uses_counts_for_its_server() -> None:
    talk, shared, own = Talk(), Usage(), Usage()
    parts: Subject[Part] = Subject()
    found: asyncio.Future[list[RoutedItem]] = asyncio.get_running_loop().create_future()
    routing = route(router_of(talk), Servers({None: shared, GUILD: own}))
    parts.pipe(routing, ops.to_list()).subscribe(found.set_result, found.set_exception)
    unknown = Place(4000, PlaceKind.CHANNEL)
    parts.on_next(talk.part(talk.says(ANN)))
    somewhere = replace(talk.says(BEN, place=unknown), guild_id=None)
    parts.on_next(replace(talk.part(somewhere), place=unknown))
    parts.on_completed()
    for end in await found:
        assert isinstance(end, Inquiry)
        end.usage.add("gate", prompt_tokens=1 if end.part.guild_id == GUILD else 10, completion_tokens=0)
    assert (own.tokens.total(), shared.tokens.total()) == (1, 10)
