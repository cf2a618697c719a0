"""The files of a thread as one asker has them: under which names, and of which of them an answer may be made."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

from model.words import one_line
from services.documents.asking.names import find_files
from services.documents.store.protocol import Document, newest_revisions

_BEFORE_ENDING = re.compile(r"(?<=\w)(?=\.[A-Za-z]\w*(?:\.\d+)?$)|$")


def names_for(documents: Sequence[Document], asker_id: int | None = None) -> Mapping[str, str]:
    """Return the name of each document by its id. `documents`: all of a collection, in their order.

    Where several people posted searchable files of one name, those of the asker keep it, or those of whoever posted
    first. The others are numbered: `app.log`, `app-2.log`. All revisions of one person have the same name.
    """
    newest = newest_revisions(documents)

    def owner(doc: Document) -> int | None:
        """Return the person whose file it is: the asker, if that is possible."""
        posters = sorted((each.uploader_id for each in doc.origins), key=lambda poster: poster != asker_id)
        return next((each for each in posters if newest.get((doc.filename, each)) == doc.doc_id), posters[0])

    searchable = [(doc, owner(doc)) for doc in documents if doc.state.searchable]
    first_owners: dict[str, int | None] = {}
    for doc, person in sorted(searchable, key=lambda pair: pair[1] != asker_id):
        first_owners.setdefault(_folded(doc.filename), person)
    taken = {_folded(doc.filename) for doc, _ in searchable}
    names = {doc.doc_id: doc.filename for doc in documents}
    given = dict[tuple[str, int | None], str]()
    for doc, person in searchable:
        if (doc.filename, person) not in given:
            is_first = first_owners[_folded(doc.filename)] == person
            given[doc.filename, person] = doc.filename if is_first else _numbered(doc.filename, taken)
        names[doc.doc_id] = given[doc.filename, person]
        taken.add(_folded(names[doc.doc_id]))
    return names


def with_distinct_names(documents: Sequence[Document], asker_id: int | None = None) -> tuple[Document, ...]:
    """Return the documents with the names that `names_for` gives them, so that files of one name can be told apart."""
    names = names_for(documents, asker_id)
    return tuple(replace(doc, origin=replace(doc.origin, filename=names[doc.doc_id])) for doc in documents)


def _folded(filename: str) -> str:
    return one_line(filename).strip().casefold()


def _numbered(filename: str, taken: set[str]) -> str:
    numbered = (_BEFORE_ENDING.sub(f"-{number}", filename, count=1) for number in count(2))
    return next(name for name in numbered if _folded(name) not in taken)


class AskerMessage(NamedTuple):
    """A message of the asker. `reply_to_id`: the id of the message that it replies to."""

    id: int
    text: str
    reply_to_id: int | None = None


@dataclass(frozen=True, slots=True)
class AskersFiles:
    """Chooses the files of a thread for one asker.

    Attributes:
        poster_ids: the people whose files are used by themselves: the asker, and team members who posted files.
        messages: what the asker wrote in this conversation.
    """

    poster_ids: frozenset[int]
    messages: tuple[AskerMessage, ...] = ()

    def choose(self, documents: Sequence[Document]) -> tuple[Document, ...]:
        """Return the documents of which an answer may be made. `documents`: all of a thread, under their names for the
        asker.

        A file of somebody else is used if the asker, after it was posted, has replied to its message or named it. The
        name of a file of their own, or without the ending, does not count: people choose the names of their files.
        """
        own = {doc.doc_id: doc.filename.casefold() for doc in documents if self.is_trusted(doc)}
        taken = set(own.values())
        others = [doc for doc in documents if doc.doc_id not in own and doc.filename.casefold() not in taken]
        named = {message.id: _named_in(message.text, others, documents) for message in self.messages if others}
        meant = own.keys() | {doc.doc_id for doc in others if self._is_meant(doc, named)}
        return tuple(doc for doc in documents if doc.doc_id in meant)

    def is_trusted(self, doc: Document) -> bool:
        """Return True if the asker or a team member has posted the file."""
        return not self.poster_ids.isdisjoint(doc.poster_ids)

    def _is_meant(self, doc: Document, named: Mapping[int, Container[str]]) -> bool:
        posted_in = {origin.message_id for origin in doc.origins if origin.message_id is not None}
        later = [message for message in self.messages if any(message.id > each for each in posted_in)]
        return any(message.reply_to_id in posted_in or doc.doc_id in named[message.id] for message in later)


def _named_in(text: str, others: Sequence[Document], documents: Sequence[Document]) -> set[str]:
    """Return the ids of those of `others` whose whole name a text has. A name without an ending needs a noun, such as
    `log`.
    """
    folded = text.casefold()
    written = {doc.doc_id for doc in others if doc.filename.casefold().rsplit("/", 1)[-1] in folded}
    return written.intersection(find_files(text, documents).doc_ids) if written else written
