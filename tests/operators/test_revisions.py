"""How messages read after edits and deletions, for what was captured of them."""

from __future__ import annotations

from dataclasses import replace

from model.events import Deleted, Edited, PlaceGone
from model.messages import Attachment, Message
from operators.capturing import revisions_of
from operators.doubting import Doubt, DoubtedPair
from services.conversations.context import Context, ContextRules
from services.redaction import Redactor
from services.team.captures import Revision
from tests.talk import ANN, BOT, CHANNEL, START, Talk

IMAGE = Attachment(1, "panic.png", 5, "https://cdn.discordapp.com/panic.png", "image/png")


def context_of(talk: Talk, rules: ContextRules | None = None) -> Context:
    return Context(talk.history, talk.people, talk.tracker, rules or ContextRules())


def edit(message: Message, text: str | None, files: tuple[Attachment, ...] | None = None) -> Edited:
    return Edited(START, message.channel_id, message.id, text, files)


def after(talk: Talk, event: Edited, rules: ContextRules | None = None) -> tuple[Revision, ...]:
    talk.history.observe(event)
    return revisions_of(event, context_of(talk, rules))


def test_of_each_deleted_message_nothing_is_left() -> None:
    assert revisions_of(Deleted(START, 1, (5, 6)), context_of(Talk())) == (Revision(5), Revision(6))


def test_a_doubt_marks_its_message_and_leaves_the_text() -> None:
    assert revisions_of(Doubt(CHANNEL.id, 5), context_of(Talk())) == (Revision(5, is_doubt=True),)
    pair = Revision(0, is_doubt=True, pair_id="qa_1")
    assert revisions_of(DoubtedPair(None, "qa_1"), context_of(Talk())) == (pair,)


def test_a_deleted_channel_is_gone_with_all_that_was_said_in_it() -> None:
    assert revisions_of(PlaceGone(START, 5), context_of(Talk())) == (Revision(5, is_place=True),)


def test_an_edited_message_reads_as_a_capture_would_have_it() -> None:
    talk = Talk()
    asked = talk.says(ANN, "How?", attachments=(IMAGE,))
    [revision] = after(
        talk, edit(asked, f"<@{BOT.id}> token sk-very-secret"), ContextRules(redact=Redactor(["sk-very-secret"]).text)
    )
    assert revision == Revision(asked.id, "@millrace token [redacted: known secret]\n[image: panic.png]", ANN.id, 1)


def test_an_edit_that_leaves_nothing_that_may_be_captured_is_a_deletion() -> None:
    talk = Talk()
    asked = talk.says(ANN, "How?")
    hidden = ContextRules(withheld=lambda message: "!nobot" in message.text)
    assert after(talk, edit(asked, "!nobot How?"), hidden) == (Revision(asked.id),)
    assert after(talk, edit(asked, " ")) == (Revision(asked.id),)


def test_of_a_message_that_is_not_known_the_edit_tells() -> None:
    unseen = replace(Talk().says(ANN, "How?"), channel_id=CHANNEL.id)
    assert after(Talk(), edit(unseen, "How so?")) == (Revision(unseen.id, "How so?"),)
    assert after(Talk(), edit(unseen, "", (IMAGE,))) == (Revision(unseen.id, "[image: panic.png]", 0, 1),)
    assert after(Talk(), edit(unseen, None)) == ()
