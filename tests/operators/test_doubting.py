"""Which answers of the team are doubted by what is said later."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from clock import DAY
from model.conversations import ShownPair
from model.messages import Author, Message, Place
from operators.doubting import (
    ASKER_SECONDS,
    HEARD_SECONDS,
    MAX_BY_STRANGER,
    Doubt,
    DoubtedPair,
    doubts,
)
from services.conversations import Post, Posts
from tests.marbles import play, watch
from tests.talk import ANN, BEN, BOT, CHANNEL, STAFF, STAFF_TOO, THREAD, Talk

CAT = Author(3, "cat")


class Answered(Talk):
    """Ann asks, and is answered after a minute."""

    def __init__(self, place: Place = CHANNEL) -> None:
        super().__init__()
        self.place = place
        self.question = self.says(ANN, "How do I reset the demo server?", place=place, second=10)
        self.answer = self.says(STAFF, "Run `demo reset`, it asks for the port.", place=place, second=70)

    async def doubted(self, *messages: Message, withheld: frozenset[int] = frozenset()) -> list[str]:
        operator = doubts(self.history, self.tracker, self.people, Posts(), lambda each: each.author.id in withheld)
        seen = await watch("p|", operator, values={"p": self.part(*messages)})
        names = {self.answer.id: "answer"}
        return [names.get(each.message_id, "another") for _, each in seen if isinstance(each, Doubt)]

    async def doubted_by(
        self, author: Author, text: str, second: float = 120, to: Message | None = None, mentions: Sequence[Author] = ()
    ) -> bool:
        message = self.says(author, text, place=self.place, second=second, to=to, mentions=mentions)
        return await self.doubted(message) == ["answer"]


class Quoted(Answered):
    """The bot has quoted two answers of the team to Cat, in two pieces."""

    def __init__(self) -> None:
        super().__init__()
        texts = ("The team said so: Run `demo reset`.", "Ten lines more.")
        self.pieces = [self.says(BOT, text, place=THREAD, second=5000 + at) for at, text in enumerate(texts)]
        first, last = (each.id for each in self.pieces)
        pairs = (ShownPair(None, "qa_1"), ShownPair(7, "qa_2"))
        self.posts = Posts([Post(0.0, last, THREAD.id, CHANNEL.id, CAT.id, 1, True, "How?", (), pairs, (first,))])

    async def doubts(self, *said: Message) -> list[Doubt | DoubtedPair]:
        operator = doubts(self.history, self.tracker, self.people, self.posts, lambda _: False)
        seen = await watch("p|", operator, values={"p": self.part(*said)})
        return [each for _, each in seen if isinstance(each, Doubt | DoubtedPair)]

    @property
    def all_of_it(self) -> list[Doubt | DoubtedPair]:
        """The messages may be kept as what the team taught."""
        messages = [Doubt(THREAD.id, each.id) for each in self.pieces]
        return [*messages, DoubtedPair(None, "qa_1"), DoubtedPair(7, "qa_2")]


@pytest.mark.parametrize(
    ("by", "text", "is_reply", "is_doubt"),
    [
        (STAFF_TOO, "That is outdated.", True, True),
        (STAFF_TOO, "Since version 5 it is `demo repair`.", True, True),
        (STAFF_TOO, "No, use `demo repair` instead.", False, True),
        (STAFF_TOO, "This is wrong.", False, True),
        (STAFF_TOO, "Let me check that again.", True, True),
        (STAFF_TOO, "Let me check that again.", False, True),
        (STAFF_TOO, "Scratch that.", True, True),
        (STAFF_TOO, "Scratch that.", False, True),
        (STAFF_TOO, "Good morning.", False, False),
        (CAT, "This is wrong, it deleted my data!", True, True),
        (CAT, "Thanks!", True, False),
        (CAT, "This is wrong, it deleted my data!", False, False),
    ],
)
async def test_what_is_said_to_the_bot_about_what_it_has_quoted_is_about_that(
    by: Author, text: str, *, is_reply: bool, is_doubt: bool
) -> None:
    for piece in range(2 if is_reply else 1):
        talk = Quoted()
        said = talk.says(by, text, place=THREAD, second=5100, to=talk.pieces[piece] if is_reply else None)
        assert await talk.doubts(said) == (talk.all_of_it if is_doubt else [])


async def test_a_post_of_an_earlier_run_is_doubted_by_a_reply() -> None:
    talk, later = Quoted(), Quoted()
    said = talk.says(STAFF, "This is wrong.", place=THREAD, second=90_000, to=talk.pieces[0])
    later.posts = Posts()
    assert await later.doubts(said) == [], "it is not known"
    later.posts = talk.posts
    assert await later.doubts(said) == talk.all_of_it


async def test_of_a_user_some_doubts_of_posts_count_in_a_day() -> None:
    talk = Quoted()
    said = [
        talk.says(CAT, "This is wrong!", place=THREAD, second=5100 + at, to=talk.pieces[0])
        for at in range(MAX_BY_STRANGER)
    ]
    operator = doubts(talk.history, talk.tracker, talk.people, talk.posts, lambda _: False)
    more = talk.says(CAT, "This is wrong!", place=THREAD, second=5200, to=talk.pieces[0])
    seen = await watch("pq|", operator, values={"p": talk.part(*said), "q": talk.part(more)})
    assert [each for _, each in seen if isinstance(each, Doubt | DoubtedPair)] == talk.all_of_it


async def test_a_reply_to_what_is_not_known_is_not_about_the_quote_above_it() -> None:
    talk = Quoted()
    unknown = talk.says(CAT, "Tea is green.", place=THREAD, second=5050, unheard=True)
    said = talk.says(STAFF_TOO, "No, that is wrong.", place=THREAD, second=5100, to=unknown)
    assert await talk.doubts(said) == []


async def test_what_is_said_next_but_not_after_the_quote_is_not_about_it() -> None:
    talk = Quoted()
    talk.says(CAT, "Tea is green.", place=THREAD, second=5050)
    said = talk.says(STAFF_TOO, "No, that is wrong.", place=THREAD, second=5100)
    assert await talk.doubts(said) == []


@pytest.mark.parametrize("place", [CHANNEL, THREAD])
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("still broken, port 8080 is taken anyway", True),
        ("that did not work", True),
        ("wrong, that deletes your data", True),
        ("does that not delete my data?", True),
        ("thanks, but it wiped my settings", True),
        ("thanks, works now", False),
        ("ok, let me try that", False),
        ("I am on Linux, by the way.", False),
        ("How do I change the port?", False),
        ("My build fails with E12, how do I fix it?", False),
    ],
)
async def test_the_asker_doubts_it_by_what_is_said_next(place: Place, text: str, *, wanted: bool) -> None:
    assert await Answered(place).doubted_by(ANN, text) is wanted


@pytest.mark.parametrize("text", ["that bricked my server", "it made it worse", "it dont start", "that is malware"])
async def test_a_reply_doubts_it_by_what_it_did(text: str) -> None:
    room = Answered()
    assert await room.doubted_by(BEN, text, to=room.answer)


@pytest.mark.parametrize("text", ["that did not work", "no, that deletes your data", "Wrong!"])
async def test_anybody_doubts_it_by_a_reply_at_any_time_and_by_a_mention_soon(text: str) -> None:
    late = 10 * ASKER_SECONDS
    room = Answered()
    assert not await room.doubted_by(BEN, text)
    assert await Answered().doubted_by(BEN, text, to=room.answer, second=late)
    assert await Answered().doubted_by(BEN, text, mentions=[STAFF])
    assert not await Answered().doubted_by(BEN, text, mentions=[STAFF], second=70 + HEARD_SECONDS + 1)
    assert not await Answered().doubted_by(BEN, text, mentions=[STAFF, CAT])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("that bricked my server", True),
        ("now I get error 500", True),
        ("i dont see that option", True),
        ("all my files are gone after that", True),
        ("that sends mails to everybody", True),
        ("port 8080 is taken", True),
        ("now everything is empty", True),
        ("Fried my board.", True),
        ("got an electric shock doing that", True),
        ("lies", True),
        ("👎", True),
        ("❌", True),
        ("👍", False),
        ("and on Windows?", False),
        ("ok, will try", False),
        ("I'll restart it first", False),
        ("oh it is in the settings", False),
        ("works, the error is gone", False),
        ("Also, the port has to be open.", False),
        ("How do I change the port?", False),
    ],
)
async def test_what_a_user_states_in_a_reply_counts_unless_it_agrees_asks_or_adds(text: str, *, wanted: bool) -> None:
    late = 2 * ASKER_SECONDS
    for who in (ANN, BEN):
        at_once, later = Answered(), Answered()
        assert await at_once.doubted_by(who, text, to=at_once.answer) is wanted
        later.answer = later.says(STAFF, "Run `demo reset` again.", second=80, to=later.question)
        assert await later.doubted_by(who, text, to=later.answer, second=late) is wanted


@pytest.mark.parametrize(
    ("text", "by_reply", "without"),
    [
        ("no, use `demo wipe` instead", True, True),
        ("Don't: it wipes the volume.", True, True),
        ("Since version 5 it is `demo restart`.", True, True),
        ("that's dangerous, use the side door", True, True),
        ("^ only with the power off!", True, True),
        ("it's the other lever", True, True),
        ("A and B formats it. It is A and C.", True, True),
        ("also see the docs", False, False),
        ("you could also set PORT", False, False),
        ("exactly", False, False),
        ("thanks Sue!", False, False),
    ],
)
async def test_a_colleague_corrects_it_and_adds_to_it(text: str, *, by_reply: bool, without: bool) -> None:
    room = Answered()
    assert await room.doubted_by(STAFF_TOO, text, to=room.answer) is by_reply
    assert await Answered().doubted_by(STAFF_TOO, text) is without
    assert not await Answered().doubted_by(STAFF_TOO, text, second=70 + HEARD_SECONDS + 1)


async def test_a_correction_while_others_talk_is_about_no_answer() -> None:
    room = Answered()
    room.says(BEN, "Is there a newsletter?", second=100)
    assert not await room.doubted_by(STAFF_TOO, "no, use something else")


async def test_what_whoever_answered_adds_too_late_to_be_kept_with_the_answer_doubts_it() -> None:
    text = "But do that only with the power off, as the lever is live."
    assert not await Answered().doubted_by(STAFF, text, second=100), "both are quoted"
    for second in (190, 400, 660):
        assert await Answered().doubted_by(STAFF, text, second=second)
        assert not await Answered().doubted_by(STAFF, "You're welcome!", second=second)
    between = Answered()
    between.says(BEN, "Is there a newsletter?", second=150)
    assert not await between.doubted_by(STAFF, "It comes on the first of each month.", second=200)


async def test_what_a_colleague_says_to_somebody_else_corrects_no_answer() -> None:
    for is_reply in (True, False):
        room = Answered()
        asked = room.says(BEN, "Is there a newsletter?", second=20)
        room.answer = room.says(STAFF, "Run `demo reset` again.", second=80, to=room.question)
        assert not await room.doubted_by(STAFF_TOO, "On the first of each month.", to=asked if is_reply else None)
    for mentioned, wanted in ([BEN], False), ([STAFF, BEN], False), ([STAFF], True):
        assert await Answered().doubted_by(STAFF_TOO, "Only with the power off!", mentions=mentioned) is wanted


async def test_whoever_corrects_their_own_answer_by_a_reply_doubts_it() -> None:
    room = Answered()
    assert await room.doubted_by(STAFF, "Sorry, that is outdated.", to=room.answer, second=9_000)


TAKES_BACK = ["Let me check that again.", "Oh wait, that was wrong.", "Actually, don't.", "Scratch that!"]


@pytest.mark.parametrize("text", TAKES_BACK)
@pytest.mark.parametrize("place", [CHANNEL, THREAD])
async def test_the_team_takes_an_answer_back_by_what_it_says_next(text: str, place: Place) -> None:
    for who in (STAFF, STAFF_TOO):
        assert await Answered(place).doubted_by(who, text)
        assert await Answered(place).doubted_by(who, text, second=69 + HEARD_SECONDS)
        assert who == STAFF or await Answered(place).doubted_by(who, text, mentions=[STAFF])
        assert not await Answered(place).doubted_by(who, text, second=71 + HEARD_SECONDS)
        thanked, replied = Answered(place), Answered(place)
        thanked.says(ANN, "Thank you, I will try that tonight.", place=place, second=100)
        assert await thanked.doubted_by(who, text, second=300)
        assert await replied.doubted_by(who, text, second=9_000, to=replied.answer)


@pytest.mark.parametrize("text", ["Then restart it.", "Don't forget to save.", "Wait until it is green, then log in."])
async def test_whoever_goes_on_with_their_own_answer_doubts_nothing(text: str) -> None:
    assert not await Answered().doubted_by(STAFF, text)


@pytest.mark.parametrize(("who", "question"), [(ANN, "Is there a dark mode, too?"), (BEN, "Is there a newsletter?")])
async def test_what_the_team_denies_after_another_question_is_about_that(who: Author, question: str) -> None:
    room = Answered()
    room.says(who, question, second=100)
    assert not await room.doubted_by(STAFF, "No, not yet.")


@pytest.mark.parametrize("before", ["The new release is out, everybody.", "hm"])
async def test_what_a_colleague_says_before_a_correction_hides_no_answer(before: str) -> None:
    room = Answered()
    room.says(STAFF_TOO, before, second=100)
    assert await room.doubted_by(STAFF_TOO, "No, use `demo repair` instead.")


async def test_the_asker_comes_back_within_the_hour() -> None:
    assert await Answered().doubted_by(ANN, "that did not work", second=69 + ASKER_SECONDS)
    assert not await Answered().doubted_by(ANN, "that did not work", second=71 + ASKER_SECONDS)
    assert not await Answered().doubted_by(ANN, "The release notes are not there.", second=2_000), "not clear enough"


async def test_what_the_asker_tells_others_is_no_doubt() -> None:
    room = Answered()
    said = room.says(BEN, "What have you got there?", second=100)
    assert not await room.doubted_by(ANN, "it does not work", to=said)
    assert not await Answered().doubted_by(ANN, "it does not work", mentions=[CAT])
    assert not await Answered().doubted_by(ANN, "it does not work", to=Answered().question)


async def test_after_thanks_only_what_is_clear_doubts_it() -> None:
    for text, wanted in (("The weather is not nice.", False), ("oh wait, no, that deletes my data", True)):
        room = Answered()
        room.says(ANN, "thanks!", second=100)
        assert await room.doubted_by(ANN, text) is wanted


async def test_whoever_went_on_after_the_answer_doubts_it_in_no_later_conversation() -> None:
    room = Answered()
    room.says(ANN, "ok, let me try that", second=100)
    assert not await room.doubted_by(ANN, "that did not work", second=2_000)


async def test_of_one_batch_each_message_is_read_and_the_answer_may_stand_within_it() -> None:
    room = Talk()
    first = room.says(ANN, "How do I reset the demo server?", second=10)
    answer = room.says(STAFF, "Run `demo reset`, it asks for the port.", second=30)
    rest = [room.says(ANN, text, second=40 + at) for at, text in enumerate(("hm", "that did not work", "no luck"))]
    operator = doubts(room.history, room.tracker, room.people, Posts(), lambda _: False)
    values = {"p": room.part(first, *rest)}
    assert await play("-p-|", operator, values=values, show=lambda each: str(each == Doubt(CHANNEL.id, answer.id))) == (
        "-(True)-|"
    )


async def test_what_is_withheld_is_not_read_and_what_the_bot_said_is_not_doubted() -> None:
    room = Answered()
    said = room.says(ANN, "that did not work", second=120)
    assert await room.doubted(said, withheld=frozenset({STAFF.id})) == []
    other = Talk()
    other.says(ANN, "How do I reset the demo server?", second=10)
    posted = other.says(BOT, "Run `demo reset`, it asks for the port.", second=70)
    doubt = other.says(ANN, "that did not work", second=120, to=posted)
    operator = doubts(other.history, other.tracker, other.people, Posts(), lambda _: False)
    assert await play("p|", operator, values={"p": other.part(doubt)}) == "-|"


@pytest.mark.parametrize(("who", "wanted"), [(BEN, MAX_BY_STRANGER), (ANN, MAX_BY_STRANGER + 2), (STAFF_TOO, 7)])
async def test_of_a_user_who_asked_nothing_some_doubts_of_a_day_count(who: Author, wanted: int) -> None:
    """Else one account could have every answer of the team quoted no more."""
    room = Answered()
    answers = [room.says(STAFF, f"Run `demo {n}`.", second=80 + n, to=room.question) for n in range(7)]
    operator = doubts(room.history, room.tracker, room.people, Posts(), lambda _: False)
    text = "no, that deletes your data"
    said = [room.part(room.says(who, text, second=9_000 + n, to=each)) for n, each in enumerate(answers)]
    later = room.part(room.says(who, text, second=9_000 + DAY + 10, to=answers[0]))
    seen = await watch("abcdefgh|", operator, values=dict(zip("abcdefgh", [*said, later], strict=True)))
    assert len([each for _, each in seen if isinstance(each, Doubt)]) == wanted + 1
