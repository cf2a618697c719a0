"""Who may ask what, where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from services.documents.store.document_store import DocumentStore
from services.documents.tools import libraries
from services.documents.tools.libraries import Status, ToolContext
from services.documents.tools.scopes import PublishedShelf
from services.documents.tools.toolset import query_file
from tests.hashing import HashingEmbedder
from tests.searching import by_words
from tests.services.documents import cases
from tests.world import Shelf

QUESTIONS = (
    "What is on line 4 of shop.log?",
    "What happened to ord-58213?",
    "How many ERROR entries are there?",
    "What was logged at 10:04:00?",
    "When did the first FATAL entry appear?",
    "Why was a card declined?",
    "Which restart policy has ledger in deploy/compose.yaml?",
    "list all warnings",
)


@pytest.fixture
def store(tmp_path: Path) -> DocumentStore:
    return cases.new_store(tmp_path)


@pytest.mark.parametrize("question", QUESTIONS)
async def test_nothing_of_one_thread_is_found_in_another(store: DocumentStore, question: str) -> None:
    await cases.post(store, "shop.log", cases.LOG, cases.THREAD)
    await cases.post(store, "deploy/compose.yaml", cases.COMPOSE, cases.THREAD)
    await cases.post(store, "depot.log", cases.OTHER_LOG, cases.OTHER_THREAD)
    tools = cases.tools_over(store, embedder=HashingEmbedder())
    tool = tools[libraries.CASE]
    own = await tool.ask(cases.context(cases.THREAD), question)
    other = await tool.ask(cases.context(cases.OTHER_THREAD), question)
    assert {each.source for each in own.citations} <= {"shop.log", "deploy/compose.yaml"}
    assert {each.source for each in other.citations} <= {"depot.log"}
    for words in ("card expired", "8123 ms", "unless-stopped", "Charge for"):
        assert words not in tool.response(other)


async def test_whoever_cannot_see_the_thread_is_denied_before_anything_is_looked_up(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    tools = cases.tools_over(store)
    allowed = await tools[libraries.CASE].ask(cases.context(), "What is on line 4 of shop.log?")
    ctx = ToolContext(cases.GUILD, cases.THREAD, cases.MARA)
    denied = await tools[libraries.CASE].ask(ctx, "What is on line 4 of shop.log?")
    assert (allowed.status, denied.status) == (Status.OK, Status.DENIED)
    assert "expired" not in denied.answer
    assert not await tools[libraries.CASE].is_available(ctx)


async def test_a_thread_of_another_guild_is_denied(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    result = await cases.tools_over(store)[libraries.CASE].ask(cases.context(guild=8), "What is on line 4?")
    assert result.status is Status.DENIED


async def test_runbooks_of_one_user_are_never_shown_to_another(store: DocumentStore) -> None:
    await cases.write_runbook(store, cases.RUNBOOK, cases.FRAN)
    await cases.write_runbook(store, "# Restarts\n\nNever restart the ledger on Fridays.\n", cases.MARA, "Restarts")
    tools = cases.tools_over(store, embedder=HashingEmbedder())
    for asker, own, others in ((cases.FRAN, "ledgerctl", "Fridays"), (cases.MARA, "Fridays", "ledgerctl")):
        ctx = cases.context(None, asker, public=False)
        text = await tools[libraries.USER].run(ctx, "How do I restart the ledger?", k=20)
        assert own in text
        assert others not in text


async def test_runbooks_are_answered_from_in_public_only_when_their_owner_wants_that(store: DocumentStore) -> None:
    await cases.write_runbook(store, cases.RUNBOOK, cases.FRAN)
    private, sharing = cases.tools_over(store), cases.tools_over(store, sharing=[cases.FRAN])
    question = "How do I restart the ledger?"
    assert (await private[libraries.USER].ask(cases.context(), question)).status is Status.DENIED
    assert not await private[libraries.USER].is_available(cases.context())
    assert (await sharing[libraries.USER].ask(cases.context(), question)).status is Status.OK
    assert await sharing[libraries.USER].is_available(cases.context())


NOTES = {
    "team:refunds.txt": "--- QA ---\nid: qa_1\ntimestamp: 2031-03-04T10:00:00Z\n"
    "User: How many days do refunds take?\nTeam: Refunds take three days.\n\n"
}


async def test_what_the_team_has_told_is_for_its_guilds_and_named_teams(store: DocumentStore) -> None:
    tool = cases.tools_over(store, by_words(Shelf(NOTES)))[libraries.TEAM]
    question = "How many days do refunds take?"
    assert "three days" in await tool.run(cases.context(), question)
    nowhere = cases.context(guild=None)
    assert (await tool.ask(nowhere, question)).status is Status.INVALID
    assert not await tool.is_available(nowhere)
    assert "three days" in await tool.run(replace(nowhere, team_id="lamps"), question)


async def test_two_searches_never_share_an_answer(store: DocumentStore) -> None:
    """One may know what the other must not tell."""
    tools = cases.tools_over(store, by_words(Shelf(NOTES)))
    more = {**NOTES, "team:fraud.txt": NOTES["team:refunds.txt"].replace("Refunds take three days", "900 EUR or so")}
    insiders = replace(tools[libraries.TEAM], shelf=PublishedShelf(by_words(Shelf(more))))
    for tool, seen in ((insiders, True), (tools[libraries.TEAM], False)):
        assert ("900 EUR" in await tool.run(cases.context(), "How many days do refunds take?")) is seen


@pytest.mark.parametrize("asker_is_first", [True, False])
async def test_somebody_elses_file_of_the_same_name_is_never_taken_for_the_askers(
    store: DocumentStore, asker_is_first: bool
) -> None:
    posted = [(cases.LOG, cases.FRAN), (cases.OTHER_LOG, cases.MARA)]
    for text, uploader in posted if asker_is_first else posted[::-1]:
        await cases.post(store, "app.log", text, uploader=uploader)
    tool = cases.tools_over(store)[libraries.CASE]
    question = "What is the first ERROR in app.log?"
    for asker, own in ((cases.FRAN, "card expired"), (cases.MARA, "Collision"), (cases.FRAN, "card expired")):
        result = await tool.ask(cases.context(asker=asker), question)
        assert own in result.answer
        assert result.sources == ("app.log",)
        form = await query_file(tool, cases.context(asker=asker), {"file": "app.log", "level": ["ERROR"], "limit": 1})
        assert own in form.answer
    result = await tool.ask(cases.context(asker=cases.FRAN), "Which ERROR tells of a Collision?")
    assert result.citations[0].source == "app-2.log"
    assert "app-2.log:2" in result.answer
    result = await tool.ask(cases.context(asker=cases.FRAN), "What is the first ERROR in app-2.log?")
    assert "Collision" in result.answer
