"""`--mcp`: opens the tools and serves them over stdio or HTTP."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from importlib.util import find_spec

from assembly import Unusable
from assembly.answering import addresses_of, conversation_of, library_of, open_answering, open_embedder, open_llm
from assembly.documents import libraries_of, store_of
from assembly.running import run_async, stop_signal, terminated_as_interrupted
from assembly.sources import temporary_index
from commands.arguments import DONE, requires_nats_extra
from commands.mcp_server.tools import NO_INDEX, FileTools, KnowledgeTools, QuestionBudget, ReadableThreads, ServedTool
from services.documents.tools import ToolModel, build
from services.llm import Budget, BudgetLimits, Spending, StructuredLLM, Usage, read_spent
from services.redaction import Redactor
from services.storage import DataFolder, temporary_folder
from services.telemetry import raise_descriptor_limit
from settings import McpSettings, Settings

AT_TERMINAL = "An assistant's program talks to --mcp over stdin and stdout (docs/mcp.md); Ctrl-C stops it"
NO_FILES_OVER_NATS = "mcp.channels: files of threads are not served over NATS; --mcp serves those of an --export"
MISSING = "--mcp needs the extra `mcp`: make extra-mcp"

log = logging.getLogger(__name__)


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--mcp`: serve until the client or a signal ends it. Returns the exit code.

    Raises:
        Unusable: the extra is missing, or the address or the token for HTTP cannot be used.
    """
    over_http = options.mcp == "http"
    if find_spec("mcp") is None:
        raise Unusable(MISSING)
    if over_http:
        check_http(settings.mcp)
    # A signal before serving ends the command as later ones do.
    with (
        suppress(KeyboardInterrupt),
        terminated_as_interrupted(),
        _place_of_copies(settings) as placed,
        temporary_index(placed) as indexed,
    ):
        run_async(serve_over_http(indexed) if over_http else serve_over_stdio(indexed))
    return DONE


@contextmanager
def _place_of_copies(settings: Settings) -> Generator[Settings]:
    """The settings with all data in a folder of this command alone, where NATS holds it; else as they are."""
    if settings.local:
        yield settings
        return
    with temporary_folder() as folder:
        yield settings.with_data_in(folder)


def _knowledge_followed(settings: Settings) -> AbstractAsyncContextManager[None]:
    """Follow what NATS holds. Raises Unusable: it cannot be used, or its extra is missing."""
    if settings.local:
        return nullcontext()
    with requires_nats_extra():
        from assembly.distributed import server_commands  # noqa: PLC0415 (nothing of it is imported for one process)
    return server_commands.knowledge_followed(settings)


def check_http(chosen: McpSettings) -> None:
    """Raises Unusable: there is no token, or no port."""
    if not chosen.token.get_secret_value():
        raise Unusable("mcp.token is empty, and --mcp http serves nobody without one: set it, best in .env")
    if not chosen.port:
        raise Unusable("mcp.port is 0: set it to a port such as 8765")


async def serve_over_stdio(settings: Settings) -> None:
    # Imported here: other commands need no extra, and should not wait for its import.
    from commands.mcp_server import protocol  # noqa: PLC0415

    with stop_signal() as stopped:
        if sys.stdin.isatty():
            print(AT_TERMINAL, file=sys.stderr)  # noqa: T201 (for who started it)
        async with open_tools(settings) as tools:
            await protocol.serve_stdio(protocol.make_server(tools, _redact(settings)), stopped)


async def serve_over_http(settings: Settings) -> None:
    """Serve over HTTP. Raises Unusable: the address cannot be listened on."""
    from commands.mcp_server import http, protocol  # noqa: PLC0415 (as above)

    chosen = settings.mcp
    raise_descriptor_limit()
    with stop_signal() as stopped, http.listen(chosen.host, chosen.port) as listener:
        async with open_tools(settings) as tools:
            server = protocol.make_server(tools, _redact(settings))
            print(f"MCP at {http.address_of(chosen.host, chosen.port)}; Ctrl-C stops it", flush=True)  # noqa: T201 (for who started it)
            await http.serve_http(server, chosen, listener, stopped)


def _redact(settings: Settings) -> Callable[[str], str]:
    return Redactor(settings.secrets).documentation_text


@asynccontextmanager
async def open_tools(settings: Settings) -> AsyncGenerator[Sequence[ServedTool]]:
    """Open the tools, none of which writes to the data folder. Raises Unusable: what NATS holds cannot be read."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        await enter(_knowledge_followed(settings))
        if not settings.kb.index_path.exists() and not await library_of(settings).index():
            log.warning("%s", NO_INDEX)
        question_budget = _question_budget(settings)
        usage = Usage(Spending(question_budget.daily))
        answering = await enter(open_answering(settings, budget=question_budget.daily, usage=usage))
        knowledge = KnowledgeTools(
            library=answering.server.library,
            search=answering.server.search,
            answerer=answering.answerer,
            addresses=addresses_of(settings),
            conversation=lambda question: conversation_of(settings, question),
            budget=None if answering.llm is None else question_budget,
        )
        files = await _file_tools(stack, settings, answering.llm, usage, question_budget)
        yield (*knowledge.tools(), *(() if files is None else files.tools()))


async def _file_tools(
    stack: AsyncExitStack, settings: Settings, asker: StructuredLLM | None, usage: Usage, budget: QuestionBudget
) -> FileTools | None:
    """Open the tools about files; `stack` closes them. Returns None if no thread is open to assistants."""
    chosen, llm = settings.documents, settings.ai_response.llm
    if not chosen.enabled or not settings.mcp.channels:
        return None
    if not settings.local:
        log.warning("%s", NO_FILES_OVER_NATS)
        return None
    enter = stack.enter_async_context
    if chosen.synthesis_llm is not None:
        llm = chosen.synthesis_llm
        asker = await enter(open_llm(settings, llm))
    copies = stack.enter_context(temporary_folder())
    folder = DataFolder(settings.app.data_dir)
    store = store_of(folder, chosen.store, read_only_with=copies)
    stack.push_async_callback(store.close)
    by_name = build(
        store=store,
        embedder=await enter(open_embedder(settings.document_embeddings)),
        model=None if asker is None else ToolModel(asker, "" if llm is None else llm.model, usage),
        configs=libraries_of(chosen),
        store_seconds=chosen.store_timeout_seconds,
        reply_language=settings.ai_response.reply_language,
    )
    threads = ReadableThreads(settings.mcp.channels, folder.posts)
    return FileTools(store=store, by_name=by_name, threads=threads, budget=None if asker is None else budget)


def _question_budget(settings: Settings) -> QuestionBudget:
    """Return the budget of questions. The daily limits are those of the bot, whose spending so far counts; spending
    here is not recorded. `mcp.questions_per_hour` replaces the hourly limit of a user of the bot.
    """
    limits, most = settings.limits, settings.mcp.questions_per_hour
    earlier = read_spent(DataFolder(settings.app.data_dir).usage)
    return QuestionBudget(
        daily=Budget(BudgetLimits(0, limits.answers_per_day, limits.tokens_per_day), earlier),
        hourly=Budget(BudgetLimits(most)),
    )
