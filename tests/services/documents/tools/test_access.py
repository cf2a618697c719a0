"""Who may ask what, where."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.documents.results import Status, ToolContext
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import Collection
from services.documents.tools import libraries
from services.documents.tools.toolset import build
from tests.hashing import HashingEmbedder
from tests.services.documents import cases

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
    assert not await tools[libraries.CASE].offered(ctx)


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
    assert not await private[libraries.USER].offered(cases.context())
    assert (await sharing[libraries.USER].ask(cases.context(), question)).status is Status.OK
    assert await sharing[libraries.USER].offered(cases.context())


async def team_notes(store: DocumentStore, guild: int = cases.GUILD) -> None:
    collection = Collection(f"team_{guild}_kb", "team", str(guild), guild)
    await store.add(
        collection,
        [
            cases.new("refunds.md", "# Refunds\n\nRefunds take three days.\n", topic="refunds"),
            cases.new(
                "fraud.md", "# Fraud\n\nRefunds above 900 EUR are checked by Mara.\n", topic="fraud", internal="true"
            ),
        ],
    )


@pytest.mark.parametrize(
    ("team", "public", "seen"), [(False, True, False), (False, False, False), (True, False, True), (True, True, False)]
)
async def test_internal_topics_are_for_the_team_where_nobody_else_reads(
    store: DocumentStore, team: bool, public: bool, seen: bool
) -> None:
    await team_notes(store)
    ctx = cases.context(public=public, team=team)
    text = await cases.tools_over(store)[libraries.TEAM].run(
        ctx, "How many days do refunds take, and who checks refunds?", k=10
    )
    assert ("900 EUR" in text) is seen
    assert "three days" in text


async def test_a_topic_is_hidden_as_soon_as_that_is_configured_whatever_is_indexed_still(store: DocumentStore) -> None:
    """Between a start with another configuration and the end of indexing, somebody may ask."""
    await team_notes(store)
    await store.add(
        Collection(f"team_{cases.GUILD}_kb", "team", str(cases.GUILD), cases.GUILD),
        [cases.new("refunds-2.md", "# Refunds\n\nRefunds of gift cards take a year.\n", topic="refunds-2")],
    )
    tools = build(store=store, internal_topics=["refunds"])
    tool, question = tools[libraries.TEAM], "How many days do refunds take?"
    outsider, insider = cases.context(), cases.context(public=False, team=True)
    assert (await tool.ask(outsider, question)).status is Status.NOT_INDEXED
    assert not await tool.offered(outsider)
    assert "three days" in await tool.run(insider, question)
    assert await tool.offered(insider)


async def test_what_the_team_may_see_is_not_kept_for_others(store: DocumentStore) -> None:
    await team_notes(store)
    tool = cases.tools_over(store)[libraries.TEAM]
    assert "900 EUR" in await tool.run(
        cases.context(public=False, team=True), "How many days do refunds take, and who checks refunds?"
    )
    assert "900 EUR" not in await tool.run(
        cases.context(public=False), "How many days do refunds take, and who checks refunds?"
    )


async def test_the_notes_of_one_guild_are_not_for_another(store: DocumentStore) -> None:
    await team_notes(store)
    tool = cases.tools_over(store)[libraries.TEAM]
    assert (await tool.ask(cases.context(guild=8), "refunds?")).status is Status.NOT_INDEXED
    pretending = ToolContext(8, cases.THREAD, cases.FRAN, team_id=str(cases.GUILD))
    assert (await tool.ask(pretending, "refunds?")).status is Status.DENIED
    assert (await tool.ask(cases.context(guild=None), "refunds?")).status is Status.INVALID
