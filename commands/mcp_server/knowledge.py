"""The tools over the knowledge base: search, whole sources, answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

from commands.mcp_server.tools import CallRefused, QuestionBudget, ServedTool, ToolResult, form, number, text, used_up
from model.conversations import Conversation
from model.outcomes import OutcomeKind, Reason
from services.assistant import Addresses
from services.knowledge import Library, Search, SourceUnavailable, as_shown
from services.search import Hit, Level
from sinks.terminal import one_line
from streams.answers import AIResult, Answerer

EXCERPT_CHARS = 900
MOST_HITS, USUAL_HITS = 20, 5
MOST_CHARS, USUAL_CHARS = 50_000, 20_000
MOST_OFFSET = 10**9
ID_CHARS = 2_000
NO_INDEX = "There is no index yet, so nothing can be found. Whoever runs this server makes it: python app.py --init-kb"

_MODEL = "It is slower than search and costs tokens of this server's own model: look around with search."
_NO_MODEL = "This server has no model of its own: what it gives are passages, quoted."
_LIKELY = {
    Level.ANSWER: "the first of them probably answer it",
    Level.POINT: "they are related, and may not answer it",
    Level.SILENCE: "probably none of them answers it",
}


class FoundPassage(BaseModel):
    source_id: str = Field(description="Give it to read_source, letter by letter.")
    title: str
    section: str = Field(description="The headings above the passage, outermost first.")
    excerpt: str
    score: float = Field(description="0 to 1; comparable within one search only.")
    url: str | None = Field(description="Where people read it; null: not known.")


class FoundPassages(BaseModel):
    confidence: float = Field(description="How likely one of the first three sources answers the query, 0 to 1.")
    level: Literal["answer", "point", "silence"] = Field(
        description="What that means: it probably answers; it is related; probably nothing here answers."
    )
    passages: list[FoundPassage] = Field(description="Best first.")
    more: int = Field(description="How many more passages were found.")


class SourceText(BaseModel):
    source_id: str
    url: str | None = Field(description="Where people read it; null: not known.")
    text: str
    offset: int = Field(description="Where `text` begins, in characters.")
    total_chars: int
    next_offset: int | None = Field(description="Where to read on; null: that was all.")


class GivenAnswer(BaseModel):
    outcome: Literal["answered", "pointed", "nothing found", "no answer"] = Field(
        description="answered: from the sources; pointed: it only says where to look; nothing found: it says so; "
        "no answer: see reason."
    )
    answer: str | None
    sources: list[str] = Field(description="Ids of the sources of the answer; read_source takes them.")
    reason: str | None = Field(description="Why there is no answer.")
    path: dict[str, Any] = Field(description="What each step decided.")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeTools:
    """Over the sources that everybody may be answered from.

    Attributes:
        conversation: of a question.
        allowance: for questions that cost something; None: they cost nothing.
    """

    library: Library
    search: Search
    answerer: Answerer
    addresses: Addresses
    conversation: Callable[[str], Conversation]
    allowance: QuestionBudget | None

    def tools(self) -> Sequence[ServedTool]:
        return (
            ServedTool(
                name="search",
                title="Search documentation and team answers",
                description="Finds passages of the documentation and of what the team told users, by words and by "
                "meaning. Use it to look things up: behaviour, settings, errors, how something was solved before. "
                "Gives short excerpts with the ids of their sources, best first, and how likely they answer. "
                "Costs nothing: search again in other words, and read the whole source with read_source.",
                parameters=form(
                    ("query",),
                    query=text("A question or a few words, in the language of the documentation if you can."),
                    limit=number("How many passages.", 1, MOST_HITS, USUAL_HITS),
                ),
                result=FoundPassages,
                run=self._search,
            ),
            ServedTool(
                name="read_source",
                title="Read a source",
                description="Gives the text of one source: a document, a web page, or a topic of the team's answers "
                "(ids that begin with team:, where only what stands behind Team: is the team's word). Needs an id from "
                "search or ask. Long sources come in pieces: go on at next_offset.",
                parameters=form(
                    ("source_id",),
                    source_id=text("As search gave it, such as kb:guides/setup.md.", ID_CHARS),
                    offset=number("Where to begin, in characters.", 0, MOST_OFFSET, 0),
                    max_chars=number("How much to read.", 1, MOST_CHARS, USUAL_CHARS),
                ),
                result=SourceText,
                run=self._read,
            ),
            ServedTool(
                name="ask",
                title="Ask for a finished answer",
                description="Answers one question as the bot answers users: checked, from the sources alone, with the "
                "sources named; or says that there is no answer, and why. "
                f"{_MODEL if self.allowance is not None else _NO_MODEL} "
                "Each question stands alone, so put everything that matters into it.",
                parameters=form(("question",), question=text("One complete question, as a person would ask it.")),
                result=GivenAnswer,
                run=self._ask,
            ),
        )

    async def _search(self, arguments: Mapping[str, Any]) -> ToolResult:
        await self._indexed()
        limit = _within(arguments.get("limit", USUAL_HITS), 1, MOST_HITS)
        found = await self.search.find(arguments["query"])
        passages = [self._passage(hit) for hit in found.hits[:limit]]
        content = FoundPassages(
            confidence=round(found.confidence, 2),
            level=found.level.value,
            passages=passages,
            more=len(found.hits) - len(passages),
        )
        if not passages:
            return ToolResult("Nothing was found. Try other words: those that the documentation would use.", content)
        lines = [f"Best first; {_LIKELY[found.level]} (confidence {found.confidence:.0%})."]
        for number_, each in enumerate(passages, 1):
            lines += ["", *_passage_lines(number_, each)]
        return ToolResult("\n".join(lines), content)

    def _passage(self, hit: Hit) -> FoundPassage:
        kept = hit.kept
        shown = kept.text if len(kept.text) <= EXCERPT_CHARS else f"{kept.text[:EXCERPT_CHARS]}…"
        return FoundPassage(
            source_id=hit.source_id,
            title=one_line(kept.title),
            section=" › ".join(one_line(head) for head in kept.headings if head),
            excerpt=shown,
            score=round(hit.score, 2),
            url=self.addresses.section(kept),
        )

    async def _read(self, arguments: Mapping[str, Any]) -> ToolResult:
        await self._indexed()
        source_id = arguments["source_id"].strip().strip("`")
        try:
            source = await self.library.load(source_id)
        except SourceUnavailable as why:
            raise CallRefused(f"{one_line(str(why))}. Take an id that search gave.") from None
        whole = as_shown(source.text, {})
        offset = min(_within(arguments.get("offset", 0), 0, MOST_OFFSET), len(whole))
        piece = whole[offset : offset + _within(arguments.get("max_chars", USUAL_CHARS), 1, MOST_CHARS)]
        end = offset + len(piece)
        content = SourceText(
            source_id=source_id,
            url=self.addresses.of(source_id),
            text=piece,
            offset=offset,
            total_chars=len(whole),
            next_offset=end if end < len(whole) else None,
        )
        rest = "" if end == len(whole) else f"; go on with offset {end}"
        where = f"\n{content.url}" if content.url else ""
        return ToolResult(
            f"{one_line(source_id)}, characters {offset} to {end} of {len(whole)}{rest}{where}\n\n{piece}", content
        )

    async def _ask(self, arguments: Mapping[str, Any]) -> ToolResult:
        await self._indexed()
        if self.allowance is not None:
            await self.allowance.spend()
        result = await self.answerer.generate_reply(self.conversation(arguments["question"]))
        reason, path = result.debug["reason"], dict(_path(result))
        if result.debug["result"] == OutcomeKind.FAILED:
            raise CallRefused(
                f"No answer could be made: {reason}. Try search, which needs no model, or ask again later."
            )
        if reason == Reason.BUDGET:  # without a model answers cost nothing, and may be counted all the same
            raise used_up("limits.answers_per_day")
        if not result.should_reply or result.reply_text is None:
            content = GivenAnswer(outcome="no answer", answer=None, sources=[], reason=reason, path=path)
            return ToolResult(f"There is no answer: {reason}.{_why(path)}", content)
        content = GivenAnswer(
            outcome=_outcome(path),
            answer=result.reply_text,
            sources=list(result.citations),
            reason=None,
            path=path,
        )
        cited = f"\n\nSources: {', '.join(map(one_line, result.citations))}" if result.citations else ""
        head = "This is no answer, only where to look:\n\n" if content.outcome == "pointed" else ""
        return ToolResult(f"{head}{result.reply_text}{cited}", content)

    async def _indexed(self) -> None:
        if not await self.library.index():
            raise CallRefused(NO_INDEX)


def _passage_lines(place: int, each: FoundPassage) -> Iterator[str]:
    yield f"{place}. {one_line(each.source_id)}" + (f" › {each.section}" if each.section else "") + f" ({each.score})"
    if each.url:
        yield f"   {each.url}"
    yield from (f"   {line}".rstrip() for line in each.excerpt.split("\n"))


def _path(result: AIResult) -> Iterator[tuple[str, Any]]:
    """The decisions of the steps, without how long they took and how they ended."""
    for step, decision in result.debug.items():
        if isinstance(decision, Mapping) and step != "tokens":
            yield step, decision


def _outcome(path: Mapping[str, Any]) -> Literal["answered", "pointed", "nothing found"]:
    pointed = path.get("point")
    if pointed is None:
        return "answered"
    return "nothing found" if pointed["level"] == Level.SILENCE else "pointed"


def _why(path: Mapping[str, Any]) -> str:
    """Give the gate's reason, where the gate ended the answer."""
    said = path.get("gate", {}).get("reason")
    return f" {one_line(str(said))}" if said else ""


def _within(value: int, least: int, most: int) -> int:
    return min(max(value, least), most)
