"""The table of the slash commands, what they do, and how they are opened in a Discord client."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import discord
from discord.app_commands import Range

from assembly.answering import assistant_of, server_libraries, team_search
from assembly.documents import Documents
from assembly.forgetting import Privacy, not_too_often, team_files
from assembly.graph_parts import GraphParts
from assembly.teaching import LessonStore
from model.conversations import Conversation, Role, Turn
from model.messages import Attachment, Author
from model.outcomes import OutcomeKind, Reason, traits_of
from model.servers import Servers
from services.conversations import History, Phrases, ThreadAccess, Withdrawn, in_language, phrases
from services.discord import AttachmentFailed, Attachments, escape_markup
from services.discord.slash import (
    MAX_TEXT_CHARS,
    MAX_TITLE_CHARS,
    QUESTION,
    Call,
    Callback,
    CommandOption,
    CommandRefused,
    CommandRegistry,
    SlashCommand,
)
from services.documents import (
    FileRefused,
    NoSuchRunbook,
    Runbooks,
    TooManyRunbooks,
    TooManyWaiting,
    check_file,
    describe_failure,
    display_name,
    format_size,
    names_for,
    refusal_text,
    remove_file,
    title_of,
)
from services.documents.store import Document, State, StoreUnavailable, protocol
from services.llm import StructuredLLM
from services.redaction import Redactor
from services.search import language_of
from services.team import MAX_ANSWER_CHARS, MAX_QUESTION_CHARS, LessonForm, LessonRefused
from services.telemetry import number_of
from settings import Settings
from streams.answerer import AIResult, Answerer, RequestContext

log = logging.getLogger(__name__)

T = TypeVar("T")


_UNSAFE = re.compile(r"[^\w-]+")


@dataclass(frozen=True, slots=True)
class RunbookCommands:
    runbooks: Runbooks
    attachments: Attachments

    async def add(self, call: Call, file: Attachment | None, text: str | None, title: str | None) -> str:
        if (file is None) == (text is None):
            raise CommandRefused(phrases(call.language).file_or_text)
        if text is not None and title is None:
            raise CommandRefused(phrases(call.language).text_needs_title)
        try:
            kept = await self._keep(call, file, text, title)
        except Withdrawn as withdrawn:
            raise CommandRefused(phrases(call.language).withdrawn) from withdrawn
        except TooManyWaiting as refused:
            raise CommandRefused(phrases(call.language).runbooks_waiting) from refused
        except FileRefused as refused:
            raise CommandRefused(escape_markup(refusal_text(refused, call.language))) from refused
        except TooManyRunbooks as refused:
            raise CommandRefused(phrases(call.language).too_many_runbooks(refused.count, refused.most)) from refused
        except AttachmentFailed as error:
            log.warning("/kb add: %s", error)
            raise CommandRefused(phrases(call.language).not_downloaded) from error
        hidden = sum(kept.redactions.values())
        say = phrases(call.language)
        lines = [say.kept(runbook_line(kept))]
        if hidden:
            lines.append(say.secrets_hidden(hidden))
        if not self.runbooks.shown_in_threads(call.user_id):
            lines += [say.runbooks_private, say.visibility_changes_that]
        return " ".join(lines)

    async def _keep(self, call: Call, file: Attachment | None, text: str | None, title: str | None) -> Document:
        name = f"{_UNSAFE.sub('-', title or '').strip('-') or 'runbook'}.md"
        if file is not None:
            name = file.filename
            check_file(name, file.size, self.runbooks.limits)
        async with self.runbooks.turn(call.user_id) as token:
            data = (text or "").encode() if file is None else await self._download(file)
            with _store_errors(call):
                return await self.runbooks.add(call.user_id, name, data, (title or name).strip(), token)

    async def _download(self, file: Attachment) -> bytes:
        return await self.attachments.content(file, self.runbooks.limits.max_file_bytes)

    async def list(self, call: Call) -> str:
        with _store_errors(call):
            known = await self.runbooks.documents(call.user_id)
        say = phrases(call.language)
        if not known:
            return say.no_runbooks
        where = say.shown_in_threads if self.runbooks.shown_in_threads(call.user_id) else say.runbooks_private
        return "\n".join([say.your_runbooks, *(f"- {runbook_line(doc)}" for doc in known), "", where])

    async def remove(self, call: Call, title: str) -> str:
        try:
            with _store_errors(call):
                await self.runbooks.remove(call.user_id, title)
        except NoSuchRunbook as error:
            raise CommandRefused(phrases(call.language).no_such_runbook) from error
        return phrases(call.language).removed_title(escape_markup(title))

    async def forget(self, call: Call) -> str:
        with _store_errors(call):
            count = await self.runbooks.forget(call.user_id)
        say = phrases(call.language)
        return say.removed_title(say.removed_runbooks(count)) if count else say.no_runbooks

    async def show_in_threads(self, call: Call, where: str) -> str:
        """Allow (`thread`) or forbid (`private`) answers in threads that are taken from the caller's runbooks."""
        shown = where == "thread"
        with _store_errors(call):
            await self.runbooks.show_in_threads(call.user_id, shown=shown)
        say = phrases(call.language)
        return say.shown_in_threads if shown else say.runbooks_private


MAX_FAILED_LISTED = 20
"""The most files that could not be read which a list names, the newest."""


@dataclass(frozen=True, slots=True)
class EvidenceCommands:
    documents: Documents
    history: History
    viewing: ThreadAccess

    async def list(self, call: Call) -> str:
        documents = await self._documents(call)
        say = phrases(call.language)
        if not documents:
            return say.no_files
        names = names_for(documents, call.user_id)
        unlisted = {doc.doc_id for doc in documents if doc.state is State.FAILED}
        unlisted.difference_update([doc.doc_id for doc in documents if doc.doc_id in unlisted][-MAX_FAILED_LISTED:])
        lines = [f"- {file_line(doc, names[doc.doc_id], say)}" for doc in documents if doc.doc_id not in unlisted]
        return "\n".join([say.thread_files, *lines, *([f"- … +{len(unlisted)}"] if unlisted else ())])

    async def delete(self, call: Call, filename: str) -> str:
        wanted, name = filename.strip().casefold(), protocol.case_collection(str(call.place_id))
        documents = await self._documents(call)
        names = names_for(documents, call.user_id)
        called = [
            doc
            for doc in documents
            if wanted in {names[doc.doc_id].casefold(), display_name(names[doc.doc_id]).casefold()}
        ]
        if not called:
            raise CommandRefused(phrases(call.language).no_such_file)
        by = None if call.is_moderator else call.user_id
        meant = [doc for doc in called if by is None or is_poster(doc, by)]
        if not meant:
            raise CommandRefused(phrases(call.language).not_yours)
        with _store_errors(call):
            await self.documents.cancel_reads(
                lambda candidate: (
                    candidate.case_id == call.place_id
                    and by in {None, candidate.uploader_id}
                    and any(map(candidate.is_in, meant))
                )
            )
            for doc in meant:
                await remove_file(self.documents.store, self.documents.cases.tombstones, name, doc, by)
            self.documents.answers.purge(name)
        log.info("/evidence delete: thread %d: %s by %d", call.place_id, number_of(len(meant), "file"), call.user_id)
        return phrases(call.language).forgotten(escape_markup(filename.strip()))

    async def _documents(self, call: Call) -> tuple[Document, ...]:
        """List the thread's files that the caller may see, without removed ones."""
        if self.history.knows(call.place_id) and not self.history.place(call.place_id).is_thread:
            raise CommandRefused(phrases(call.language).not_a_thread)
        if not await self._can_view(call):
            log.info("/evidence: denied to %d in thread %d", call.user_id, call.place_id)
            return ()
        with _store_errors(call):
            described = await self.documents.store.describe(protocol.case_collection(str(call.place_id)))
        known = () if described is None else described.documents
        return tuple(doc for doc in known if doc.state is not State.FAILED or doc.origin.uploader_id is not None)

    async def _can_view(self, call: Call) -> bool:
        """Moderators see a private thread without being its member, and may delete its files."""
        seen_in = call.place_id if call.can_view else None
        return (call.can_view and call.is_moderator) or await self.viewing.can_view(
            call.user_id, call.place_id, seen_in=seen_in
        )


def is_poster(doc: Document, user_id: int) -> bool:
    return any(origin.uploader_id == user_id for origin in doc.origins)


def runbook_line(doc: Document) -> str:
    """Describe a runbook in a few words."""
    return f"{escape_markup(display_name(title_of(doc)))} ({doc.kind}, {format_size(doc.size)})"


def file_line(doc: Document, called: str, say: Phrases) -> str:
    """Describe a file of a thread, by the name that it is `called`; with its poster if that is another name."""
    name = escape_markup(display_name(called))
    match doc.state:
        case State.FAILED:
            return escape_markup(describe_failure(doc))
        case State.PENDING:
            return say.being_read(name)
        case _:
            poster = "" if called == doc.filename else f", <@{doc.origin.uploader_id}>"
            newer = "" if doc.current else f", {say.replaced_by_newer}"
            return f"{name} ({doc.kind}, {format_size(doc.size)}, {say.lines(doc.n_lines)}{poster}{newer})"


@contextmanager
def _store_errors(call: Call) -> Generator[None]:
    """Turn errors of the document store during the block into a reply to the caller."""
    try:
        yield
    except (StoreUnavailable, OSError) as error:
        log.error("documents: %s", error)  # noqa: TRY400 (one line for the operator)
        raise CommandRefused(phrases(call.language).unavailable) from error


def answer_text(result: AIResult, say: Phrases) -> str:
    """Return the reply to `/ask`: the answer, or a short reason why there is no answer."""
    if result.reply_text is not None:
        return result.reply_text
    return reason_text(result.debug["result"], result.debug["reason"], say)


def reason_text(result: OutcomeKind, reason: str | None, say: Phrases) -> str:
    """Return the sentence that tells the caller why a private question has no answer."""
    return say.failed if result == OutcomeKind.FAILED else getattr(say, traits_of(reason).private_reply)


class Answerers(NamedTuple):
    """The answerers of one server: one for everybody, and one for its team, which also sees its internal topics."""

    for_everybody: Answerer
    for_team: Answerer


def answerers_of(
    settings: Settings, parts: GraphParts, llm: StructuredLLM | None, opened: ExitStack
) -> Servers[Answerers]:
    """Make the answerers of each server. Their searches are closed with `opened`."""
    rules, personal_work, shared_search = parts.rules.answers, parts.services.in_flight.work, None
    internal = any(each.kb.internal_topics for each in settings.servers.values())
    libraries = server_libraries(settings, for_team=True) if internal else None
    found: dict[int | None, Answerers] = {}
    for guild_id, server in parts.servers.items():
        context = parts.services.servers[guild_id]
        everybody = team = Answerer(context, rules, personal_work)
        if libraries is not None:
            own, library = libraries[guild_id]
            shared = server.search.shared_search if settings.has_own_team(guild_id) else shared_search
            search = opened.enter_context(team_search(server.search, own, shared))
            shared_search = shared_search or search  # the first of `parts.servers` is the shared one
            assistant = assistant_of(settings, search, llm, guild_id)
            lookup = context.lookup and context.lookup.with_search(search)
            context = replace(context, assistant=assistant, library=library, search=search, lookup=lookup)
            team = Answerer(context, rules, personal_work)
        found[guild_id] = Answerers(everybody, team)
    return Servers(found)


def author_of(call: Call) -> Author:
    return Author(call.user_id, "", role_ids=call.role_ids)


class AnswerSlots:
    """Limits the answers to private questions: `at_once` at a time, and at most `max_waiting` others wait."""

    def __init__(self, at_once: int, max_waiting: int) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._room = at_once + max_waiting

    @property
    def is_full(self) -> bool:
        return self._room <= 0

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None]:
        """Wait for a slot, and hold it during the block."""
        self._room -= 1
        try:
            async with self._free:
                yield
        finally:
            self._room += 1


@dataclass(frozen=True, slots=True)
class QuestionCommands:
    """Private questions: each command runs the answer chain for its caller, and counts against the budget."""

    parts: GraphParts
    answerers: Servers[Answerers]
    slots: AnswerSlots

    async def ask(self, call: Call, question: str) -> str:
        result = await self.run("ask", call, question, Answerer.generate_reply)
        log.info("/ask: %s", result.debug["reason"] or result.debug["result"])
        return answer_text(result, phrases(call.language))

    async def run(
        self,
        name: str,
        call: Call,
        question: str,
        use: Callable[[Answerer, Conversation, RequestContext], Coroutine[Any, Any, T]],
    ) -> T:
        """Wait for a slot, and return what `use` makes of the question with the answerer for this caller. `name`: of
        the command, for the log. Raises CommandRefused: too many questions wait, or the caller has withdrawn this one.
        """
        if self.slots.is_full:
            log.info("/%s: %s", name, Reason.OVERLOADED)
            raise CommandRefused(reason_text(OutcomeKind.SKIPPED, Reason.OVERLOADED, phrases(call.language)))
        conversation = Conversation((Turn(Role.USER, question, asked_now=True),))
        from_team = self.parts.services.people.is_team(author_of(call), call.guild_id)
        here = self.answerers[call.guild_id]
        answerer = here.for_team if from_team else here.for_everybody
        context = RequestContext(call.guild_id, call.place_id, call.id, call.user_id, from_team, call.can_view)
        try:
            with self.parts.services.in_flight.work.handling({call.user_id}):
                async with self.slots.slot():
                    result = await use(answerer, conversation, context)
        except Withdrawn as withdrawn:
            raise CommandRefused(phrases(call.language).withdrawn) from withdrawn
        self.parts.state.changed.set()
        return result


@dataclass(frozen=True, slots=True)
class TeachCommand:
    """Has the team teach a question and its answer. What it says is for the team, and in English."""

    teaching: LessonStore

    async def teach(self, call: Call, question: str, answer: str) -> str:
        form = LessonForm(call.guild_id, question, answer, call.id, call.place_id, call.user_id)
        try:
            return (await self.teaching.teach(form)).text
        except LessonRefused as refused:
            raise CommandRefused(f"{refused} This is what you wrote:\n{question}\n\n{answer}") from refused


@dataclass(frozen=True, slots=True)
class SlashServices:
    """The services that callbacks of slash commands use.

    Attributes:
        forget: carries out `/privacy forget`.
        documents: None: the bot reads no files, and offers no command that needs them.
    """

    settings: Settings
    parts: GraphParts
    privacy: Privacy
    forget: Callback
    questions: QuestionCommands
    documents: Documents | None

    @property
    def teaching(self) -> TeachCommand:
        return TeachCommand(LessonStore(self.parts, Redactor(self.settings.secrets)))

    @property
    def runbooks(self) -> RunbookCommands:
        assert self.documents is not None  # noqa: S101 (the row says that it needs them)
        return RunbookCommands(self.documents.runbooks, self.documents.ingest_services.attachments)

    @property
    def evidence(self) -> EvidenceCommands:
        assert self.documents is not None  # noqa: S101 (as above)
        return EvidenceCommands(self.documents, self.parts.services.history, self.parts.services.viewing)


GROUPS = {
    "privacy": "What the bot may do with what you write.",
    "kb": "Your own runbooks, which the bot answers you from.",
    "evidence": "The files of this thread that the bot can search.",
}
"""The description of each command group, by the first word of its commands."""

Row: TypeAlias = SlashCommand[SlashServices]

COMMANDS: Mapping[str, Row] = {
    "ask": Row(
        "Ask the bot; only you see the answer.", lambda services: services.questions.ask, {"question": QUESTION}
    ),
    "teach": Row(
        "Teach the bot a question and its answer (for the team).",
        lambda services: services.teaching.teach,
        {
            "question": CommandOption("As somebody would ask it.", Range[str, 1, MAX_QUESTION_CHARS]),
            "answer": CommandOption("As it is quoted to whoever asks this.", Range[str, 1, MAX_ANSWER_CHARS]),
        },
        is_unredacted=True,  # the secrets are taken out later, and counted
        team_only=True,
        form_title="Teach the bot",
    ),
    "privacy opt-out": Row(
        "Leave me alone: read, learn and record nothing that I write.",
        lambda services: services.privacy.opt_out,
        always_runs=True,
    ),
    "privacy opt-in": Row("Count me in again.", lambda services: services.privacy.opt_in, always_runs=True),
    "privacy forget": Row("Remove what the bot has kept of me.", lambda services: services.forget, always_runs=True),
    "kb add": Row(
        "Keep a runbook: a file, or text.",
        lambda services: services.runbooks.add,
        {
            "file": CommandOption("A text file, such as a .md or .txt.", discord.Attachment, required=False),
            "text": CommandOption(
                "The runbook itself, where it is short.", Range[str, 1, MAX_TEXT_CHARS], required=False
            ),
            "title": CommandOption(
                "What it is called; without one, the name of the file.",
                Range[str, 1, MAX_TITLE_CHARS],
                required=False,
            ),
        },
        needs_documents=True,
        is_unredacted=True,
    ),
    "kb list": Row("Show your runbooks.", lambda services: services.runbooks.list, needs_documents=True),
    "kb remove": Row(
        "Remove one of your runbooks.",
        lambda services: services.runbooks.remove,
        {"title": CommandOption("Its title, as /kb list shows it.", str)},
        needs_documents=True,
        is_unredacted=True,
    ),
    "kb forget": Row("Remove all of your runbooks.", lambda services: services.runbooks.forget, needs_documents=True),
    "kb visibility": Row(
        "Say where answers may be taken from your runbooks.",
        lambda services: services.runbooks.show_in_threads,
        {
            "where": CommandOption(
                "private: only in /ask, where nobody else reads. thread: in your threads as well.",
                Literal["private", "thread"],
            )
        },
        needs_documents=True,
    ),
    "evidence list": Row(
        "Show the files of this thread.", lambda services: services.evidence.list, needs_documents=True
    ),
    "evidence delete": Row(
        "Have the bot forget a file of this thread.",
        lambda services: services.evidence.delete,
        {"filename": CommandOption("Its name, as /evidence list shows it.", str)},
        needs_documents=True,
        is_unredacted=True,
    ),
}
"""Every slash command, in the order in which Discord and docs/operating.md list them."""


def callback_of(name: str, command: Row, services: SlashServices) -> Callback:
    """Make the function that carries a command out.

    Commands with text are refused to people who opted out, and their callback gets texts without secrets and a `Call`
    in the language of the text. `is_unredacted` switches this off. Raises TypeError: the callback does not take the
    options of the row.
    """
    callback = command.make_callback(services)
    _, *takes = signature(callback).parameters
    if takes != [*command.options]:
        raise TypeError(f"/{name}: its options are {[*command.options]}, its callback takes {takes}")
    if command.is_unredacted or not any(option.is_text for option in command.options.values()):
        return callback
    redactor = Redactor(services.settings.secrets)

    async def screened(call: Call, **given: Any) -> str:
        texts = {key: str(given[key]) for key, option in command.options.items() if option.is_text and given[key]}
        written = "\n".join(texts.values())
        if services.parts.state.is_opted_out(call.user_id, written):
            raise CommandRefused(phrases(call.language).not_read)
        chosen = services.parts.servers[call.guild_id].settings.ai_response.reply_language
        language = in_language(chosen, language_of(written))
        clean = {key: redactor.text(text.strip()) for key, text in texts.items()}
        return await callback(replace(call, language=language), **given | clean)

    return screened


@asynccontextmanager
async def slash_commands(
    client: discord.Client,
    settings: Settings,
    parts: GraphParts,
    llm: StructuredLLM | None,
    documents: Documents | None = None,
    forget: Callable[[Call], Coroutine[Any, Any, str]] | None = None,
) -> AsyncGenerator[CommandRegistry]:
    """The commands in a client, until the end of the block; `CommandRegistry.register_in` registers them in a guild.

    `llm`: the model that answers; None: the extractive assistant answers. `forget`: carries out `/privacy forget`;
    None: this process, which holds the data folder, does. Unless `ai_response.reply_language` fixes one, replies are in
    the language that Discord speaks to the caller.
    """
    reply_language = settings.ai_response.reply_language

    def speaks(locale: str) -> Phrases:
        return phrases(in_language(reply_language, locale))

    with ExitStack() as opened:
        privacy = Privacy(parts, team_files(parts.servers), documents, settings=settings)
        rules = parts.rules.answers
        slots = AnswerSlots(rules.max_concurrent_answers, rules.max_waiting_answers)
        questions = QuestionCommands(parts, answerers_of(settings, parts, llm, opened), slots)
        limited = not_too_often(forget or privacy.forget)
        services = SlashServices(settings, parts, privacy, limited, questions, documents)
        offered = {
            name: (command, callback_of(name, command, services))
            for name, command in COMMANDS.items()
            if documents is not None or not command.needs_documents
        }

        def is_team(call: Call) -> bool:
            return parts.services.people.is_team(author_of(call), call.guild_id)

        commands = CommandRegistry(client, offered, GROUPS, speaks, is_team)
        try:
            yield commands
        finally:
            await commands.close()
