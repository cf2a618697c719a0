"""Answers from files and runbooks, without a model: what the tools find is the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from services.assistant.protocol import AnswerResult
from services.documents import QAResult, Status, Toolset
from services.search import asked_now

NOTICE: Final = "(Quoted as it was found; no language model is configured.)"

_EXACT: Final = ("file", "lines", "time", "severity", "identifiers", "position", "aggregate")
"""What a question may name that is looked up and not ranked (services.documents.asking.plan)."""

_ASKING: Final = re.compile(r"[^\s.!?](?:[^.!?\n]|[.!?](?=\S))*\?")
_ENOUGH_WORDS: Final = 4

_OWN: Final = ("answer_from_case_evidence", "answer_from_user_kb")
"""The tools that know what no documentation does, in the order in which they are asked."""

PASSAGES: Final = 3
"""They are shown as they are: more would bury what was asked for."""

_TOLD: Final = frozenset({Status.NOT_FOUND, Status.INDEXING, Status.NOT_INDEXED})
"""What is worth saying, where a question is about a file and nothing else."""


async def look_up(toolset: Toolset, query: str, max_chars: int, *, instead: bool) -> AnswerResult | None:
    """The answer of the first tool that has one; None: the sources know better.

    `instead`: there are no sources. Where there are, only what was looked up exactly is preferred to them.
    """
    offered = {tool.name for tool in toolset.tools}
    told: str | None = None
    for name in _OWN:
        if name not in offered:
            continue
        result = await toolset.ask(name, _question(query), PASSAGES)
        if result.status is Status.OK and (instead or _is_exact(result)):
            return AnswerResult(answer=_shown(toolset, name, result, max_chars), citations=_cited(result))
        if result.status in _TOLD and (instead or _is_exact(result)) and told is None:
            told = result.answer
    if told is None:
        return None
    return AnswerResult(answer=f"{_cut(told, max_chars - len(NOTICE) - 2)}\n\n{NOTICE}", citations=[])


def _question(query: str) -> str:
    """The sentences that ask, where they say enough by themselves: what is told around them names other things.

    What was asked earlier is no part of it: the tools know the conversation, and tell what goes on from it.
    """
    now = asked_now(query)
    asking = " ".join(_ASKING.findall(now))
    return asking if len(asking.split()) >= _ENOUGH_WORDS else now


def _is_exact(result: QAResult) -> bool:
    plan: Mapping[str, object] = result.plan
    return any(plan.get(name) for name in _EXACT)


def _shown(toolset: Toolset, name: str, result: QAResult, max_chars: int) -> str:
    """Lines of files as they are, in a code block that they cannot end; runbooks as their author wrote them."""
    if name != _OWN[0]:
        return f"{_cut(toolset.text(name, result), max_chars - len(NOTICE) - 2)}\n\n{NOTICE}"
    tail = f"{toolset.text(name, replace(result, answer='')).strip()}\n{NOTICE}"
    room = max_chars - len(tail) - len("```\n\n```\n\n")
    # Backticks with something invisible between them are no fence.
    quoted = _cut(result.answer, room).replace("```", "`\u200b`\u200b`")
    return f"```\n{quoted}\n```\n\n{tail}"


def _cited(result: QAResult) -> list[str]:
    """The best place, and the other files."""
    first = next((f"{each.source}:{each.line_start}" for each in result.citations), None)
    named = [source for source in result.sources if first is None or not first.startswith(f"{source}:")]
    return named if first is None else [first, *named]


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars - 1].rstrip()}…"
