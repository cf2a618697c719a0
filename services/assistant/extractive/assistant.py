"""The assistant that needs no model: search decides and selects, and the answer quotes the passages that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from model.bounded import BoundedDict
from model.conversations import Role
from model.source_ids import folders_of
from services.assistant.addresses import Addresses
from services.assistant.answering import AnswerResult, GatingResult, SelectionResult
from services.assistant.quoting import Quote, choose_hits, compose, extend, in_known_languages, other_pages, quote_team
from services.conversations import in_language, phrases
from services.knowledge import whole_answer
from services.search import (
    EARLIER_QUESTION,
    Level,
    Place,
    advises_against,
    asks_for_something,
    current_question,
    is_about_opposite,
    is_follow_up,
    is_for_another,
    is_of_another_version,
    is_outdated,
    is_question,
    is_too_general,
    language_of,
    may_ask,
    meets,
    notices_in,
    pages_of,
    requirements_of,
    terms,
    warnings_in,
    words_to_search,
)
from services.storage import in_thread

if TYPE_CHECKING:  # the tools for files take a fifth of the time that an answer needs to start
    from model.conversations import Conversation
    from services.assistant.answering import M
    from services.assistant.prompts import Choice, ConfiguredTasks
    from services.documents import Toolset
    from services.knowledge import Search, Source
    from services.llm import Prompt, Usage
    from services.search import (
        Hit,
        SearchResult,
        StoredPassage,
    )

# ruff: noqa: ARG002 (the Protocol's arguments: quoting needs no `usage`, and no `conversation` once there is a query)


_EARLIER_TURNS: Final = 2
_READ_AT_EACH_END: Final = 4_000
"""Characters of a long question that are read at each end: it comes before a pasted log or after it."""
_SELF_CONTAINED: Final = 5
"""A question in a running conversation with so many words is searched without the earlier ones."""
_SECTION_CHARS: Final = 1_200
_MAX_WARNINGS: Final = 2
_MAX_CHOSEN: Final = 16
"""Questions whose answers are being made."""
_COMPARED: Final = 8
"""At most so many passages, the best, may be quoted."""
_NEAR_OPPOSITE: Final = 0.9
"""A section is quoted in the place of a better one about an opposite if it has this share of that one's score."""


class ExtractiveAssistant:
    """Implements `Assistant` with `search`. Counts nothing in `Usage`. `addresses`: make links in quotes absolute.
    `reply_language`: `question`, which is that of the question, or the code of a fixed one.
    """

    def __init__(self, search: Search, addresses: Addresses | None = None, *, reply_language: str = "question") -> None:
        self._search = search
        self._addresses = addresses or Addresses()
        self._reply_language = reply_language
        self._chosen: BoundedDict[int, tuple[SearchResult, Sequence[Hit]]] = BoundedDict(_MAX_CHOSEN)

    async def gate(
        self, conversation: Conversation, usage: Usage, *, files: Sequence[str] = (), addressed: bool = False
    ) -> GatingResult:
        asked, earlier = _asked(conversation)
        goes_on = bool(earlier) and is_follow_up(asked)
        asks = goes_on or is_question(asked) or (addressed and asks_for_something(asked))
        if not asks and not may_ask(asked):
            return _gated(None, "Not put as a question.", is_question=False)
        query = asked
        if earlier and (goes_on or len(set(terms(words_to_search(asked)))) < _SELF_CONTAINED):
            query = "\n".join([asked, *(EARLIER_QUESTION + " ".join(turn.split()) for turn in earlier)])
        if files:
            return _gated(_rewritten(query, conversation), f"Files to look in: {len(files)}.", is_answerable=True)
        query, found = await self._better(query, query if goes_on else asked)
        rewritten = _rewritten(query, conversation)
        if not asks and found.level is not Level.ANSWER:
            return _gated(None, "Not put as a question, and no passage answers it.", is_question=False)
        if found.level is Level.SILENCE:
            return _gated(rewritten, f"No passage of the sources resembles it ({found.confidence:.2f}).")
        reason = f"Resembles {found.hits[0].source_id} ({found.confidence:.2f}: {found.level})."
        return _gated(rewritten, reason, is_answerable=True)

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
        found = await self._search.find(query)
        if not found.hits or (files and found.level is not Level.ANSWER):
            return SelectionResult(selected_source_ids=[])
        if found.answer_of_team is not None:
            return SelectionResult(selected_source_ids=[found.answer_of_team.hit.source_id])
        quoted = [hit.source_id for hit in await self._to_quote(found, query)]
        named = [*quoted, *(hit.source_id for hit in _others(found, quoted, query))]
        return SelectionResult(selected_source_ids=list(dict.fromkeys(named))[:max_sources])

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
        say = phrases(in_language(self._reply_language, language_of(query)))
        if toolset is not None:
            from services.assistant.extractive.lookup import look_up  # noqa: PLC0415 (as above)

            from_files = await look_up(toolset, query, say, max_chars, instead=not sources)
            if from_files is not None:
                return from_files
        found = await self._search.find(query)
        if found.level is not Level.ANSWER:
            return AnswerResult(answer=None, citations=[])
        loaded = {source.id: source for source in sources}
        taught = found.answer_of_team
        if taught is not None and taught.hit.source_id in loaded:
            said = await self._whole_answer(taught.hit.passage, loaded[taught.hit.source_id])
            answer = quote_team(taught.hit.passage, said, say, max_chars)
            return AnswerResult(answer=answer or None, citations=[taught.hit.passage.anchor or taught.hit.source_id])
        quotes = [await self._quote(hit) for hit in await self._to_quote(found, query) if hit.source_id in loaded]
        also = [
            hit for hit in _others(found, [each.hit.source_id for each in quotes], query) if hit.source_id in loaded
        ]
        answer, cited = compose(quotes, also, say, max_chars)
        return AnswerResult(answer=answer or None, citations=cited)

    async def ask(
        self, step: str, prompt: Callable[[ConfiguredTasks], Prompt], result: type[M], usage: Usage
    ) -> M | None:
        """Return None: quotes need no further step."""
        return None

    async def _better(self, query: str, alone: str) -> tuple[str, SearchResult]:
        """Search for the question `alone` and for the `query` with the earlier turns. Returns the one that finds more,
        and its result; `alone` if it is answered by itself.
        """
        if alone == query:
            return query, await self._search.find(query)
        by_itself = await self._search.find(alone)
        if by_itself.level is Level.ANSWER:
            return alone, by_itself
        found = await self._search.find(query)
        return (alone, by_itself) if by_itself.confidence > found.confidence else (query, found)

    async def _to_quote(self, found: SearchResult, query: str) -> Sequence[Hit]:
        """Return what `_choose` does; each step of an answer asks for it, and it takes 20 ms."""
        key = hash(query)  # not the words of whoever asks, which forgetting would have to find
        known = self._chosen.get(key)
        if known is None or known[0] is not found:
            self._chosen[key] = known = found, await self._choose(found, query)
        return known[1]

    async def _choose(self, found: SearchResult, query: str) -> Sequence[Hit]:
        """Choose the passages to quote: the best with the version, number or name in question; no introductions,
        nothing that is advised against or out of date, and nothing about an opposite or for something else.
        """
        hits = await self._search.rerank([hit for hit in found.documents if hit.passage.quotable], query)
        asked = current_question(query)
        # Of "and on Windows?", an earlier question says what kind of answer is wanted.
        is_whole = len(set(terms(asked))) >= _SELF_CONTAINED
        required = requirements_of(words_to_search(asked if is_whole else query))
        fit = [
            hit
            for hit in hits
            if meets(hit.passage.with_heading, required)
            and not is_too_general(hit.passage.headings, words_to_search(query))
        ]
        places = {_place_of(hit.passage): hit.passage.text for hit in reversed(found.documents)}
        right = [
            hit
            for hit in fit[:_COMPARED]
            if await in_thread(_may_answer, asked, hit.passage, places)
            and not await self._is_for_another(asked, hit.passage, places)
            and not is_outdated(await self._head_of(hit.passage))
        ]
        # What is far behind one that is left out is about something else.
        if right and right[0] is not fit[0]:
            right = [hit for hit in right if hit.score >= _NEAR_OPPOSITE * fit[0].score]
        return choose_hits([*right[:1], *in_known_languages(right[1:], query)])

    async def _is_for_another(self, asked: str, passage: StoredPassage, places: Iterable[Place]) -> bool:
        """Return True if a section is for something else than is asked about; `places`: of all sections found."""
        place = _place_of(passage)
        if not await in_thread(is_for_another, asked, place, passage.text, places):
            return False
        section = await self._search.section(passage)
        return await in_thread(is_for_another, asked, place, "\n".join(each.text for each in section), places)

    async def _head_of(self, passage: StoredPassage) -> str:
        """Return what stands on the page before its first heading or below its title; empty if the passage does."""
        head = await self._search.section(passage._replace(section=0)) if passage.section else ()
        is_above = head and passage.headings[: len(head[0].headings)] == head[0].headings != passage.headings
        return "\n\n".join(each.text for each in head) if is_above else ""

    async def _whole_answer(self, passage: StoredPassage, topic: Source) -> str:
        """Return the answer of the team that a passage is from; empty if the topic does not have it any more."""
        if len(await self._search.section(passage)) == 1:
            return passage.text
        return whole_answer(topic.text, passage.anchor, passage.headings[-1])

    async def _quote(self, hit: Hit) -> Quote:
        section = await self._search.section(hit.passage)
        text, *warnings = (
            self._addresses.make_absolute(each, hit.source_id, hit.passage.permalink)
            for each in (
                extend(hit.passage, section, _SECTION_CHARS),
                *warnings_in("\n\n".join(each.text for each in section))[:_MAX_WARNINGS],
                *notices_in(await self._head_of(hit.passage))[:_MAX_WARNINGS],
            )
        )
        return Quote(hit, text, warnings)


def _may_answer(asked: str, passage: StoredPassage, places: Mapping[Place, str]) -> bool:
    """Return False for a section that advises against what is asked, is about its opposite, or of another version.
    `places`: of all sections found, with their texts. Blocks, for some milliseconds.
    """
    return not (
        advises_against(passage.headings, asked)
        or is_about_opposite(asked, passage.headings, passage.text)
        or is_of_another_version(asked, _place_of(passage), passage.text, places)
    )


def _place_of(passage: StoredPassage) -> Place:
    folders = folders_of(passage.source_id)
    headings = tuple(dict.fromkeys(filter(None, (passage.title, *passage.headings))))
    return Place((*folders, *headings), len(folders) + 1)


def _others(found: SearchResult, quoted: Sequence[str], query: str) -> list[Hit]:
    pages = pages_of(found.documents)
    return other_pages([*pages[:1], *in_known_languages(pages[1:], query)], quoted)


def _asked(conversation: Conversation) -> tuple[str, list[str]]:
    """Return the text of the question, and the latest earlier texts of users."""
    now = [turn.text for turn in conversation.turns if turn.asked_now]
    earlier = [turn.text for turn in conversation.turns if turn.role is Role.USER and not turn.asked_now]
    if not now:
        return conversation.last_user_text, earlier[-1 - _EARLIER_TURNS : -1]
    asked = "\n".join(now)
    if len(asked) > 2 * _READ_AT_EACH_END:
        asked = f"{asked[:_READ_AT_EACH_END]}\n{asked[-_READ_AT_EACH_END:]}"
    return asked, earlier[-_EARLIER_TURNS:]


def _rewritten(query: str, conversation: Conversation) -> str | None:
    return query if query != conversation.last_user_text else None


def _gated(
    rewritten: str | None, reason: str, *, is_question: bool = True, is_answerable: bool = False
) -> GatingResult:
    return GatingResult(is_question=is_question, is_answerable=is_answerable, rewrite_query=rewritten, reason=reason)
