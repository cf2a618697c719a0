"""What is said where nothing was found is said in the language of the question."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from services.documents.store.document_store import DocumentStore
from services.documents.tools.libraries import CASE, Status
from tests.services.documents import cases

QUESTION = "Warum geht der Drucker im Keller nicht mehr?"


@pytest.fixture
def store(tmp_path: Path) -> DocumentStore:
    return cases.new_store(tmp_path)


async def test_a_file_that_is_being_read_is_told_of_in_the_language_of_the_question(store: DocumentStore) -> None:
    await store.expect(cases.case(), cases.new("app.log", cases.LOG).origin)
    tool = cases.tools_over(store)[CASE]
    result = await tool.ask(cases.context(), QUESTION)
    assert result.status is Status.INDEXING
    assert result.answer == "Ich lese noch Dateien ein (1 von 1); frag gleich noch mal."


async def test_a_fixed_language_is_kept_to(store: DocumentStore) -> None:
    await store.expect(cases.case(), cases.new("app.log", cases.LOG).origin)
    tool = replace(cases.tools_over(store)[CASE], reply_language="en")
    assert (await tool.ask(cases.context(), QUESTION)).answer.startswith("1 of 1 file being indexed")
