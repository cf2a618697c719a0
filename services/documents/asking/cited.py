"""The lines that an earlier answer cites, where the answer is all that is left of it (DOCUMENT_QA 5.5)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from services.documents.results import Citation, ConversationContext
from services.documents.store.protocol import Document

_MOST = 10


def with_citations(context: ConversationContext | None, documents: Sequence[Document]) -> ConversationContext | None:
    """`context` with the citations of its last answer: as they were given, else as they are written in it."""
    if context is None or context.citations or not context.turns:
        return context
    return replace(context, citations=cited_in(context.turns[-1][1], documents))


def cited_in(answer: str, documents: Sequence[Document]) -> tuple[Citation, ...]:
    """`app.log:40`, `app.log:40-44` and "line 40 of app.log", of files that are there, in their order."""
    found: dict[int, Citation] = {}
    # The longest name first: what it matched is no other file's.
    for doc in sorted(documents, key=lambda doc: -len(doc.filename)):
        name = re.escape(doc.filename)
        for place in re.finditer(
            rf"(?<![\w./-]){name}:(?P<first>\d{{1,7}})(?:-(?P<last>\d{{1,7}}))?\b"
            rf"|\blines? (?P<only>\d{{1,7}}) (?:of|in) {name}(?![\w/-])",
            answer,
            re.IGNORECASE,
        ):
            first = int(place["first"] or place["only"])
            last = max(first, int(place["last"] or first))
            if last <= doc.n_lines and place.start() not in found:
                found[place.start()] = Citation(doc.doc_id, doc.filename, first, last, None, f"{doc.doc_id}:L{first}")
    return tuple(found[at] for at in sorted(found))[:_MOST]
