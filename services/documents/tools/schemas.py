"""The document tools as a model sees them: data, with no word in them of who asks or where (DOCUMENT_QA 2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.documents.tools.core import DEFAULT_K, MOST_K
from services.documents.tools.refusals import MAX_QUESTION_CHARS

CASE = "answer_from_case_evidence"
USER = "answer_from_user_kb"
TEAM = "answer_from_team_kb"
GLOBAL = "answer_from_global_kb"


@dataclass(frozen=True, slots=True)
class ToolSchema:
    name: str
    description: str
    parameters: Mapping[str, Any]
    """A JSON schema."""


PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "question": {
            "type": "string",
            "maxLength": MAX_QUESTION_CHARS,
            "description": "One complete question, with every name, number and time that matters in it.",
        },
        "k": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_K,
            "description": f"How many passages to read; {DEFAULT_K} when left out, 3 to 10 is useful.",
        },
    },
    "required": ["question"],
    "additionalProperties": False,
}

SCHEMAS: Mapping[str, ToolSchema] = {
    CASE: ToolSchema(
        CASE,
        """\
Answers from the files posted in this thread: logs, configurations, code, metrics, notes.
Use it for what is in those files: errors, values, one line, one moment, the first, the last, how many.
Ask such as: "What is on line 1045 of server.log?", "When did the first ERROR appear?", "How many timeouts are there?",
"What happened to req-7d3f?", "Which port does the db service expose in compose.yaml?"
Gives a short factual answer with file, line and time of each statement, and says so when there is no such entry.
Not for general knowledge: documentation is in answer_from_global_kb, the team's words in answer_from_team_kb.""",
        PARAMETERS,
    ),
    USER: ToolSchema(
        USER,
        """\
Answers from the personal runbooks of the person who asks.
Use it when they speak of their own procedure: "my runbook", "how do I usually do this", "the steps I wrote down".
Ask such as: "What are my steps for a database timeout?", "What does my deploy runbook say about rollback?",
"Which check comes before the restart in my procedure?", "Who do I call according to my notes?"
Gives the steps in order with the document's title and section.
Not for the team's answers (answer_from_team_kb) or product documentation (answer_from_global_kb).""",
        PARAMETERS,
    ),
    TEAM: ToolSchema(
        TEAM,
        """\
Answers from what this team told users before.
Use it for known problems, workarounds and house rules that team members have explained.
Ask such as: "How did we answer login errors after the update?", "What is our workaround for slow sync?",
"Do we support version 2 on Windows?", "What do we tell people whose tokens have expired?"
Gives what the team said, with topic and date.
Not for files of this thread: use answer_from_case_evidence; not for official documentation: answer_from_global_kb.""",
        PARAMETERS,
    ),
    GLOBAL: ToolSchema(
        GLOBAL,
        """\
Answers from the product documentation and other published sources.
Use it for documented behaviour, settings, standards and known causes.
Ask such as: "What does the retry_limit setting do?", "Which causes does the documentation name for error E-1042?",
"How is single sign-on configured?", "What are the limits of the API?", "Which versions are supported?"
Gives an explanation with the articles it comes from.
Knows nothing about this user's files: use answer_from_case_evidence for anything in them.""",
        PARAMETERS,
    ),
}
