"""One replay of a recording through the whole graph, as `--replay` wires it, with fakes for model and disk."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from assembly.data_folder import read_state
from assembly.graph_parts import DiscordAPI, GraphParts, ServerParts, assemble, capture_parts
from assembly.running import collect_garbage_less_often, play
from benchmarks.measuring import Digest, Figures
from benchmarks.pauses import ANSWER, QUIET_SECONDS, SOURCE_ID, SOURCE_TEXT, read, think
from clock import VirtualLoop, now
from model.conversations import Conversation
from model.outcomes import Outcome, OutcomeKind, Result
from model.servers import Servers
from services.assistant.answering import AnswerResult, GatingResult, M, SelectionResult
from services.assistant.inquiry import CaptureJob
from services.assistant.prompts import Choice, ConfiguredTasks
from services.discord.protocols import DryRunPoster
from services.documents.tools.toolset import Toolset
from services.knowledge import LibrarySearch
from services.knowledge.index_file import IndexEntry
from services.knowledge.library import Source
from services.llm.prompting import Prompt
from services.llm.usage import Usage
from services.search.passage_store import StoredPassage
from services.search.retrieval import NOTHING, Hit, SearchResult
from settings import AnswerSettings, DiscordSettings, Settings
from sinks.results import OrderedOutcomes, ResultCounts, render
from streams.graph import graph
from streams.recording import first_time

INDEX = (IndexEntry(f"kb:{SOURCE_ID}", "How to set it up."), IndexEntry("kb:faq.md", "What people ask."))


class YesAssistant:
    async def gate(
        self, conversation: Conversation, usage: Usage, *, files: Sequence[str] = (), addressed: bool = False
    ) -> GatingResult:
        await think()
        usage.add("gate", prompt_tokens=400, completion_tokens=30)
        return GatingResult(is_question=True, is_answerable=True, rewrite_query=None, reason="asks how")

    async def select(
        self,
        query: str,
        request: str,
        choices: Sequence[Choice],
        max_sources: int,
        usage: Usage,
        *,
        files: Sequence[str] = (),
    ) -> SelectionResult:
        await think()
        usage.add("select", prompt_tokens=400, completion_tokens=10)
        return SelectionResult(selected_source_ids=[choices[0].id])

    async def generate(
        self,
        conversation: Conversation,
        query: str,
        sources: Sequence[Source],
        usage: Usage,
        *,
        max_chars: int,
        was_too_long: bool = False,
        toolset: Toolset | None = None,
    ) -> AnswerResult:
        await think()
        usage.add("generate", prompt_tokens=900, completion_tokens=80)
        return AnswerResult(answer=ANSWER, citations=[sources[0].id])

    async def ask(
        self, step: str, prompt: Callable[[ConfiguredTasks], Prompt], result: type[M], usage: Usage
    ) -> M | None:
        await think()
        usage.add(step, prompt_tokens=900, completion_tokens=10)
        return None


class FindsNothing:
    """Search has benchmarks of its own."""

    async def find(self, query: str) -> SearchResult:
        return NOTHING

    async def section(self, kept: StoredPassage) -> Sequence[StoredPassage]:
        return [kept]

    async def rerank(self, hits: Sequence[Hit], query: str) -> Sequence[Hit]:
        return hits

    async def passages_of(self, source_id: str, query: str) -> Sequence[str]:
        return []


class OneShelf:
    async def index(self) -> Sequence[IndexEntry]:
        return INDEX

    async def load(self, source_id: str) -> Source:
        await read()
        return Source(source_id, SOURCE_TEXT)


async def archive(job: CaptureJob) -> Outcome:
    await think()
    return Outcome(job.part, now(), OutcomeKind.CAPTURED, llm_calls=1)


def ours(path: Path, team: frozenset[int]) -> Figures:
    digest = Digest()
    collect_garbage_less_often()
    start = first_time(path)
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=lambda: VirtualLoop(start)) as runner,
    ):
        runner.run(_replay(path, settings(Path(folder), team), digest))
    return digest.figures()


def settings(folder: Path, team: frozenset[int]) -> Settings:
    """The defaults, with the four thinking steps that the baseline has."""
    return Settings(
        discord=DiscordSettings(team_member_ids=team, message_batch_wait_seconds=QUIET_SECONDS),
        ai_response=AnswerSettings(enable_verification=True),
    ).resolve_paths(folder)


async def _replay(path: Path, configured: Settings, digest: Digest) -> None:
    tally = ResultCounts()
    in_order = OrderedOutcomes(lambda outcome: digest.add(f"{outcome.result}", render(outcome)))
    parts = assembled(configured, [tally.add, in_order.add])
    assert await play(
        path,
        through=lambda events: graph(events, parts.services, parts.sinks, parts.rules),
        in_flight=parts.services.in_flight,
        counts=tally,
    )
    assert tally.adds_up
    digest.counts["ignored"] = tally.ignored.total()


def assembled(configured: Settings, results: Sequence[Callable[[Result], object]]) -> GraphParts:
    """As the command does it; nothing touches the disk while it runs."""
    state = read_state(configured, is_durable=False)
    parts = assemble(
        configured,
        state=state,
        servers=Servers(
            {
                None: ServerParts(
                    settings=configured,
                    assistant=YesAssistant(),
                    library=OneShelf(),
                    search=cast("LibrarySearch", FindsNothing()),
                    captures=capture_parts(configured, state),
                )
            }
        ),
        api=DiscordAPI(poster=DryRunPoster()),
        results=results,
    )
    return replace(parts, sinks=replace(parts.sinks, archive=archive))
