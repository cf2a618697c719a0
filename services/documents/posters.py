"""Whose files an answer is made from: the asker's and the team's, and others' only where the asker speaks of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from services.documents.asking.plan import find_files
from services.documents.store.protocol import Document


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
        own = [doc for doc in documents if self.is_trusted(doc)]
        taken = {doc.filename.casefold() for doc in own}
        others = [doc for doc in documents if doc not in own and doc.filename.casefold() not in taken]
        meant = {doc.doc_id for doc in own} | {doc.doc_id for doc in others if self._is_meant(doc, documents)}
        return tuple(doc for doc in documents if doc.doc_id in meant)

    def is_trusted(self, doc: Document) -> bool:
        """Return True if the asker or a team member has posted the file."""
        return not self.poster_ids.isdisjoint(doc.poster_ids)

    def _is_meant(self, doc: Document, documents: Sequence[Document]) -> bool:
        posted_in = {origin.message_id for origin in doc.origins if origin.message_id is not None}
        later = [message for message in self.messages if any(message.id > each for each in posted_in)]
        return any(message.reply_to_id in posted_in or _names(message.text, doc, documents) for message in later)


def _names(text: str, doc: Document, documents: Sequence[Document]) -> bool:
    """Return True if a text has the whole name of a file. A name without an ending needs a noun, such as `log`."""
    last = doc.filename.casefold().rsplit("/", 1)[-1]
    return last in text.casefold() and doc.doc_id in find_files(text, documents).doc_ids
