"""What a model is shown of the right page: whether the excerpts hold the words that answer, and how long they are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from assembly.answering import embedder_of, library_of, open_search
from benchmarks.evaluation.questions import Question
from commands.evaluating.runs import contains_any
from operators.answering import add_best_page
from services.knowledge import SourceUnavailable, excerpts
from settings import load


class Shown(NamedTuple):
    """The excerpts for one question. `holds`: they have one of the strings that answer it."""

    holds: bool
    chars: int


def shown(asked: Sequence[Question], config: Path) -> list[Shown]:
    """For each question that is answered: of the page that answers it and the one that joins what a model selects."""
    return asyncio.run(_shown(asked, config))


async def _shown(asked: Sequence[Question], config: Path) -> list[Shown]:
    settings = load(config, {})
    library, found = library_of(settings), list[Shown]()
    async with open_search(settings, library, embedder_of(settings.search.embeddings)) as search:
        for question in asked:
            if not question.files:
                continue
            hits = await search.find(question.text)
            try:
                sources = [await library.load(each) for each in add_best_page([f"kb:{question.files[0]}"], hits)]
            except SourceUnavailable:
                found.append(Shown(holds=False, chars=0))
                continue
            given = await excerpts.fit_sources(sources, question.text, search, settings.ai_response.max_source_chars)
            holds = any(contains_any(source.text, question.words) for source in given)
            found.append(Shown(holds, sum(len(source.text) for source in given)))
    return found
