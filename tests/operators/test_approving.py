"""The step `approve`: which answers wait for a person, and what is kept of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from clock import now
from model.conversations import Conversation, Role, Turn
from model.messages import AuthorType
from model.outcomes import Approval, Outcome, OutcomeKind
from operators.approving import ApprovalRules, digest_of, pairs_in, require_approval, shown_in
from services.assistant import Inquiry
from services.conversations import Draft, DraftAction, DraftRequest, Drafts, InFlight, WorkCancelled
from services.conversations.drafts import read_drafts
from services.conversations.in_flight import Reason
from services.knowledge import Library, Source, SourceUnavailable
from services.storage import files
from tests.operators.test_answering import asked, told
from tests.searching import ScriptedSearch, found, passage
from tests.talk import BEN, BOT, Talk
from tests.world import GUIDE

HELD = "held: held for approval"
TOPIC = "team:setup.txt"


def drafted(**known: Any) -> Inquiry:
    return asked(draft="So.", links=("https://docs.example/a",), citations=(GUIDE,), **known)


async def after(
    inquiry: Inquiry, approval: Approval = "all", confidence: float = 0.9, *, drafts: Drafts | None = None, **rules: Any
) -> Inquiry | Outcome:
    search = rules.pop("search", None) or ScriptedSearch(found(passage(GUIDE), confidence=confidence))
    kept, in_flight = drafts or Drafts(), rules.pop("in_flight", InFlight())
    step = require_approval(search, kept, in_flight, ApprovalRules(approval=approval, **rules))
    return await step(inquiry)


@pytest.mark.parametrize(
    ("approval", "confidence", "says"),
    [("off", 0.0, "passed"), ("all", 1.0, HELD), ("unsure", 0.8, "passed"), ("unsure", 0.79, HELD)],
)
async def test_who_waits(approval: Approval, confidence: float, says: str) -> None:
    inquiry = drafted()
    assert told(await after(inquiry, approval, confidence)) == says
    assert ("approve" in inquiry.decisions) is (approval != "off")


@dataclass
class Tools:
    """Stands for a `Toolset`."""

    has_found: bool


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ({"citations": (GUIDE, "kb:third.md")}, "passed"),
        ({"citations": (GUIDE,), "selected": (GUIDE, "kb:other.md"), "toolset": Tools(has_found=False)}, "passed"),
        ({"citations": (GUIDE, "kb:fourth.md")}, HELD),
        ({"citations": ("kb:not-found.md",)}, HELD),
        ({"citations": (), "selected": (GUIDE,)}, HELD),
        ({"citations": (TOPIC,), "sources": (Source(TOPIC, "So."),)}, HELD),
        ({"citations": (GUIDE,), "sources": (Source(GUIDE, "So."), Source(TOPIC, "So."))}, HELD),
        ({"citations": ("official.md:1-3",), "toolset": Tools(has_found=True)}, HELD),
        ({"citations": (GUIDE,), "toolset": Tools(has_found=True)}, HELD),
    ],
    ids=[
        "pages that rank first",
        "nothing in the files",
        "a page that ranks fourth",
        "a page that was not found",
        "nothing",
        "a topic of the team",
        "a page, and a topic was read",
        "a file",
        "a page, and a file was read",
    ],
)
async def test_unsure_passes_what_cites_pages_that_rank_first(known: dict[str, Any], says: str) -> None:
    """The confidence is that of those pages: it says nothing of other texts, which a stranger may have written."""
    pages = [passage(each) for each in (TOPIC, GUIDE, "kb:second.md", "kb:third.md", "kb:fourth.md")]
    search = ScriptedSearch(found(*pages, confidence=0.9))
    assert told(await after(drafted()._replace(**known), "unsure", search=search)) == says


async def test_what_the_team_is_sure_of_makes_no_page_sure() -> None:
    sure_of_topic = found(passage(TOPIC), passage(GUIDE), confidence=0.9)._replace(documents_confidence=0.3)
    inquiry = drafted()
    assert told(await after(inquiry, "unsure", search=ScriptedSearch(sure_of_topic))) == HELD
    assert inquiry.decisions["approve"] == {"held": True, "confidence": 0.3}
    inquiry = drafted()._replace(citations=(TOPIC,))
    await after(inquiry, search=ScriptedSearch(sure_of_topic))
    assert inquiry.decisions["approve"] == {"held": True, "confidence": 0.9}


async def test_a_channel_may_differ() -> None:
    assert told(await after(drafted(), by_channel={11: "off"})) == "passed"
    assert told(await after(drafted(), "off", by_channel={11: "all"})) == HELD
    assert not ApprovalRules(by_channel={11: "off"}).is_on
    assert ApprovalRules(by_channel={11: "all"}).is_on


async def test_a_draft_knows_the_messages_of_others_that_it_was_made_with() -> None:
    talk = Talk()
    said = (talk.says(BEN, "Mine too."), talk.says(BOT, "Restart it."), talk.says(drafted().part.author, "And then?"))
    turns = tuple(Turn(role=Role.USER, text=each.text, message_id=each.id) for each in said)
    inquiry = drafted()._replace(conversation=Conversation(turns), messages=said)
    assert shown_in(inquiry) == ((said[0].channel_id, said[0].id, digest_of("Mine too.")),)


async def test_a_draft_has_all_that_posts_it(tmp_path: Path) -> None:
    kept = Drafts(tmp_path)
    result = await after(drafted(), drafts=kept, seconds=60.0, review_channel_id=77, confidence=0.456)
    kept.close()
    (draft,) = read_drafts(tmp_path)
    assert isinstance(result, Outcome)
    assert (result.result, result.reply_text) == (OutcomeKind.HELD, draft.text)
    assert draft.text.startswith("So.")
    assert "https://docs.example/a" in draft.text
    assert (draft.id, draft.reply.place_id, draft.thread_name) == (10, 10, "How do I install it?")
    assert (draft.confidence, draft.review_channel_id) == (0.46, 77)
    assert draft.until - now() == pytest.approx(60, abs=5)
    assert draft.part.place.id == 11
    kept = Drafts(tmp_path / "reused")
    await after(drafted(reply_place_id=12), drafts=kept)
    kept.close()
    (draft,) = read_drafts(tmp_path / "reused")
    assert (draft.reply.place_id, draft.thread_name) == (12, "")


async def test_what_makes_it_unnecessary_ends_the_draft_and_not_the_inquiry(tmp_path: Path) -> None:
    drafts, in_flight, inquiry = Drafts(tmp_path), InFlight(), drafted()
    seen = list[DraftRequest]()
    drafts.requests.subscribe(seen.append)
    in_flight.hold(inquiry.part.last, AuthorType.COMMUNITY_USER, in_thread=False)
    in_flight.begin(inquiry.part)
    outcome = await after(inquiry, drafts=drafts, in_flight=in_flight)
    assert isinstance(outcome, Outcome)
    in_flight.release(outcome)
    in_flight.stop()
    assert (seen, len(in_flight)) == ([], 0)
    in_flight.withdraw(inquiry.part.author.id)
    assert [(each.action, each.reason) for each in seen] == [(DraftAction.CANCEL, Reason.DELETED)]
    assert inquiry.token.error is None
    drafts.close()


async def test_what_is_cancelled_by_then_is_not_held(tmp_path: Path) -> None:
    inquiry = drafted()
    inquiry.token.cancel(WorkCancelled(Reason.DELETED))
    with pytest.raises(WorkCancelled):
        await after(inquiry, drafts=Drafts(tmp_path))
    assert [*read_drafts(tmp_path)] == []


ADA = 999


@pytest.mark.parametrize("people", [{ADA}, set[int]()])
@pytest.mark.parametrize("when", ["before it is stored", "while it is stored", "since it is"])
async def test_who_is_forgotten_meanwhile_leaves_no_words_in_a_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, people: set[int], when: str
) -> None:
    drafts, asked_to_cancel, put = Drafts(tmp_path), list[DraftRequest](), Drafts.put
    drafts.requests.subscribe(asked_to_cancel.append)
    inquiry = drafted(people=frozenset(people))
    inquiry = inquiry._replace(part=replace(inquiry.part, closed_at=now()))

    async def forgets(self: Drafts, draft: Draft) -> None:
        drafts.forget(ADA)
        await put(self, draft)

    if when == "before it is stored":
        drafts.forget(ADA)
    elif when == "while it is stored":
        monkeypatch.setattr(Drafts, "put", forgets)
    with suppress(WorkCancelled):
        await after(inquiry, drafts=drafts)
    if when == "since it is":
        drafts.forget(ADA)
    is_stored = bool([*read_drafts(tmp_path)])
    assert is_stored == (not people or when != "before it is stored")
    assert {each.reason for each in asked_to_cancel} == ({Reason.OPTED_OUT} if is_stored and people else set())
    drafts.close()


async def test_a_full_disk_lets_the_messages_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    in_flight, inquiry = InFlight(), drafted()
    monkeypatch.setattr(files, "replace", full)
    with pytest.raises(OSError, match="No space"):
        await after(inquiry, drafts=Drafts(tmp_path), in_flight=in_flight)
    assert len(in_flight) == 1, "its failure releases it"


async def test_the_thread_of_a_draft_is_named_after_the_line_that_asks(tmp_path: Path) -> None:
    said = "NOTICE: verify your wallet at https://evil.example/login\nHow do I install it?"
    inquiry = drafted()._replace(conversation=Conversation((Turn(Role.USER, said, asked_now=True),)))
    kept = Drafts(tmp_path)
    await after(inquiry, drafts=kept)
    kept.close()
    (draft,) = read_drafts(tmp_path)
    assert draft.thread_name == "How do I install it?"


class Topics:
    """Stands for a `Library` with one topic."""

    async def load(self, source_id: str) -> Source:
        if source_id != TOPIC:
            raise SourceUnavailable(source_id)
        return Source(TOPIC, "--- QA ---\nid: qa_1\nUser: Which keys?\nTeam: F9.\n\n")


async def test_a_draft_is_from_the_conversations_that_its_topics_hold_and_not_from_those_of_a_topic_that_is_gone() -> (
    None
):
    assert await pairs_in(cast(Library, Topics()), [TOPIC, "team:gone.txt"]) == {(TOPIC, "qa_1")}
