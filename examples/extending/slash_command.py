"""Worked example of docs/extending.md: a slash command that takes a private question.

/where question: where the documentation says most about it
"""

from __future__ import annotations

from functools import partial

from assembly.slash_commands import QuestionCommands, Row, reason_text
from model.conversations import Conversation
from model.outcomes import Outcome
from services.conversations import phrases
from services.discord.slash import QUESTION, Call
from services.search import best_passage
from streams.answerer import Answerer, RequestContext


async def where(questions: QuestionCommands, call: Call, question: str) -> str:
    """Return the name of the section, as a link."""
    say = phrases(call.language)

    async def named(answerer: Answerer, conversation: Conversation, context: RequestContext) -> str:
        found = await answerer.find(conversation, context)
        if isinstance(found, Outcome):
            return reason_text(found.result, found.reason, say)
        if not found.selected:  # it may be about the thread's files alone
            return say.found_nothing_at_all  # in the documentation, it says
        server = answerer.server
        hits = (await server.search.find(found.query)).hits
        return server.addresses.section_link(best_passage(found.selected[0], hits), say)

    return await questions.run("where", call, question, named)


WHERE = Row(
    "Show where the documentation says most about a question.",
    lambda services: partial(where, services.questions),
    {"question": QUESTION},
)
"""Its row of `assembly/slash_commands.py: COMMANDS`, under the name `where`."""
