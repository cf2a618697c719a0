"""What an answer costs beside the three calls of the model that it needs, with the real client over a socket.

    python -m benchmarks.answer_cost [--rounds 60] [--files 300] [--profile]

The model is a server in another process that answers at once. Ours asks a question about a knowledge base: gate,
search, select, load, generate, the checks of the draft. The bare baseline makes the same three requests with the same
client over the same connections, `ainvoke` and Pydantic and nothing else. They take turns, five answers each. CPU is
that of this process, threads included; the median of the rounds' ratios counts. Search is by words: what the embedding
of a question costs is shown beside, since it is a model run of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import openai
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_crynux import ChatCrynux  # pyright: ignore[reportMissingTypeStubs] (it ships no types)
from pydantic import BaseModel, SecretStr

from assembly.answering import (
    addresses_of,
    answer_rules,
    assistant_of,
    endpoint_settings,
    library_of,
    open_embedder,
    open_search,
    point_rules,
)
from assembly.running import collect_garbage_less_often, shorten_thread_switches
from benchmarks.heartbeat import Heartbeat, beating, not_held
from benchmarks.kb_update import fill
from benchmarks.verdicts import verdict
from model.conversations import Conversation, Role, Turn
from services.assistant.answering import AnswerResult, GatingResult, SelectionResult
from services.knowledge import IndexEntry
from services.knowledge.index_file import render
from services.llm import Endpoint, RedactingEndpoint, StructuredLLM, open_endpoint
from services.llm.endpoint import Reply, Request
from services.redaction import Redactor
from settings import Settings
from streams.answerer import Answerer
from streams.chain import ServerContext

MAX_TIMES = 1.4
ANSWERS = 5
"""Of one round."""
RESULTS: tuple[type[BaseModel], ...] = (GatingResult, SelectionResult, AnswerResult)
CALLS = len(RESULTS)


@dataclass
class Noting:
    """Notes what is asked of `inner`, until the baseline knows it."""

    inner: Endpoint
    requests: list[Request] = field(default_factory=list[Request])

    async def complete(self, request: Request) -> Reply:
        if len(self.requests) < CALLS:
            self.requests.append(request)
        return await self.inner.complete(request)

    async def aclose(self) -> None:
        await self.inner.aclose()


@contextmanager
def serving() -> Generator[str]:
    """The base URL of a model in another process."""
    command = [sys.executable, "-m", "tests.loopback.llm_server", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 (our own)
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


@dataclass
class Bare:
    """The same requests with nothing around the client."""

    model: ChatCrynux
    requests: list[Request]

    async def answer(self, _number: int) -> None:
        for request, result in zip(self.requests, RESULTS, strict=True):
            function = {
                "name": request.schema_name,
                "description": f"Gives the {request.schema_name}.",
                "parameters": request.schema,
            }
            body = {
                "vram_limit": self.model.vram_limit,
                "max_tokens": self.model.max_tokens,
                "tools": [{"type": "function", "function": function}],
                "tool_choice": {"type": "function", "function": {"name": request.schema_name}},
            }
            messages = [SystemMessage(request.system), HumanMessage(str(request.user[0]["text"]))]
            message = await self.model.ainvoke(messages, extra_body=body)
            result.model_validate(message.tool_calls[0]["args"])


def question(number: int) -> Conversation:
    text = f"How do I change option_{number % 97} of subject {number}, and why does it fail with E{number}?"
    return Conversation((Turn(Role.USER, text, asked_now=True),))


def prepared(root: Path, address: str, files: int) -> Settings:
    kb = root / "data" / "knowledge-base"
    fill(kb, files)
    names = sorted(path.relative_to(kb / "sources").as_posix() for path in (kb / "sources").rglob("*.md"))
    about = "Explains {}, its settings, its error messages and what to do about them."
    entries = (IndexEntry(f"kb:{name}", about.format(name)) for name in names)
    (kb / "index.txt").write_text(render(entries))
    llm = {"base_url": address, "api_key": "none", "model": "m"}
    return Settings.model_validate({"app": {"data_dir": "data"}, "ai_response": {"llm": llm}}).resolve_paths(root)


async def cpu_ms(answer: Callable[[int], Awaitable[object]], numbers: range) -> float:
    """Milliseconds of CPU for each."""
    before = time.process_time()
    for number in numbers:
        await answer(number)
    return (time.process_time() - before) * 1000 / len(numbers)


async def profile_of(answer: Callable[[int], Awaitable[object]]) -> None:
    with cProfile.Profile() as profile:
        await cpu_ms(answer, range(10 * ANSWERS))
    pstats.Stats(profile).sort_stats("tottime").print_stats(60)
    inside = r"^(?!.*site-packages).*/(services|operators|streams|clock)/"
    pstats.Stats(profile).sort_stats("cumtime").print_stats(inside, 60)


async def cpu_of(kinds: Mapping[str, Callable[[int], Awaitable[object]]], rounds: int) -> dict[str, list[float]]:
    """Of each round, in turns."""
    spent: dict[str, list[float]] = {name: [] for name in kinds}
    for turn in range(rounds):
        for name, each in kinds.items():
            spent[name].append(await cpu_ms(each, range(turn * ANSWERS, (turn + 1) * ANSWERS)))
    return spent


async def measured(
    settings: Settings, rounds: int, files: int, *, profiled: bool
) -> tuple[dict[str, float], Heartbeat]:
    """Milliseconds of CPU an answer in each way, and `times`: ours to bare. Beside it, whether the loop comes round."""
    asked = settings.ai_response.llm
    assert asked is not None
    told = endpoint_settings(asked)
    discreet = RedactingEndpoint(open_endpoint(told), Redactor(settings.secrets).documentation_text)
    noting, library = Noting(discreet), library_of(settings)
    async with open_embedder("packaged") as embedder, open_search(settings, library, None) as search:
        assistant = assistant_of(settings, search, StructuredLLM(noting, "function_calling"))
        ours = Answerer(
            ServerContext(
                assistant=assistant,
                library=library,
                search=search,
                addresses=addresses_of(settings),
                pointing=point_rules(settings),
            ),
            answer_rules(settings),
        )

        async def embed(number: int) -> None:
            if embedder is not None:
                await embedder.embed([question(number).turns[0].text])

        async def answer(number: int) -> None:
            result = await ours.generate_reply(question(number % files))
            assert result.should_reply
            assert result.debug["llm_calls"] == CALLS, result.debug

        await answer(0)
        async with openai.DefaultAsyncHttpxClient(timeout=told.timeout_seconds) as http:
            model = ChatCrynux(
                model=told.model,
                base_url=told.base_url,
                api_key=SecretStr("none"),
                timeout=told.timeout_seconds,
                max_retries=0,
                max_completion_tokens=told.max_tokens,
                use_responses_api=False,
                http_async_client=http,
            )
            bare = Bare(model, noting.requests)

            async def through_ours(_number: int) -> None:
                for request in noting.requests:
                    await noting.inner.complete(request)

            kinds = {"bare": bare.answer, "our client": through_ours, "embedding": embed, "ours": answer}
            for each in kinds.values():
                await cpu_ms(each, range(ANSWERS))
            gc.collect()
            gc.freeze()
            async with beating() as heart:
                for number in range(20 * ANSWERS):
                    await answer(number)
            spent = await cpu_of(kinds, rounds)
        if profiled:
            await profile_of(answer)
    await noting.aclose()
    times = statistics.median(ours / bare for ours, bare in zip(spent["ours"], spent["bare"], strict=True))
    return {name: statistics.median(each) for name, each in spent.items()} | {"times": times}, heart


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--files", type=int, default=300, help="of the knowledge base")
    parser.add_argument("--profile", action="store_true", help="say where the time of an answer goes")
    options = parser.parse_args()
    collect_garbage_less_often()  # as the bot does
    shorten_thread_switches()
    with serving() as address, tempfile.TemporaryDirectory() as folder:
        settings = prepared(Path(folder), address, options.files)
        found, heart = asyncio.run(measured(settings, options.rounds, options.files, profiled=options.profile))
    times = found.pop("times")
    for name, each in found.items():
        print(f"{name:<12} {each:6.2f} ms CPU an answer, {each / found['bare']:.2f} x bare")
    what = f"an answer costs {times:.2f} times its {CALLS} calls made bare, wanted at most {MAX_TIMES}"
    return verdict((times <= MAX_TIMES, what), not_held(f"questions to {options.files} files", heart))


if __name__ == "__main__":
    sys.exit(main())
