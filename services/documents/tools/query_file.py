"""`query_file`: exact questions about lines of files, filled in like a form and answered verbatim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.documents.asking import line_query, linear, query_lines
from services.documents.asking.line_query import GROUPS, MODES, MOST_AROUND, MOST_LINES, MOST_TOP, ORDERS, QueryRefused
from services.documents.results import QAResult, Status, ToolContext
from services.documents.tools.core import DocumentQATool

NAME = "query_file"

USE = """\
Counts, lists and groups lines of the files posted in this thread, exactly and over whole files; no model reads them.
Use it for how many, which most often, the first, the last, all of, what stands around it, when you know the words:
failed logins by address, errors by day, the warning that shows up most (group_by message: numbers do not count),
everything of one component between two times, line 1045 with its neighbours."""
RULES = """\
Rules: all conditions hold together; any_of is "or". all_of, any_of and none_of are literal texts, letter case aside,
matched as whole words (10.0.0.1 is not in 10.0.0.12, Exception is not in IOException); regex finds parts of words.
level, since and until need logs whose lines have levels (notice is INFO) and times; times are compared as the log
writes them, and a minute or day includes all of it. first and last go by time unless order is file. A line that says
"message repeated 5 times" counts five times. Gives totals, groups, and lines as they are, as file:line; it says how
many are not shown."""
OTHERWISE = """\
Not for questions of meaning ("why did it fail?"): use answer_from_case_evidence when you do not know the words."""
DESCRIPTION = f"""\
{USE} One call often answers; there are few.
{RULES}
A call that is refused or finds nothing does not count.
{OTHERWISE}"""


def _texts(description: str) -> dict[str, Any]:
    return {
        "type": "array",
        "items": {"type": "string"},
        "maxItems": line_query.MOST_LITERALS,
        "description": description,
    }


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _number(least: int, most: int, description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "file": _text("Name of one file; all files when left out."),
        "all_of": _texts("Texts that a line has to hold, all of them."),
        "any_of": _texts("Texts of which a line has to hold one at least."),
        "none_of": _texts("Texts that a line must not hold."),
        "regex": _text(
            "Regular expression, letter case aside, found anywhere in a line: characters, classes, one repeated at a "
            f"time (no (a+)+, no look-around), at most {linear.LONGEST_PATTERN} characters."
        ),
        "level": _texts("Levels, such as ERROR or WARN; one of them is enough."),
        "component": _text("The logger, class, process or service that wrote the line."),
        "since": _text("From this time on: 2024-05-01, 14:32, Jun 14 15:16, 2024-05-01 14:32:15."),
        "until": _text("Up to this time, included; written in the same way."),
        "line": _number(1, 10**9, "One line by its number."),
        "before": _number(0, MOST_AROUND, "How many lines before each hit, in mode context."),
        "after": _number(0, MOST_AROUND, "How many lines after each hit, in mode context."),
        "mode": _text("What is wanted; list when left out, count with group_by, context with line.", enum=list(MODES)),
        "order": _text("time when left out.", enum=list(ORDERS)),
        "group_by": _text(
            "What to count by; message: what lines say, numbers aside; key needs key, capture a regex.",
            enum=list(GROUPS),
        ),
        "key": _text("With group_by key: the name whose values are counted, such as user of user=root."),
        "top": _number(1, MOST_TOP, "How many groups are shown."),
        "offset": _number(0, line_query.MOST_OFFSET, "How many hits to skip."),
        "limit": _number(1, MOST_LINES, "How many hits are shown."),
    },
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class QueryFile:
    """Over the files that the tool for case evidence answers from, by its rules of access."""

    evidence: DocumentQATool

    async def ask(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> QAResult:
        """Never raises but for a cancelled call. `INVALID`: the form is wrong, and the answer says how."""
        scope = await self.evidence.scope_for(ctx)
        if isinstance(scope, QAResult):
            return scope
        try:
            query = line_query.read(arguments, scope.documents)
            found = await self.evidence.searched(lambda: query_lines.answer(scope, query))
        except QueryRefused as wrong:
            return QAResult(str(wrong), Status.INVALID)
        if isinstance(found, QAResult):
            return found
        return QAResult(
            answer=found.text,
            status=Status.OK if found.total else Status.NOT_FOUND,
            sources=tuple(doc.filename for doc in query.documents),
            chunk_count=len(found.citations),
            confidence=1.0 if found.total else 0.0,
            citations=found.citations,
            plan={"count": found.total},
        )
