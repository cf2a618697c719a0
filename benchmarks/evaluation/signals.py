"""What a search shows of each question, as rows to fit the weights of its confidence to.

Of each project the search is asked its own questions, those of the other projects, and what people say in chats about
other things; by meaning, and by words alone.
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from assembly.answering import embedder_of, library_of, open_search
from benchmarks.evaluation import questions
from benchmarks.evaluation.asking import prepared
from benchmarks.evaluation.data import OTHER_WORDS, of_one_documentation
from model.events import Posted
from services.discord.recordings import read
from services.discord.wire import Decoder
from services.knowledge import Search
from services.search import is_question, language_of, may_ask
from settings import load

_FIRST_PAGES = 3


class About(StrEnum):
    OWN = "own"
    """A question that the project's documents answer."""
    SILENT = "silent"
    """One about the project that they do not answer."""
    FOREIGN = "foreign"
    CHAT = "chat"


class Query(NamedTuple):
    """`files`: those that answer, empty where none does. `apart`: it is in other words than the documentation's."""

    about: About
    id: str
    text: str
    files: frozenset[str] = frozenset()
    apart: bool = False


class Row(NamedTuple):
    """One query in one search.

    Attributes:
        by: `meaning` or `words`.
        right: whether one of the first three pages answers.
        apart: as of the query.
        signals: by the names that they have in `services.search.retrieval`.
    """

    project: str
    by: str
    about: About
    id: str
    right: bool
    apart: bool
    signals: Mapping[str, float | None]


async def written(projects: Mapping[Path, Path], file: Path, chats: Sequence[Path]) -> int:
    """Write the rows to `file`, as JSON Lines. `projects`: their documents. Gives the exit code."""
    logging.disable(logging.WARNING)
    asked = {
        documents: [query for folder in folders for query in queries_in(folder)]
        for documents, folders in of_one_documentation(projects).items()
    }
    talk = [query for chat in chats for query in asking_in(chat)]
    with file.open("w", encoding="utf-8") as out:
        for documents in asked:
            count = 0
            async for row in rows_of(documents.name, documents, queries_for(documents, asked) + talk):
                out.write(json.dumps(row._asdict(), ensure_ascii=False) + "\n")
                count += 1
            print(f"{documents.name}: {count} rows", flush=True)
    return 0


def read_rows(file: Path) -> list[Row]:
    rows = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    return [Row(**row)._replace(about=About(row["about"])) for row in rows]


def queries_in(folder: Path) -> list[Query]:
    """The questions of one set, as they are to its own documentation."""
    apart = folder.name.endswith(OTHER_WORDS)
    return [
        Query(About.OWN if each.files else About.SILENT, each.id, each.text, frozenset(each.files), apart)
        for each in questions.read(folder / "questions.jsonl")
    ]


def queries_for(documents: Path, asked: Mapping[Path, Sequence[Query]]) -> list[Query]:
    """The questions about all documentations, as they are to one of them."""
    others = [each for about, several in asked.items() if about != documents for each in several]
    return [*asked[documents], *(each._replace(about=About.FOREIGN, files=frozenset()) for each in others)]


def asking_in(chat: Path) -> Iterator[Query]:
    """What may be asked in a recording: the messages that one person writes in a row."""
    decoder = Decoder()
    events = (event for dispatch in read(chat) for event in decoder.decode(dispatch))
    said = (event.message for event in events if isinstance(event, Posted))
    for _, row in groupby(said, key=lambda message: message.author.id):
        messages = list(row)
        text = "\n".join(message.text for message in messages)
        if is_question(text) or may_ask(text):
            yield Query(About.CHAT, f"{chat.stem}:{messages[0].id}", text)


async def rows_of(project: str, documents: Path, queries: Sequence[Query]) -> AsyncIterator[Row]:
    """By meaning, only English is asked: confidence is told from cosines in no other language."""
    with tempfile.TemporaryDirectory(prefix="millrace-eval-") as made:
        settings = load(prepared(documents, Path(made)), {})
        for by, embedder in (("meaning", embedder_of(settings.search.embeddings)), ("words", None)):
            async with open_search(settings, library_of(settings), embedder) as search:
                for query in queries:
                    if by == "words" or language_of(query.text) == "en":
                        row = await _row(search, project, by, query)
                        if row is not None:
                            yield row


async def _row(search: Search, project: str, by: str, query: Query) -> Row | None:
    found = await search.find(query.text)
    if found.signals is None:
        return None
    pages = {hit.source_id.removeprefix("kb:") for hit in found.pages[:_FIRST_PAGES]}
    right = not pages.isdisjoint(query.files)
    return Row(project, by, query.about, query.id, right, query.apart, found.signals._asdict())
