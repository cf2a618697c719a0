"""Questions about files in a thread, one after another, answered without a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from model.conversations import Conversation, Role, Turn
from operators.answering import earlier_in
from services.assistant.answering import AnswerResult
from services.conversations import phrases
from services.documents.asking.rewriting import ConversationContext
from services.documents.lookup import UnreadableFile
from services.documents.store.document_store import DocumentStore
from services.documents.tools.toolset import Toolset
from services.llm.usage import Usage
from tests.hashing import HashingEmbedder
from tests.services.assistant.extractive.lanternfish import SOURCES, Bookcase, assistant_over
from tests.services.documents import cases

pytestmark = pytest.mark.real_time

FIRST = "what is the first ERROR in shop.log, which line?"


@pytest.fixture
async def store(tmp_path: Path) -> DocumentStore:
    opened = cases.new_store(tmp_path)
    await cases.post(opened, "shop.log", cases.LOG)
    await cases.post(opened, "depot.log", cases.OTHER_LOG)
    return opened


async def talk(store: DocumentStore, *questions: str, answered: bool = True) -> str:
    """The answer to the last question. Without `answered`, nobody said anything to those before."""
    said: list[Turn] = []
    answer = ""
    assistant = assistant_over(Bookcase())
    for question in questions:
        conversation = Conversation((*said, Turn(Role.USER, question, asked_now=True)))
        gated = await assistant.gate(conversation, Usage(), files=["shop.log", "depot.log"])
        query = gated.rewrite_query or question
        context = replace(cases.context(), conversation=ConversationContext(earlier_in(conversation)))
        toolset = Toolset(cases.tools_over(store, embedder=HashingEmbedder()), context)
        await toolset.prepare()
        result = await assistant.generate(conversation, query, [], Usage(), max_chars=1900, toolset=toolset)
        answer = result.answer or ""
        said += [Turn(Role.USER, question), *([Turn(Role.ASSISTANT, answer)] if answered else [])]
    return answer


@pytest.mark.parametrize(
    ("questions", "shown"),
    [
        ((FIRST, "what is on line 3 of shop.log?"), "shop.log:3 "),
        ((FIRST, "what is on line 2 of depot.log?"), "depot.log:2 "),
        ((FIRST, "last ERROR in depot.log?"), "depot.log:2 "),
        ((FIRST, "How many entries in z.log?"), "there is no file z.log"),
        ((FIRST, "what is on line 3 of b.log?"), "there is no file b.log"),
        ((FIRST, "and the last one?"), "shop.log:6 "),
        ((FIRST, "and WARN?"), "shop.log:3 "),
        ((FIRST, "and in depot.log?"), "depot.log:2 "),
        ((FIRST, "what came right after it?"), "shop.log:5 "),
        ((FIRST, "what were the next 2 lines?"), "shop.log:5-6 "),
        ((FIRST, "what came right after it?", "and then?"), "shop.log:6 "),
        (("my shop is slow\n[file: shop.log, 2 kB]", FIRST), "shop.log:4 "),
    ],
)
async def test_each_question_gets_its_own_answer(store: DocumentStore, questions: tuple[str, ...], shown: str) -> None:
    answer = await talk(store, *questions)
    assert shown in answer
    assert "Before:" not in answer


async def test_a_question_that_nobody_answered_helps_with_the_next(store: DocumentStore) -> None:
    assert "shop.log:6 " in await talk(store, FIRST, "and the last one?", answered=False)


@pytest.mark.parametrize(
    ("question", "language"), [(FIRST, "en"), ("Was ist der erste ERROR in shop.log, und in welcher Zeile?", "de")]
)
async def test_that_no_model_is_configured_is_said_in_the_language_of_the_question(
    store: DocumentStore, question: str, language: str
) -> None:
    assert (await talk(store, question)).endswith(f"\n{phrases(language).no_model_notice}")


async def test_what_was_asked_before_is_not_repeated_where_nothing_is_found(store: DocumentStore) -> None:
    answer = await talk(store, FIRST, "and in which line is ord-99999?")
    assert 'for "and in which line is ord-99999?": no entry mentions ord-99999' in answer


STORAGE = "kb:guides/storage.md"
MOVE = "how do I move the library to another disk?"
MY_MOVE = """\
# Moving the library

## To another disk

1. Tell Mara which disk it is.
2. Stop the library with `lamp stop`, and move it with `lamp carry`.
"""


async def answer_about(
    store: DocumentStore, question: str, *, asker: int = cases.FRAN, public: bool = True
) -> AnswerResult:
    """The answer to somebody who may be answered from a page of the documentation and from runbooks of their own."""
    assistant, page = assistant_over(Bookcase()), next(source for source in SOURCES if source.id == STORAGE)
    toolset = Toolset(
        cases.tools_over(store, embedder=HashingEmbedder(), sharing=[cases.FRAN]),
        cases.context(asker=asker, public=public),
    )
    await toolset.prepare()
    conversation = Conversation((Turn(Role.USER, question, asked_now=True),))
    return await assistant.generate(conversation, question, [page], Usage(), max_chars=1900, toolset=toolset)


async def test_the_askers_own_runbook_goes_before_the_documentation_where_nobody_else_reads_it(tmp_path: Path) -> None:
    """Pitfall 60."""
    store = cases.new_store(tmp_path)
    await cases.write_runbook(store, MY_MOVE, cases.FRAN, "Moving the library")
    documented = await answer_about(store, MOVE, asker=cases.MARA)
    assert "rsync -a" in (documented.answer or "")
    assert documented.citations == [STORAGE]
    assert (await answer_about(store, MOVE)).citations == [STORAGE]
    own = await answer_about(store, MOVE, public=False)
    assert "lamp carry" in (own.answer or "")
    assert "rsync" not in (own.answer or "")
    assert "Moving the library" in own.citations


async def test_a_runbook_about_something_else_leaves_the_answer_to_the_documentation(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    await cases.write_runbook(store, cases.RUNBOOK, cases.FRAN)
    assert (await answer_about(store, MOVE)).citations == [STORAGE]


async def test_whoever_speaks_of_their_own_steps_gets_those_though_the_documentation_has_more_of_the_words(
    tmp_path: Path,
) -> None:
    """Pitfall 60."""
    store = cases.new_store(tmp_path)
    await cases.write_runbook(store, MY_MOVE, cases.FRAN, "Moving the library")
    words = "move the library to another disk, stop the server, copy the media folder, set LF_MEDIA_ROOT?"
    assert (await answer_about(store, f"how do I {words}")).citations == [STORAGE]
    assert "Moving the library" in (await answer_about(store, f"what are my steps to {words}")).citations


@pytest.mark.parametrize("question", ["why does the import of my photos stop here?", "which pizza is best?"])
async def test_a_file_that_cannot_be_read_brings_in_no_page_and_is_spoken_of(question: str) -> None:
    """Pitfall 59."""
    assistant, files = assistant_over(Bookcase()), [UnreadableFile("a.exe could not be read: it is a program")]
    conversation = Conversation((Turn(Role.USER, question, asked_now=True),))
    assert (await assistant.select(question, question, (), 3, Usage(), files=files)).selected_source_ids == []
    toolset = Toolset({}, cases.context(), files)
    result = await assistant.generate(conversation, question, [], Usage(), max_chars=1900, toolset=toolset)
    assert result == AnswerResult(answer="a.exe could not be read: it is a program.", citations=[])
