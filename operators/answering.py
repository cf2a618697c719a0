"""The steps of an answer. Each function makes one: it takes an `Inquiry` and returns it with more known, or an
`Outcome`. `model.steps.STEPS` says in which order they run. `operators.pointing` has the step for questions without
an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from clock import now
from model.conversations import Role
from model.messages import AuthorType
from model.outcomes import Outcome, Reason
from operators.step import TookTooLong
from services.assistant import (
    Addresses,
    Choice,
    Inquiry,
    Unanswered,
    VerificationResult,
    linkable_texts,
    prompts,
    resolve_citations,
    resolve_ids,
    skip_outcome,
    trusted_text,
)
from services.knowledge import SourceUnavailable, excerpts
from services.llm import LLMError, PromptRefused, choose_images, load_images
from services.search import Level, is_question
from services.telemetry import add_people, number_of

if TYPE_CHECKING:
    from model.conversations import Conversation, Image
    from model.messages import Message, Part
    from services.assistant import (
        AnswerResult,
        Assistant,
        ConfiguredTasks,
    )
    from services.conversations import Context, History, InFlight, Posts, TypingTracker
    from services.discord import Access
    from services.documents import Lookup
    from services.knowledge import IndexEntry, Library, Search, Source
    from services.llm import ImageSource, Limiter, Prompt
    from services.search import SearchResult, StoredPassage

AnswerStep: TypeAlias = Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Unanswered | Outcome]]
Guess: TypeAlias = Callable[[Inquiry], Coroutine[Any, Any, Inquiry | None]]
"""Finds the sources of an inquiry without waiting for the gate; None: it found none."""
ShowSections: TypeAlias = Callable[[Inquiry, Sequence[str]], Coroutine[Any, Any, Inquiry | None]]
"""Gives an inquiry sections of its sources, by their headings; None: there are none."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRules:
    """Limits of answering, and what its optional steps need. Each field except `thread_reuse_seconds` is the
    `ai_response` setting of the same name.
    """

    graph_timeout_seconds: float
    max_concurrent_answers: int
    max_waiting_answers: int
    max_sources: int
    max_index_entries: int
    max_source_chars: int
    max_answer_chars: int
    require_citations: bool
    enable_verification: bool
    speculate: bool
    thread_reuse_seconds: float


def optional_steps(rules: AnswerRules) -> Mapping[str, Callable[[Assistant], AnswerStep]]:
    """Return the steps that a setting switches on, by their names: each is made with the assistant of a server."""
    steps: dict[str, Callable[[Assistant], AnswerStep]] = {}
    if rules.enable_verification:
        steps["verify"] = verify
    return steps


def gather(
    context: Context,
    history: History,
    posts: Posts,
    in_flight: InFlight,
    images: ImageSource | None,
    thread_reuse_seconds: float,
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Give an inquiry its conversation: a thread's history, or the messages that it replies to. With `images`, those of
    the question come first, then the newest, as many as one call may show; others stay placeholders, as do those that
    cannot be used.

    A question in a channel is answered in the thread that the bot opened for the same asker a moment ago, if there is
    one that no team member has joined.

    Raises:
        LookupFailed: Discord could not be asked.
        ImageFailed: an image of the asker's cannot be loaded now.
    """

    async def gathered(inquiry: Inquiry) -> Inquiry:
        part = inquiry.part
        if part.place.is_thread:
            around = await context.thread(part.place)
            reply_place_id = part.place.id
        else:
            around, reply_place_id = await reusable_thread(inquiry)
            if reply_place_id is not None:
                in_flight.move_to(part, reply_place_id)
        messages = {message.id: message for message in around}
        messages |= {message.id: message for message in await context.replies(part.messages)}
        # Later messages of the person belong to the next part.
        asked = frozenset(part.message_ids)
        ordered = [
            message
            # Again without withheld ones: Discord was asked meanwhile.
            for message in context.readable(messages)
            if message.author.id not in inquiry.left_out
            and (message.id in asked or message.id < part.last.id or message.author.id != part.author.id)
        ]
        add_people(message.author.id for message in ordered)
        loaded = {} if images is None else await loaded_images(images, await with_user_attachments(ordered), part)
        conversation = await context.conversation(ordered, asked, loaded)
        return inquiry._replace(conversation=conversation, messages=tuple(ordered), reply_place_id=reply_place_id)

    async def reusable_thread(inquiry: Inquiry) -> tuple[Sequence[Message], int | None]:
        part = inquiry.part
        since = part.messages[0].at - thread_reuse_seconds
        thread_id = posts.reusable_thread(part.place.id, part.author.id, since)
        place = None if thread_id is None else await history.find_place(thread_id)
        if place is None or place.locked:
            return (), None
        messages = await context.thread(place)
        for message in messages:
            if message.channel_id == place.id and await context.author_type(message) is AuthorType.TEAM_MEMBER:
                return (), None
        return messages, place.id

    async def with_user_attachments(messages: Iterable[Message]) -> list[Message]:
        return [m for m in messages if m.attachments and await context.author_type(m) is AuthorType.COMMUNITY_USER]

    async def loaded_images(
        source: ImageSource, messages: Sequence[Message], part: Part
    ) -> dict[int, tuple[Image, ...]]:
        asked = frozenset(part.message_ids)
        ranked = sorted(messages, key=lambda message: (message.id in asked, message.id), reverse=True)
        chosen = choose_images(each for message in ranked for each in message.attachments)
        return {
            m.id: await load_images(
                source,
                [each for each in m.attachments if each.id in chosen],
                # An answer must not depend on what others post.
                required=m.author.id == part.author.id,
            )
            for m in messages
        }

    return gathered


def permit(access: Access | None) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Let an inquiry pass if its answer could be posted, before a model is paid for it; else end it with `CANNOT_POST`.
    A channel is named in the log once, until posting works there again. Without `access` all pass.
    """
    warned: set[int] = set()

    async def permitted(inquiry: Inquiry) -> Inquiry | Outcome:
        place = inquiry.part.place
        obstacle = None if access is None else access.why_not_allowed(place.channel_id, inquiry.reply_place_id)
        if obstacle is None:
            warned.discard(place.channel_id)
            return inquiry
        if place.channel_id not in warned:
            warned.add(place.channel_id)
            log.warning("questions in channel %d stay unanswered: %s", place.channel_id, obstacle)
        return skip_outcome(inquiry, Reason.CANNOT_POST)

    return permitted


MAX_EARLIER = 3
"""At most this many earlier questions, with their answers, help to understand a follow-up."""


def announce(lookup: Lookup, *, public: bool) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Tell the gate which files and runbooks can be searched, without waiting for any that are still being read.

    `public`: others than the asker read the answer.
    """
    # Where nobody has asked the bot, it says nothing of its own accord that the asker has written.
    unaddressed = lookup.without_runbooks() if public else lookup

    async def announced(inquiry: Inquiry) -> Inquiry | Outcome:
        toolset = await (lookup if inquiry.addressed else unaddressed).toolset(
            inquiry.part,
            inquiry.case_id,
            public=public,
            opened=inquiry.reply_place_id is not None,
            in_view=inquiry.asker_can_view,
            messages=inquiry.messages,
            earlier=earlier_in(inquiry.conversation),
        )
        if toolset is None:
            return inquiry
        inquiry.decisions["files"] = list(toolset.files)
        return inquiry._replace(toolset=toolset)

    return announced


async def prepare_tools(inquiry: Inquiry) -> Inquiry | Unanswered:
    """Wait for files that are still being read, and drop tools that have nothing to search (the step `retrieve`)."""
    toolset = inquiry.toolset
    if toolset is None:
        return inquiry
    await toolset.prepare()
    inquiry.decisions["tools"] = [tool.name for tool in toolset.tools]
    if not toolset.tools:
        inquiry = inquiry._replace(toolset=None)
        if not inquiry.selected and not inquiry.conversation.images:
            return Unanswered(inquiry, Reason.NO_SOURCES)
    return inquiry


def earlier_in(conversation: Conversation) -> tuple[tuple[str, str], ...]:
    """Return questions and answers before the part that is answered, oldest first; the last may have no answer."""
    pairs: list[tuple[str, str]] = []
    asked = ""
    for turn in conversation.turns:
        if turn.asked_now:
            continue
        if turn.role is Role.USER:
            asked = turn.text
        elif asked:
            pairs.append((asked, turn.text))
            asked = ""
    if asked:
        pairs.append((asked, ""))
    return tuple(pairs[-MAX_EARLIER:])


def without_others_if_refused(ask: AnswerStep) -> AnswerStep:
    """Run a step that shows the conversation to a model. When the model refuses the prompt, as for a word that its
    provider allows nobody, the step is run once more with the turns of the asker and the team alone, and so are those
    that follow: nobody can keep others from an answer by what they write.

    conversations  --ada eve tess----------|
    asked about    --ada eve tess--ada tess|      the first prompt is refused
    """

    async def asked(inquiry: Inquiry) -> Inquiry | Unanswered | Outcome:
        try:
            return await ask(inquiry)
        except PromptRefused as error:
            conversation = inquiry.conversation.of_asker_and_team
            if conversation == inquiry.conversation:
                raise
            log.info("asked again without what others have said: %s", error)
            return await ask(inquiry._replace(conversation=conversation))

    return asked


def speculative_selection(select: AnswerStep, load: AnswerStep) -> Guess:
    """Run select and load on the question in the person's own words, without waiting for the gate. Returns the inquiry
    with its sources, or None if nothing was selected or a step ended it; that step then runs again in its turn and
    reports why.

        in step        gate ────── select ────── load ── generate …
        speculating    gate ────── generate …
                       select ─ load

    If the gate rewrites the question, the guess counts only if it has the page that ranks first for the new words; else
    sources are selected anew.
    """

    async def guess(inquiry: Inquiry) -> Inquiry | None:
        # The guess gets its own `decisions`; only the real steps write to the inquiry's.
        found: Inquiry | Unanswered | Outcome = inquiry._replace(query=inquiry.request, decisions={})
        for step in (select, load):
            if isinstance(found, Inquiry):
                found = await step(found)
        return found if isinstance(found, Inquiry) and found.selected else None

    return guess


@contextlib.asynccontextmanager
async def running_task(work: Coroutine[Any, Any, Inquiry | None]) -> AsyncGenerator[asyncio.Task[Inquiry | None]]:
    """Run `work` as a task while the block runs; on leaving the block, cancel it and wait for its end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def await_guess(task: asyncio.Task[Inquiry | None]) -> Inquiry | None:
    """Return the result of the speculation, or None if it failed."""
    try:
        return await task
    except Exception as error:  # noqa: BLE001 (the step itself will meet and report it)
        log.info("speculation: %s: %s; selected in turn", type(error).__name__, error)
        return None


NOTED_PAGES = 5
"""At most this many of the pages found are recorded in `decisions`, best first."""


def gate(assistant: Assistant, budget: Limiter, chain_seconds: float, guess: Guess | None = None) -> AnswerStep:
    """Pass answerable questions, with the query to search for.

    The chain's `chain_seconds` begin here. They include the budget check, which may ask another process. `guess`: runs
    while the gate decides.
    """

    async def gated(inquiry: Inquiry) -> Inquiry | Unanswered | Outcome:
        user_id, at = inquiry.part.author.id, now()
        inquiry.token.expire_in(chain_seconds, TookTooLong(f"the answer took longer than {chain_seconds:g} s"))
        # One that begins again, as others may cause, was counted when it first began.
        exhausted = None if inquiry.is_counted else await budget.begin_chain(user_id, at)
        if exhausted is not None:
            inquiry.token.close()
            # Most of a chat is not meant for the bot, and must not be kept as a question.
            if not (inquiry.addressed or "?" in inquiry.request or is_question(inquiry.request)):
                inquiry.decisions["gate"] = {"question": False}
            if budget.first_time(exhausted, user_id, at):
                log.warning("%s is used up: nothing is answered until there is room again", exhausted)
            return skip_outcome(inquiry, Reason.BUDGET)
        if guess is None:
            return await decide(inquiry)
        async with running_task(guess(inquiry)) as guessing:
            item = await decide(inquiry)
            return item._replace(speculation=await await_guess(guessing)) if isinstance(item, Inquiry) else item

    async def ask_gate(inquiry: Inquiry) -> Inquiry | Unanswered | Outcome:
        result = await assistant.gate(
            inquiry.conversation, inquiry.usage, files=inquiry.files, addressed=inquiry.addressed
        )
        answerable = result.is_question and result.is_answerable
        inquiry.decisions["gate"] = {"question": result.is_question, "answerable": answerable, "reason": result.reason}
        log.info("gate: answerable=%s reason=%r", answerable, result.reason)
        if not result.is_question:
            return skip_outcome(inquiry, Reason.NOT_ANSWERABLE)
        asked = inquiry._replace(query=(result.rewrite_query or "").strip() or inquiry.request)
        return asked if answerable else Unanswered(asked, Reason.NOT_ANSWERABLE)

    decide = without_others_if_refused(ask_gate)
    return gated


def select(assistant: Assistant, library: Library, search: Search, max_sources: int, max_entries: int) -> AnswerStep:
    """Choose at most `max_sources` sources from the index, of which the `max_entries` that rank best are offered.

    Ids that are not in the index are logged and dropped: only what is indexed can ever be loaded. The guess of
    `speculative_selection` is taken over if it fits the question as the gate has put it.

    inquiries   --g1----g2----g3--|      the words of g2 find another page first; g3 was not guessed
    out         --q1-----q2----q3-|
    """

    async def selected(inquiry: Inquiry) -> Inquiry | Unanswered:
        if inquiry.speculation is not None:
            guess, inquiry = inquiry.speculation, inquiry._replace(speculation=None)
            if guess.query == inquiry.query or await finds_first(guess.selected, inquiry.query):
                return taken_over(guess, inquiry)
        index = await library.index()
        found = await search.find(inquiry.query)
        choices = best_choices(index, found, max_entries)
        named_ids: list[str] = []
        if choices:
            result = await assistant.select(
                inquiry.query, inquiry.request, choices, max_sources, inquiry.usage, files=inquiry.files
            )
            named_ids = result.selected_source_ids
        known, invented = resolve_ids(named_ids, [entry.id for entry in index])
        if invented:
            dropped = number_of(len(invented), "id that is in no index was", "ids that are in no index were")
            log.warning("select: %s dropped: %.200r", dropped, invented)
        chosen = tuple(known[:max_sources])
        if inquiry.usage.calls:  # a model has chosen
            chosen = add_best_page(chosen, found)
        ranked = [(hit.source_id, round(hit.score, 2)) for hit in found.pages[:NOTED_PAGES]]
        inquiry.decisions["select"] = {"offered": len(choices), "ranked": ranked, "selected": list(chosen)}
        log.info("select: %d of %d entries", len(chosen), len(choices))
        if not chosen and not inquiry.conversation.images and inquiry.toolset is None:
            return Unanswered(inquiry, Reason.NO_SOURCES)
        return inquiry._replace(selected=chosen)

    async def finds_first(selected: Sequence[str], query: str) -> bool:
        pages = (await search.find(query)).pages
        return bool(pages) and pages[0].source_id in selected

    def taken_over(guess: Inquiry, inquiry: Inquiry) -> Inquiry:
        inquiry.decisions["select"] = {**guess.decisions["select"], "speculated": True}
        if guess.query != inquiry.query:
            return inquiry._replace(selected=guess.selected)
        inquiry.decisions["load"] = guess.decisions["load"]
        return inquiry._replace(selected=guess.selected, sources=guess.sources)

    return selected


def add_best_page(chosen: Sequence[str], found: SearchResult) -> tuple[str, ...]:
    """Add the page that search ranks first by its text to what a model chose by descriptions, which do not say
    everything. If the model chose nothing, the page is added only if it surely has an answer.
    """
    wanted = found.level is Level.ANSWER or (bool(chosen) and found.level is Level.POINT)
    first = [found.hits[0].source_id] if found.hits and wanted else []
    return tuple(dict.fromkeys([*chosen, *first]))


def best_choices(index: Sequence[IndexEntry], found: SearchResult, most: int) -> list[Choice]:
    """Return the `most` entries that rank best, with the heading that fits, in the order of the index."""
    pages = {hit.source_id: hit.passage for hit in found.pages}
    kept = index
    if len(index) > most:
        ranks = {source_id: rank for rank, source_id in enumerate(pages)}
        best = sorted(index, key=lambda entry: ranks.get(entry.id, len(ranks)))[:most]
        chosen = {entry.id for entry in best}
        kept = [entry for entry in index if entry.id in chosen]
    return [Choice(entry.id, entry.description, _heading(pages.get(entry.id))) for entry in kept]


def _heading(kept: StoredPassage | None) -> str:
    return "" if kept is None else " › ".join(head for head in kept.headings[-2:] if head)


async def no_authors(_source: Source) -> Collection[int]:
    """Return no ids: the default of `load`, for sources that people have not written."""
    return ()


def load(
    library: Library,
    search: Search,
    max_chars: int,
    authors_of: Callable[[Source], Coroutine[Any, Any, Collection[int]]] = no_authors,
) -> AnswerStep:
    """Read the selected sources, at most `max_chars` characters together: short ones whole, of longer ones the outline
    and the passages that fit the query (`services.knowledge.excerpts`).

    A source that cannot be read is left out; when none can be, the inquiry ends. `authors_of`: gives the ids of those
    who have written in a topic of the team. Raises OSError: that cannot be read.
    """

    async def loaded(inquiry: Inquiry) -> Inquiry | Outcome:
        if inquiry.sources:
            return inquiry  # they were loaded by speculation
        sources: list[Source] = []
        for source_id in inquiry.selected:
            try:
                source = await library.load(source_id)
                add_people(await authors_of(source))
                sources.append(source)
            except SourceUnavailable as error:
                log.warning("load: left out: %s", error)
        inquiry.decisions["load"] = {"loaded": [source.id for source in sources]}
        log.info("load: %d of %d sources", len(sources), len(inquiry.selected))
        if inquiry.selected and not sources:
            return skip_outcome(inquiry, Reason.SOURCES_UNAVAILABLE)
        return inquiry._replace(sources=tuple(await excerpts.fit_sources(sources, inquiry.query, search, max_chars)))

    return loaded


def show_sections(library: Library, search: Search, max_chars: int) -> ShowSections:
    """Show, by heading, sections that the excerpts of loaded sources left out. Returns None if no source has such a
    section, or a source cannot be read.
    """

    async def read(inquiry: Inquiry, headings: Sequence[str]) -> Inquiry | None:
        shown = inquiry.sources
        try:
            sources = [await library.load(source.id) for source in shown]
        except SourceUnavailable as error:
            log.warning("generate: not read again: %s", error)
            return None
        wanted = headings[:MAX_HEADINGS]
        again = await excerpts.fit_with_sections(sources, shown, inquiry.query, search, max_chars, wanted)
        return None if again is None else inquiry._replace(sources=tuple(again))

    return read


MAX_HEADINGS = 3
"""At most this many sections are shown on request, so that there is room for other passages."""


def generate(
    assistant: Assistant,
    max_chars: int,
    require_citations: bool,
    addresses: Addresses | None = None,
    complete_draft: Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Unanswered]] | None = None,
    show_sections: ShowSections | None = None,
) -> AnswerStep:
    """Draft an answer and check its length, then its citations, then its links.

    If the model wants to read a section that excerpts left out, it is asked once more with that section
    (`show_sections`). An answer over `max_chars` is requested once more. Citations of other sources are dropped.
    With file tools, quotations and line references that nothing supports are marked. Links that neither a source, nor
    the team, nor the asker has given are removed. `addresses`: where the relative links of sources lead.
    """
    known_addresses = addresses or Addresses()

    async def generated(inquiry: Inquiry) -> Inquiry | Unanswered | Outcome:
        result = await ask_model(inquiry)
        with_sections = await show_sections(inquiry, result.to_read) if show_sections and result.to_read else None
        if with_sections is not None:
            log.info("generate: asking again with the sections %.200r", result.to_read)
            try:
                again = await ask_model(with_sections)
            except LLMError as error:
                log.warning("generate: the first answer stands: %s", error)
            else:
                if answer_of(again) is not None:
                    inquiry, result = with_sections, again
        answer = answer_of(result)
        if answer is not None and len(answer[0]) > max_chars:
            log.info("generate: %d characters, asking for %d", len(answer[0]), max_chars)
            answer = answer_of(await ask_model(inquiry, was_too_long=True))
        if answer is None:
            inquiry.decisions["generate"] = {"answer": False}
            return Unanswered(inquiry, Reason.NO_ANSWER_IN_SOURCES)
        text, given_citations = answer
        if len(text) > max_chars:
            inquiry.decisions["generate"] = {"answer": True, "characters": len(text)}
            return skip_outcome(inquiry, Reason.TOO_LONG)
        cited = resolve_citations(given_citations, inquiry.sources)
        citations, unknown = cited.sources, cited.unknown
        if (toolset := inquiry.toolset) is not None:
            citations += tuple(toolset.valid_citations(unknown))
            unknown = tuple(each for each in unknown if not toolset.valid_citations([each]))
            quotable = [source.text for source in inquiry.sources] + [turn.text for turn in inquiry.conversation.turns]
            text = toolset.mark_unsupported(text, quotable)
            # A runbook may have the name of a page: a citation of that name may mean either.
            text = "\n".join(filter(None, (toolset.notice((*citations, *given_citations) if citations else ()), text)))
        if unknown:
            log.warning("generate: citations of nothing that was given were dropped: %.200r", unknown)
        inquiry.decisions["generate"] = {"answer": True, "characters": len(text), "citations": list(citations)}
        if require_citations and inquiry.read_sources and not citations:
            return skip_outcome(inquiry, Reason.NO_CITATION)
        link_targets = (
            [known_addresses.make_absolute(trusted_text(source), source.id) for source in inquiry.sources]
            if "](" in text
            else []
        )
        trusted = [*linkable_texts(inquiry.sources, inquiry.conversation), *link_targets]
        drafted = inquiry.with_draft(text, trusted, citations, cited_pairs=cited.pairs)
        if not drafted.draft.strip():
            return Unanswered(inquiry, Reason.NO_ANSWER_IN_SOURCES)
        return drafted if complete_draft is None else await complete_draft(drafted)

    async def ask_model(inquiry: Inquiry, *, was_too_long: bool = False) -> AnswerResult:
        return await assistant.generate(
            inquiry.conversation,
            inquiry.query,
            inquiry.sources,
            inquiry.usage,
            max_chars=max_chars,
            was_too_long=was_too_long,
            toolset=inquiry.toolset,
        )

    return without_others_if_refused(generated)


def answer_of(result: AnswerResult) -> tuple[str, list[str]] | None:
    """Return the answer and its citations, or None if the answer is null, blank, or says "null"."""
    text = (result.answer or "").strip()
    return None if not text or text.lower() == "null" else (text, result.citations)


def verify(assistant: Assistant) -> AnswerStep:
    """Reject a draft that is not good enough to post."""

    async def verified(inquiry: Inquiry) -> Inquiry | Outcome:
        if inquiry.level is Level.POINT:
            return inquiry  # it states nothing

        def prompt(tasks: ConfiguredTasks) -> Prompt:
            return prompts.verify(tasks, inquiry.conversation, inquiry.draft, inquiry.read_sources)

        result = await assistant.ask("verify", prompt, VerificationResult, inquiry.usage)
        good, issues = (True, []) if result is None else (result.is_good_enough, result.issues)
        inquiry.decisions["verify"] = {"good_enough": good, "issues": issues}
        log.info("verify: good_enough=%s issues=%d", good, len(issues))
        return inquiry if good else skip_outcome(inquiry, Reason.REJECTED)

    return without_others_if_refused(verified)


HOLD_SECONDS = 20.0
"""The longest wait, once for each answer: whoever types longer may be writing to somebody else."""


def hold(typists: TypingTracker) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry]]:
    """Wait while a team member is typing where the question was asked, or in its thread, for at most `HOLD_SECONDS`.

    If they answer meanwhile, that cancels the inquiry, as at any other time. The wait does not count against the time
    of the chain.
    """

    async def wait_for_typing(inquiry: Inquiry) -> Inquiry:
        # A thread has the id of the message that it was opened on.
        places = {inquiry.part.place.id, *inquiry.part.message_ids, inquiry.reply_place_id or 0}
        began = now()
        if typists.team_types_until(places) <= began:
            return inquiry
        with inquiry.token.pause_expiry(), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HOLD_SECONDS):
                while (more := typists.team_types_until(places) - now()) > 0:  # noqa: ASYNC110 (they may type on)
                    await asyncio.sleep(more)
        inquiry.decisions["hold"] = {"seconds": round(now() - began, 1)}
        log.info("hold: %.1f s while a team member was typing", now() - began)
        return inquiry

    return wait_for_typing
