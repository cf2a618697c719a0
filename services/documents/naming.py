"""Names for the files of a thread, so that files of one name by several people can be told apart."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from model.words import one_line
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
    owners: defaultdict[str, dict[int | None, None]] = defaultdict(dict)
    for doc, person in sorted(searchable, key=lambda pair: pair[1] != asker_id):
        owners[_folded(doc.filename)][person] = None
    taken = {_folded(doc.filename) for doc, _ in searchable}
    names = {doc.doc_id: doc.filename for doc in documents}
    given = dict[tuple[str, int | None], str]()
    for doc, person in searchable:
        if (doc.filename, person) not in given:
            is_first = next(iter(owners[_folded(doc.filename)])) == person
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
