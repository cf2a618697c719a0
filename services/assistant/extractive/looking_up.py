"""What files and runbooks say, without a model."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from services.assistant.answering import AnswerResult
from services.documents import QAResult, Status, Toolset
from services.search import asked_now

NOTICE: Final = "(Quoted as it was found; no language model is configured.)"

_EXACT: Final = ("file", "lines", "time", "severity", "identifiers", "position", "aggregate")
"""What a question may name that is looked up exactly, not ranked (services.documents.asking.plan)."""

_ASKING: Final = re.compile(r"[^\s.!?](?:[^.!?\n]|[.!?](?=\S))*\?")
_ENOUGH_WORDS: Final = 4

_CASE_TOOL: Final = "answer_from_case_evidence"
_TOOLS: Final = (_CASE_TOOL, "answer_from_user_kb")
"""The tools that know what no documentation does, in the order in which they are asked."""

PASSAGES: Final = 3
"""They are shown as they are: more would bury the answer."""

_WORTH_SAYING: Final = frozenset({Status.NOT_FOUND, Status.INDEXING, Status.NOT_INDEXED})
"""Shown if a question is about a file and nothing else."""


async def look_up(toolset: Toolset, query: str, max_chars: int, *, instead: bool) -> AnswerResult | None:
    """The answer of the first tool that has one; None if the sources know better.

    `instead`: there are no sources. If there are, only what was looked up exactly takes precedence over them.
    """
    offered = {tool.name for tool in toolset.tools}
    unanswered: str | None = None
    for name in _TOOLS:
        if name not in offered:
            continue
        result = await toolset.ask(name, _question(query), PASSAGES)
        if not (instead or any(result.plan.get(part) for part in _EXACT)):
            continue
        if result.status is Status.OK:
            return AnswerResult(answer=_shown(toolset, name, result, max_chars), citations=_cited(result))
        if result.status in _WORTH_SAYING and unanswered is None:
            unanswered = result.answer
    return None if unanswered is None else AnswerResult(answer=_with_notice(unanswered, max_chars), citations=[])


def _question(query: str) -> str:
    """The sentences that ask, if they say enough by themselves: the text around them names other things.

    Earlier questions are left out: the tools know the conversation, and recognise what refers to it.
    """
    now = asked_now(query)
    asking = " ".join(_ASKING.findall(now))
    return asking if len(asking.split()) >= _ENOUGH_WORDS else now


def _shown(toolset: Toolset, name: str, result: QAResult, max_chars: int) -> str:
    """Lines of files as they are, in a code block that they cannot end; runbooks as their author wrote them."""
    if name != _CASE_TOOL:
        return _with_notice(toolset.text(name, result), max_chars)
    tail = f"{toolset.text(name, replace(result, answer='')).strip()}\n{NOTICE}"
    room = max_chars - len(tail) - len("```\n\n```\n\n")
    # Backticks with an invisible character between them are no fence.
    quoted = _cut(result.answer, room).replace("```", "`\u200b`\u200b`")
    return f"```\n{quoted}\n```\n\n{tail}"


def _with_notice(text: str, max_chars: int) -> str:
    return f"{_cut(text, max_chars - len(NOTICE) - 2)}\n\n{NOTICE}"


def _cited(result: QAResult) -> list[str]:
    """The best place, and the other files."""
    first = next((f"{each.source}:{each.line_start}" for each in result.citations), None)
    named = [source for source in result.sources if first is None or not first.startswith(f"{source}:")]
    return named if first is None else [first, *named]


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars - 1].rstrip()}…"
