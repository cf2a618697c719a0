"""How it is said that a file could not be read."""

from __future__ import annotations

from services.documents.limits import shown
from services.documents.store.protocol import Document


def unreadable(doc: Document) -> str:
    """Which file could not be read and why, in one clause without a full stop. What was removed is said to be so."""
    name, reason = shown(doc.filename), doc.error.strip().removesuffix(".")
    for called in (name, doc.filename):
        if reason.startswith(f"{called} "):
            told = reason.removeprefix(called).strip()
            return f"{name} {told}" if _is_removed(doc) else f"{name} could not be read: it {told}"
    return f"{name} could not be read: {reason}" if reason else f"{name} could not be read"


def _is_removed(doc: Document) -> bool:
    """Its name stays when a file is removed, and nobody's."""
    return doc.origin.uploader_id is None
