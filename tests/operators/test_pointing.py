"""What becomes of a question without an answer: `Unanswered` through `step`, and `point`."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from clock import DAY
from examples.extending.operator import sign
from model.conversations import Conversation, Role, ShownPair, Turn
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind
from model.outcomes import Outcome, OutcomeKind, Reason
from operators.pointing import PointRules, RecentReplies, add_links, point, remember_replies
from operators.step import StepOperator, in_turn, step
from services.assistant import Addresses, Inquiry, Unanswered, outcome_of
from services.conversations.in_flight import WorkCancelled
from services.llm import Usage
from services.search.retrieval import NOTHING, Level, SearchResult
from tests.marbles import play
from tests.searching import ScriptedSearch, found, passage

HELP, AT = 11, 1_771_200_000.0
BACKUP = passage(
    "kb:guides/backup.md", "To restore one, run `lamp restore`.", "Restore", title="Backups", anchor="restore"
)
FACES = passage("kb:faces.md", "Faces are found at night, and never by day.", title="Faces")
TEAM = passage("team:backups", "Restore it from the newest backup there is.", title="backups")
FITS, MAY_FIT = found(BACKUP, FACES), found(BACKUP, FACES, level=Level.POINT)
PUBLISHED = Addresses({"": "https://docs.example"})


def inquiry(*, addressed: bool = False, draft: str = "", asker: int = 1, channel: int = HELP, **known: Any) -> Inquiry:
    message = Message(10, channel, Author(asker, "ada"), "How do I restore a backup?", AT)
    part = Part(1, (message,), AuthorType.COMMUNITY_USER, Place(channel, PlaceKind.CHANNEL), AT)
    asked = Inquiry(part, addressed, Usage(), {}, query=message.text, draft=draft, first_draft=draft)
    return asked._replace(**known)


def unanswered(reason: Reason = Reason.NO_SOURCES, **known: Any) -> Unanswered:
    return Unanswered(inquiry(**known), reason)


def pointing(
    found: SearchResult = MAY_FIT,
    rules: PointRules | None = None,
    recent_replies: RecentReplies | None = None,
    addresses: Addresses | None = None,
) -> StepOperator:
    search, told, published = ScriptedSearch(found), recent_replies or RecentReplies(), addresses or Addresses()
    return in_turn(
        step("generate", add_links(search, told, published), 4),
        step("point", point(search, told, published, rules or PointRules()), 4, takes=Unanswered),
    )


def shown(item: Any) -> str:
    """`q` a question with an answer, `p` one whose draft only points, `u` unanswered, `o` an end."""
    match item:
        case Inquiry(level=Level.POINT):
            return "p"
        case Inquiry():
            return "q"
        case Unanswered():
            return "u"
        case _:
            return "o"


async def pointed(item: Inquiry | Unanswered, *args: Any, **kwargs: Any) -> Any:
    """What comes out for one item."""
    seen: list[Any] = []

    def keep(each: Any) -> str:
        seen.append(each)
        return shown(each)

    await play("x|", pointing(*args, **kwargs), values={"x": item}, show=keep)
    (result,) = seen
    return result


# `Unanswered` in a step.


async def test_what_is_unanswered_goes_by_the_steps_that_answer() -> None:
    seen: list[Any] = []

    async def answer(item: Inquiry) -> Inquiry:
        seen.append(item)
        return item

    values = {"q": inquiry(), "u": unanswered(), "o": outcome_of(inquiry(), OutcomeKind.SKIPPED)}
    assert await play("q-u-o-|", step("generate", answer, 4), values=values, show=shown) == "q-u-o-|"
    assert [shown(item) for item in seen] == ["q"]


async def test_a_step_may_leave_a_question_unanswered() -> None:
    async def give_up(item: Inquiry) -> Unanswered:
        return Unanswered(item, Reason.NO_SOURCES)

    steps = step("select", give_up, 4), step("generate", give_up, 4)
    assert await play("q--|", *steps, values={"q": inquiry()}, show=shown) == "u--|"


async def test_an_unanswered_question_that_a_step_fails_at_ends_with_its_own_part() -> None:
    async def broken(_: Inquiry | Unanswered) -> Inquiry:
        raise ValueError("a bug")

    ends: list[Any] = []
    failing: StepOperator = step("point", broken, 4, takes=Unanswered)
    asked = unanswered()
    await play("u|", failing, values={"u": asked}, show=lambda item: ends.append(item) or "o")
    assert [(each.part, each.result, each.reason) for each in ends] == [
        (asked.part, OutcomeKind.FAILED, "ValueError at point")
    ]


async def test_what_a_step_failed_at_is_logged_with_what_it_was(caplog: pytest.LogCaptureFixture) -> None:
    """A bug with its traceback; what comes from outside in one line."""
    errors: list[Exception] = [ValueError("a bug"), TimeoutError("too slow")]

    async def broken(_: Inquiry | Unanswered) -> Inquiry:
        raise errors[0]

    failing: StepOperator = step("point", broken, 4, takes=Unanswered)
    for traceback in (True, False):
        await play("u|", failing, values={"u": unanswered()}, show=lambda _: "o")
        (record,) = caplog.records
        assert record.levelname == "WARNING"
        assert record.getMessage() == f"point failed: {type(errors[0]).__name__}: {errors[0]}"
        assert bool(record.exc_info) is traceback
        caplog.clear()
        errors.reverse()


@pytest.mark.parametrize(("query", "looked_for"), [("restore backups", "restore backups"), ("", "And how?")])
async def test_what_is_searched_for_is_the_query_or_else_the_question(query: str, looked_for: str) -> None:
    search = ScriptedSearch(MAY_FIT)
    pointing_once: StepOperator = step(
        "point", point(search, RecentReplies(), Addresses(), PointRules()), 4, takes=Unanswered
    )
    conversation = Conversation((Turn(Role.USER, "And how?", asked_now=True),))
    await play("u|", pointing_once, values={"u": unanswered(query=query, conversation=conversation)}, show=shown)
    assert search.asked == [looked_for]


async def test_an_unanswered_question_that_was_called_off_ends_as_cancelled() -> None:
    asked = unanswered(addressed=True)
    asked.token.cancel(WorkCancelled(Reason.DELETED))
    end = await pointed(asked)
    assert (end.result, end.reason) == (OutcomeKind.CANCELLED, Reason.DELETED)


# `point`.


@pytest.mark.parametrize(
    ("item", "found_now", "rules", "expected"),
    [
        (unanswered(addressed=True), MAY_FIT, PointRules(), "p"),
        (unanswered(addressed=True), NOTHING, PointRules(), "p"),
        (unanswered(), MAY_FIT, PointRules(), "o"),
        (unanswered(), MAY_FIT, PointRules(when_unsure=True), "p"),
        (unanswered(), FITS, PointRules(when_unsure=True), "p"),
        (unanswered(), NOTHING, PointRules(when_unsure=True), "o"),
        (unanswered(), MAY_FIT, PointRules(by_channel={HELP: True}), "p"),
        (unanswered(), MAY_FIT, PointRules(by_channel={12: True}), "o"),
        (unanswered(), MAY_FIT, PointRules(when_unsure=True, by_channel={HELP: False}), "o"),
        (unanswered(addressed=True), MAY_FIT, PointRules(by_channel={HELP: False}), "p"),
        (inquiry(draft="Like this."), FITS, PointRules(), "q"),
    ],
    ids=[
        "addressed",
        "addressed, and nothing found",
        "silent by default",
        "asked to point",
        "a fitting page that gave no answer",
        "nothing to point to",
        "this channel points",
        "another channel points",
        "this channel is silent",
        "a silent channel, but addressed",
        "answered",
    ],
)
async def test_who_is_told_where_to_look(
    item: Inquiry | Unanswered, found_now: SearchResult, rules: PointRules, expected: str
) -> None:
    assert await play("--x-|", pointing(found_now, rules), values={"x": item}, show=shown) == f"--{expected}-|"


async def test_ends_go_by() -> None:
    values = {"o": outcome_of(inquiry(), OutcomeKind.SKIPPED, Reason.BUDGET), "u": unanswered(addressed=True)}
    assert await play("ou-|", pointing(), values=values, show=shown) == "op-|"


@pytest.mark.parametrize("level", [Level.POINT, Level.SILENCE])
async def test_a_pointing_draft_has_no_address_that_a_stranger_wrote(level: Level) -> None:
    """Pitfall 19."""
    asked = "See https://evil.example/a or [here](https://evil.example/b) or discord.gg/evil, how do I restore it?"
    said = "Restore it from https://backups.example/newest, the newest there is."
    taught = passage("team:backups", said, asked, title="backups", anchor="qa_1")
    addresses = Addresses(pair_address=lambda pair: f"https://discord.example/{pair}")
    rules = PointRules(out_of_scope_hint="Ask at https://ours.example.")
    found_now = found(taught, level=level, confidence=0.05)._replace(is_near=level is Level.POINT)
    draft = (await pointed(unanswered(addressed=True), found_now, rules, addresses=addresses)).draft
    assert "evil" not in draft
    assert "See or here or, how do I restore it?" in draft
    assert "https://discord.example/qa_1" in draft
    assert "https://backups.example" not in draft  # no part of an answer of the team
    assert ("https://ours.example" in draft) is (level is Level.SILENCE)


async def test_a_pointing_draft_has_no_address_that_nobody_trusted_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 19: whatever it was made of."""
    made = f"{BACKUP.title}: https://docs.example/guides/backup/ or https://evil.example", [BACKUP]
    monkeypatch.setattr("operators.pointing.pointers", lambda *_: made)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    found_now = found(BACKUP._replace(anchor=""), level=Level.POINT)
    result = await pointed(unanswered(addressed=True), found_now, addresses=PUBLISHED)
    assert result.draft == "Backups: https://docs.example/guides/backup/ or"


async def test_a_pointing_draft_names_the_best_pages_with_a_telling_line_and_the_sections_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "operators.pointing")
    result = await pointed(unanswered(addressed=True), addresses=PUBLISHED)
    assert result.draft.splitlines() == [
        "This may help:",
        "• [*Backups › Restore*](<https://docs.example/guides/backup/#restore>): To restore one, run `lamp restore`.",
        "• [*Faces*](<https://docs.example/faces/>): Faces are found at night, and never by day.",
    ]
    assert result.citations == ("kb:guides/backup.md", "kb:faces.md")
    assert result.decisions["point"] == {"confidence": 0.3, "level": "point"}
    assert caplog.messages == ["point: to 2 pages"]


async def test_at_most_three_pages_are_named_each_once() -> None:
    pages = [passage(f"kb:{n // 2}.md", f"Passage {n} of many about backups.") for n in range(12)]
    result = await pointed(unanswered(addressed=True), found(*pages, level=Level.POINT))
    assert result.citations == ("kb:0.md", "kb:1.md", "kb:2.md")
    assert len(result.draft.splitlines()) == 4


async def test_whoever_addressed_the_bot_hears_that_nothing_was_found_the_nearest_page_and_where_to_ask() -> None:
    far = found(TEAM, BACKUP, level=Level.SILENCE, confidence=0.01)
    rules = PointRules(out_of_scope_hint="Ask in #general.")
    result = await pointed(unanswered(addressed=True), far, rules, addresses=PUBLISHED)
    assert result.draft == (
        "I found nothing about this in the documentation. The nearest page is "
        "[*Backups › Restore*](<https://docs.example/guides/backup/#restore>). Ask in #general."
    )
    assert result.citations == ("kb:guides/backup.md",)


async def test_without_any_page_that_is_all_that_is_said() -> None:
    result = await pointed(unanswered(addressed=True), NOTHING)
    assert (result.draft, result.citations) == ("I found nothing about this in the documentation.", ())


async def test_the_sentence_is_in_the_language_of_the_question_or_the_configured_one() -> None:
    asked = unanswered(addressed=True, query="Wie kann ich eine Sicherung auf einem anderen Rechner wiederherstellen?")
    assert (await pointed(asked)).draft.startswith("Vielleicht hilft dir das weiter:")
    assert (await pointed(asked, rules=PointRules(reply_language="en"))).draft.startswith("This may help:")


@pytest.mark.parametrize(
    ("reason", "found_now", "calls", "expected"),
    [
        (Reason.NO_SOURCES, MAY_FIT, 0, Reason.UNSURE),
        (Reason.NO_SOURCES, NOTHING, 0, Reason.NO_SOURCES),
        (Reason.NOT_ANSWERABLE, NOTHING, 0, Reason.NOT_ANSWERABLE),
        (Reason.NO_ANSWER_IN_SOURCES, MAY_FIT, 1, Reason.NO_ANSWER_IN_SOURCES),
    ],
    ids=["unsure", "nothing found", "not answerable", "a model has judged"],
)
async def test_silence_for_want_of_confidence_has_a_reason_of_its_own(
    reason: Reason, found_now: SearchResult, calls: int, expected: Reason
) -> None:
    asked = unanswered(reason)
    for _ in range(calls):
        asked.inquiry.usage.add("generate", prompt_tokens=1, completion_tokens=1)
    result = await pointed(asked, found_now)
    assert (result.result, result.reason) == (OutcomeKind.SKIPPED, expected)


async def test_an_answer_gets_the_addresses_of_the_sections_that_fit_for_the_pages_it_shows() -> None:
    cited = inquiry(draft="Like this.", selected=("kb:faces.md",), citations=("kb:guides/backup.md", "kb:other.md"))
    result = await pointed(cited, FITS, addresses=PUBLISHED)
    assert result.links == ("https://docs.example/guides/backup/#restore", "https://docs.example/other/")
    assert result.draft == "Like this."
    assert result.level is Level.ANSWER


async def test_an_answer_links_to_the_messages_of_the_conversations_that_it_cites() -> None:
    """Of a topic whose conversations it does not cite, or whose place is not known, to the one that fits best."""
    messages = {"qa_1": "https://discord.example/1", "qa_3": "https://discord.example/3"}
    cited = inquiry(
        draft="Like this.",
        citations=("team:a.txt", "kb:guides/backup.md", TEAM.source_id),
        cited_pairs=(("team:a.txt", "qa_3"), ("team:a.txt", "qa_1"), (TEAM.source_id, "qa_9")),
    )
    best = TEAM._replace(anchor="qa_2")
    messages["qa_2"] = "https://discord.example/best"
    addresses = replace(PUBLISHED, pair_address=messages.get)
    result = await pointed(cited, found(best), addresses=addresses)
    assert result.links == (
        "https://discord.example/3",
        "https://discord.example/1",
        "https://docs.example/guides/backup/",
        "https://discord.example/best",
    )
    assert result.shown_pairs == tuple(ShownPair(None, each) for each in ("qa_3", "qa_1", "qa_9", "qa_2"))


async def test_what_points_to_conversations_of_the_team_says_to_which() -> None:
    """Also where they have no address, as what was taught in a form."""
    own = passage("team:@7/backups", "Use the newest one.", "Restore?", anchor="qa_2")
    hits = found(BACKUP, own, TEAM._replace(anchor="qa_1", headings=("Restore which?",)), level=Level.POINT)
    result = await pointed(unanswered(addressed=True, shown_pairs=(ShownPair(None, "qa_9"),)), hits)
    assert set(result.citations) == {"kb:guides/backup.md", "team:@7/backups", "team:backups"}
    assert set(result.shown_pairs) == {ShownPair(7, "qa_2"), ShownPair(None, "qa_1")}
    result = await pointed(unanswered(addressed=True, shown_pairs=(ShownPair(None, "qa_9"),)), NOTHING)
    assert (result.level, result.shown_pairs) == (Level.POINT, ())


async def test_topics_of_the_team_and_unpublished_pages_have_no_address() -> None:
    cited = inquiry(draft="Like this.", citations=("team:backups", "kb:faces.md"))
    assert (await pointed(cited, found(TEAM, FACES), PointRules())).links == ()


async def test_an_answer_from_the_team_links_to_the_message_that_it_is_from() -> None:
    """Pitfall 62: no quote comes without a link."""
    said = passage("team:backups", "Restore it from the newest one.", "Which one?", anchor="qa_1")
    messages = {"qa_1": "https://discord.com/channels/7/11/13"}
    cited = inquiry(draft="Like this.", citations=("team:backups",))
    result = await pointed(cited, found(said), addresses=Addresses(pair_address=messages.get))
    assert result.links == (messages["qa_1"],)


# Never twice the same.


async def after_telling(
    item: Inquiry | Unanswered, *, result: OutcomeKind = OutcomeKind.REPLIED, signature: str = ""
) -> RecentReplies:
    recent_replies = RecentReplies()

    async def reply(inquiry: Inquiry) -> Outcome:
        return outcome_of(inquiry, result)

    told = await pointed(item)
    await remember_replies(reply, recent_replies)(await sign(signature)(told) if signature else told)
    return recent_replies


@pytest.mark.parametrize("signature", ["", "Millrace"])
async def test_a_quote_that_a_person_was_given_is_not_given_again(
    signature: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "operators.pointing")
    recent_replies = await after_telling(inquiry(draft="Like this."), signature=signature)
    result = await pointed(inquiry(draft="Like this."), FITS, recent_replies=recent_replies)
    assert (result.result, result.reason) == (OutcomeKind.SKIPPED, Reason.UNSURE)
    assert caplog.messages == ["generate: the same answer was given to the same person before"]
    pages = await pointed(inquiry(draft="Like this.", addressed=True), FITS, recent_replies=recent_replies)
    assert (pages.level, pages.citations) == (Level.POINT, ("kb:guides/backup.md", "kb:faces.md"))


@pytest.mark.parametrize("signature", ["", "Millrace"])
async def test_pages_that_a_person_was_pointed_to_are_not_named_again(signature: str) -> None:
    recent_replies = await after_telling(unanswered(addressed=True), signature=signature)
    again = await pointed(unanswered(addressed=True), recent_replies=recent_replies)
    assert (again.result, again.reason) == (OutcomeKind.SKIPPED, Reason.UNSURE)


@pytest.mark.parametrize(("asker", "draft"), [(2, "Like this."), (1, "Or like that.")])
async def test_another_person_and_another_answer_are_told(asker: int, draft: str) -> None:
    recent_replies = await after_telling(inquiry(draft="Like this."))
    asked = inquiry(draft=draft, asker=asker)
    assert shown(await pointed(asked, FITS, recent_replies=recent_replies)) == "q"


async def test_what_a_model_writes_is_posted_although_it_was_said_before() -> None:
    recent_replies, asked = await after_telling(inquiry(draft="Like this.")), inquiry(draft="Like this.")
    asked.usage.add("generate", prompt_tokens=1, completion_tokens=1)
    assert shown(await pointed(asked, FITS, recent_replies=recent_replies)) == "q"


async def test_what_was_called_off_or_refused_has_been_told_to_nobody() -> None:
    for ended in (OutcomeKind.CANCELLED, OutcomeKind.FAILED):
        recent_replies = await after_telling(inquiry(draft="Like this."), result=ended)
        assert shown(await pointed(inquiry(draft="Like this."), FITS, recent_replies=recent_replies)) == "q"


def test_after_a_day_it_may_be_said_again() -> None:
    recent_replies = RecentReplies()
    recent_replies.remember(1, "Like this.", 0.0)
    assert recent_replies.was_sent(1, "Like this.", DAY - 1)
    assert not recent_replies.was_sent(1, "Like this.", DAY)


def is_new(recent_replies: RecentReplies, person: int, text: str, at: float) -> bool:
    if recent_replies.was_sent(person, text, at):
        return False
    recent_replies.remember(person, text, at)
    return True


def test_nobody_is_told_the_same_twice_within_a_day() -> None:
    """Pitfall 62."""
    recent_replies = RecentReplies()
    assert is_new(recent_replies, 1, "Pull it.", 0)
    assert not is_new(recent_replies, 1, "Pull it.", DAY - 1)
    assert is_new(recent_replies, 2, "Pull it.", 5)
    assert is_new(recent_replies, 1, "Push it.", 5)
    assert is_new(
        recent_replies, 1, "Pull it.", DAY
    )  # counted from when they were told, not from when they asked again
    assert not is_new(recent_replies, 1, "Pull it.", DAY + 1)


def test_what_was_said_long_ago_is_forgotten_when_there_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operators.pointing._REMEMBERED", 3)
    recent_replies = RecentReplies()
    assert all(is_new(recent_replies, person, "Pull it.", 0) for person in range(5))
    assert [is_new(recent_replies, person, "Pull it.", 1) for person in (4, 3, 2, 0)] == [False, False, False, True]


def test_what_was_said_more_than_a_day_ago_takes_no_memory() -> None:
    recent_replies = RecentReplies()
    for day in range(3):
        for person in range(100):
            recent_replies.remember(person + 100 * day, "Pull it.", day * DAY)
    assert len(recent_replies._sent) == 100  # pyright: ignore[reportPrivateUsage] (a leak shows nowhere else)
