"""Answer from the asker's runbooks or files, without a model, or leave the question to the documentation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from services.assistant.answering import AnswerResult
from services.documents import Status, UnreadableFile
from services.search import current_question, terms

if TYPE_CHECKING:
    from services.conversations import Phrases
    from services.documents import QAResult, Toolset

_EXACT: Final = ("file", "lines", "time", "severity", "identifiers", "position", "aggregate")
"""Keys of a plan whose values are looked up exactly, not ranked (services.documents.asking.plan)."""

_SENTENCE_ENDS: Final = re.compile(r"\n|(?<=[.!?])(?!\S)")
_ASKED: Final = re.compile(r"[\s.!?]*+(?P<words>.*\?)", re.DOTALL)
_ENOUGH_WORDS: Final = 4

_CASE_TOOL: Final = "answer_from_case_evidence"
_RUNBOOK_TOOL: Final = "answer_from_user_kb"

PASSAGES: Final = 3
"""Passages are shown as they are: more would bury the answer."""

_OWN: Final = re.compile(
    r"\bmy\s+(?:own\s+)?(?:[\w-]+\s+){0,3}(?:runbooks?|procedures?|notes|steps|checklists?|playbooks?)\b", re.IGNORECASE
)
"""The asker speaks of their own runbooks."""
_ANSWERS: Final = 0.6
"""A runbook answers a question if it contains this share of the question's terms."""

_WORTH_SAYING: Final = frozenset({Status.NOT_FOUND, Status.INDEXING, Status.NOT_INDEXED})
"""Shown if a question is about a file and nothing else."""


def about_unreadable(files: Sequence[str]) -> str | None:
    """Return one sentence about the unreadable files, if all are unreadable; else None."""
    if not files or any(not isinstance(each, UnreadableFile) for each in files):
        return None
    return f"{'; '.join(files)}."


async def look_up(toolset: Toolset, query: str, say: Phrases, max_chars: int, *, instead: bool) -> AnswerResult | None:
    """Answer from the asker's runbooks if one answers the question, else from their files if these answer exactly;
    None: use the documentation.

    `instead`: no page of the documentation answers. Then passages that resemble the question are an answer too, and a
    vain search is reported.
    """
    offered = {tool.name for tool in toolset.tools}
    asked = _question(query)
    runbook = await toolset.ask(_RUNBOOK_TOOL, asked, PASSAGES) if _RUNBOOK_TOOL in offered else None
    own = runbook is not None and runbook.status is Status.OK
    if runbook is not None and own and _OWN.search(asked):
        return _answer(toolset, _RUNBOOK_TOOL, runbook, say, max_chars)
    evidence = await toolset.ask(_CASE_TOOL, asked, PASSAGES) if _CASE_TOOL in offered else None
    exact = evidence is not None and any(evidence.plan.get(part) for part in _EXACT)
    found = evidence is not None and evidence.status is Status.OK
    if evidence is not None and found and exact:
        return _answer(toolset, _CASE_TOOL, evidence, say, max_chars)
    # What others read is from the documentation first: anybody can write any runbook.
    first = not toolset.is_read_by_others and runbook is not None and _holds(runbook, asked)
    if runbook is not None and own and (first or (instead and not found)):
        return _answer(toolset, _RUNBOOK_TOOL, runbook, say, max_chars)
    if evidence is not None and found and instead:
        return _answer(toolset, _CASE_TOOL, evidence, say, max_chars)
    return _in_vain(toolset, evidence, say, max_chars) if instead or exact else None


def _answer(toolset: Toolset, name: str, result: QAResult, say: Phrases, max_chars: int) -> AnswerResult:
    return AnswerResult(answer=_shown(toolset, name, result, say, max_chars), citations=_cited(result))


def _in_vain(toolset: Toolset, evidence: QAResult | None, say: Phrases, max_chars: int) -> AnswerResult | None:
    """Return the answer if nothing was found: that files were searched, or cannot be read; None: neither is so."""
    said = about_unreadable(toolset.files)
    if said is None and evidence is not None and evidence.status in _WORTH_SAYING:
        said = evidence.answer
        if evidence.status is Status.NOT_FOUND:
            # What is said of a file that cannot be read is no quote.
            said = _with_notice(said, say, max_chars)
    return None if said is None else AnswerResult(answer=_cut(said, max_chars), citations=[])


def _holds(result: QAResult, asked: str) -> bool:
    """Return True if a runbook contains most terms of the question: only then it answers before all else."""
    wanted = set(terms(asked))
    held = set(terms(" ".join([*result.sources, result.answer])))
    return bool(wanted) and sum(word in held for word in wanted) >= _ANSWERS * len(wanted)


def _question(query: str) -> str:
    """Return the sentences that ask, if they say enough by themselves: the text around them names other things. Earlier
    questions are left out: the tools know the conversation.
    """
    now = current_question(query)
    asked = map(_ASKED.match, _SENTENCE_ENDS.split(now))
    asking = " ".join(each["words"] for each in asked if each)
    return asking if len(asking.split()) >= _ENOUGH_WORDS else now


def _shown(toolset: Toolset, name: str, result: QAResult, say: Phrases, max_chars: int) -> str:
    """Return the answer as it is posted: lines of files in a code block that they cannot end, runbooks as Markdown."""
    if name != _CASE_TOOL:
        return _with_notice(toolset.render(name, result), say, max_chars)
    tail = f"{toolset.render(name, result).removeprefix(result.answer).strip()}\n{say.no_model_notice}"
    room = max_chars - len(tail) - len("```\n\n```\n\n")
    # Backticks with an invisible character between them are no fence.
    quoted = _cut(result.answer, room).replace("```", "`\u200b`\u200b`")
    return f"```\n{quoted}\n```\n\n{tail}"


def _with_notice(text: str, say: Phrases, max_chars: int) -> str:
    notice = say.no_model_notice
    return f"{_cut(text, max_chars - len(notice) - 2)}\n\n{notice}"


def _cited(result: QAResult) -> list[str]:
    """Return the citations of an answer: the best line of the first file, and the other files."""
    first = next((f"{each.source}:{each.line_start}" for each in result.citations), None)
    named = [source for source in result.sources if first is None or not first.startswith(f"{source}:")]
    return named if first is None else [first, *named]


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars - 1].rstrip()}…"
