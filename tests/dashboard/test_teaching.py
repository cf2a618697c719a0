"""The form in which the team answers a gap."""

from __future__ import annotations

from dataclasses import replace
from html import unescape

import pytest

from clock import rfc3339
from model.servers import Servers
from services.team import LessonForm, LessonRefused
from services.team.archive import qa_id
from services.telemetry import PartOutcome
from tests.dashboard.made import BOB, GUILD, NASTY, TOKEN, UNANSWERED, Box, FakeTeacher, FakeTeam, page, served
from tests.dashboard.test_pages import key_on
from tests.services.team.pairs import captured

pytestmark = pytest.mark.real_time

FORM, GONE = "/gaps/b1/answer", "/gaps/ff/answer"
WRITTEN = {"question": "Do deleted snapshots count?", "answer": f"No.\r\n{NASTY}", "author": "77", "guild": str(GUILD)}


def filled_in(text: str) -> str:
    """The question in a form."""
    return unescape(text.partition('rows="3" required>')[2].partition("</textarea>")[0])


async def test_a_gap_is_answered_in_a_form_and_dismissed() -> None:
    box = Box(texts=True)
    async with served(box) as client:
        assert f'href="{FORM}"' in await page(client, "/gaps")
        assert f'rows="3" required>{UNANSWERED.question}</textarea>' in await page(client, FORM)
        async with client.post(FORM, data={**WRITTEN, "key": await key_on(client, FORM)}) as response:
            assert response.status == 200
            assert "Stored and filed. The gap is dismissed." in await response.text()
    assert box.teacher is not None
    assert box.teacher.taught == [LessonForm(GUILD, WRITTEN["question"], WRITTEN["answer"], author_id=77)]
    assert box.dismissed.ids == {0xB1}


async def test_a_gap_that_was_answered_in_discord_or_in_the_terminal_says_so_and_is_no_step() -> None:
    stamp = rfc3339(UNANSWERED.at + 60, digits=6)
    lesson = replace(
        captured(0, UNANSWERED.question, "No."), conversation_id="taught_9", timestamp=stamp, id=qa_id(stamp)
    )
    for lessons in ((), (lesson,)):
        async with served(Box(texts=True, team=FakeTeam(lessons=lessons))) as client:
            gaps, overview = await page(client, "/gaps"), await page(client, "/")
        assert ("The team has answered this since." in gaps) is bool(lessons)
        assert ('href="/knowledge/topics/lessons"' in gaps) is bool(lessons)
        assert ("Write what is missing" in overview) is not bool(lessons)


async def test_a_question_as_it_was_asked_stays_the_askers() -> None:
    box = Box(texts=True, teacher=FakeTeacher(is_filed=False))
    async with served(box) as client:
        sent = {**WRITTEN, "question": f" {UNANSWERED.question}\r\n", "author": ""}
        async with client.post(FORM, data={**sent, "key": await key_on(client, FORM)}) as response:
            assert response.status == 200
    assert box.teacher is not None
    [form] = box.teacher.taught
    assert (form.author_id, form.asker_id) == (0, BOB)
    assert box.dismissed.ids == set()


async def test_a_question_that_a_page_shows_in_another_way_than_it_was_written_stays_the_askers() -> None:
    joined = replace(UNANSWERED, question="Do the photographs of a family \U0001f468\u200d\U0001f469 count twice?")
    box = Box(texts=True, entries=[joined])
    async with served(box) as client:
        shown = filled_in(await page(client, FORM))
        assert shown == joined.question.replace("\u200d", "")
        sent = {**WRITTEN, "question": shown, "key": await key_on(client, FORM)}
        async with client.post(FORM, data=sent) as response:
            assert response.status == 200
    assert box.teacher is not None
    assert [form.asker_id for form in box.teacher.taught] == [BOB]


PRIVATE = replace(UNANSWERED, message_ids=(0xB2,), author_id=78, question=f"{UNANSWERED.question[:-1]} of Zebra Corp?")


@pytest.mark.parametrize("entries", [[UNANSWERED, PRIVATE], [PRIVATE, replace(UNANSWERED, at=1.0)]])
async def test_a_form_is_filled_in_with_what_was_asked_in_public(entries: list[PartOutcome]) -> None:
    teacher = FakeTeacher(private=[PRIVATE.question])
    async with served(Box(texts=True, entries=entries, teacher=teacher)) as client:
        assert filled_in(await page(client, FORM)) == UNANSWERED.question
        sent = {**WRITTEN, "question": UNANSWERED.question, "key": await key_on(client, FORM)}
        async with client.post(FORM, data=sent) as response:
            assert response.status == 200
    assert [form.asker_id for form in teacher.taught] == [BOB]


async def test_a_private_question_is_not_filled_in_and_has_to_be_put_in_other_words() -> None:
    teacher = FakeTeacher(private=[PRIVATE.question])
    form = "/gaps/b2/answer"
    async with served(Box(texts=True, entries=[PRIVATE], teacher=teacher)) as client:
        text = await page(client, form)
        assert "Write it in your own words" in text
        assert filled_in(text) == ""
        sent = {**WRITTEN, "key": await key_on(client, form)}
        async with client.post(form, data={**sent, "question": f"Please, {PRIVATE.question.lower()}"}) as response:
            assert response.status == 422
            assert "write it in your own words" in await response.text()
        assert teacher.taught == []
        async with client.post(form, data=sent) as response:
            assert response.status == 200
    assert [taught.question for taught in teacher.taught] == [WRITTEN["question"]]


async def test_what_is_taught_goes_to_the_server_whose_gap_it_is() -> None:
    there = replace(UNANSWERED, at=UNANSWERED.at + 1, guild_id=GUILD + 1, message_ids=(0xB2,), author_id=78)
    owner_of = Servers({None: "", GUILD + 1: "its own"}).owner_of
    box = Box(texts=True, entries=[UNANSWERED, there], owner_of=owner_of)
    async with served(box) as client:
        for form in (FORM, "/gaps/b2/answer"):
            text = await page(client, form)
            assert (f"in server {GUILD + 1} alone" in text) is (form != FORM)
            sent = {**WRITTEN, "question": filled_in(text)}
            async with client.post(form, data={**sent, "key": await key_on(client, form)}) as response:
                assert response.status == 200
            assert box.dismissed.ids == ({0xB1} if form == FORM else {0xB1, 0xB2})
    assert box.teacher is not None
    assert [(form.guild_id, form.asker_id) for form in box.teacher.taught] == [(GUILD, BOB), (GUILD + 1, 78)]


async def test_what_was_asked_is_in_no_form_where_texts_are_not_shown() -> None:
    async with served(Box()) as client:
        text = await page(client, FORM)
    assert UNANSWERED.question not in text
    assert "dashboard.show_texts" in text


async def test_an_answer_to_what_is_no_gap_any_more_is_not_stored_and_not_lost() -> None:
    """Nobody knows any more for which server it would be, and whose words it has."""
    box = Box(texts=True)
    async with served(box) as client:
        async with client.get(GONE) as response:
            assert response.status == 404
            assert "is no gap any more" in await response.text()
        async with client.post(GONE, data={**WRITTEN, "key": await key_on(client, FORM)}) as response:
            text = await response.text()
            assert response.status == 422
    assert "is no gap any more" in text
    assert WRITTEN["answer"] in unescape(text)
    assert box.teacher is not None
    assert box.teacher.taught == []


async def test_the_words_of_a_private_question_are_not_taught_by_the_form_of_another_gap() -> None:
    other = replace(UNANSWERED, message_ids=(0xB3,), question="Why is the thumbnail of every panorama upside down?")
    teacher = FakeTeacher(private=[PRIVATE.question])
    form = "/gaps/b3/answer"
    async with served(Box(texts=True, entries=[other, PRIVATE], teacher=teacher)) as client:
        sent = {**WRITTEN, "question": PRIVATE.question, "key": await key_on(client, form)}
        async with client.post(form, data=sent) as response:
            assert response.status == 422
            assert "write it in your own words" in await response.text()
    assert teacher.taught == []


@pytest.mark.parametrize(
    ("given", "refusal", "why"),
    [
        ({}, LessonRefused("The answer is empty: write one."), "The answer is empty"),
        ({"author": "kim"}, None, "kim is no id"),
    ],
)
async def test_what_is_refused_comes_back_with_its_text(
    given: dict[str, str], refusal: Exception | None, why: str
) -> None:
    box = Box(teacher=FakeTeacher(refusal=refusal))
    async with served(box) as client:
        sent = {**WRITTEN, **given, "key": await key_on(client, FORM)}
        async with client.post(FORM, data=sent) as response:
            assert response.status == 422
            text = await response.text()
    assert why in text
    assert WRITTEN["question"] in text
    assert "No.\r\n&lt;script&gt;" in text
    assert NASTY not in text
    assert box.dismissed.ids == set()


async def test_nobody_teaches_without_the_key_the_token_or_an_archive() -> None:
    box = Box(token=TOKEN)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with served(box) as client, client.post(FORM, data=WRITTEN) as response:
        assert response.status == 401
    async with served(Box()) as client, client.post(FORM, data={**WRITTEN, "key": "guessed"}) as response:
        assert response.status == 403
    async with served(Box(token=TOKEN, teacher=None)) as client:
        async with client.get("/gaps", headers=headers) as response:
            assert "Write an answer" not in await response.text()
        async with client.post(FORM, data=WRITTEN, headers=headers) as response:
            assert response.status == 404
    assert box.teacher is not None
    assert box.teacher.taught == []
