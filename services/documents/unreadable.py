"""How people are told that a file could not be read."""

from __future__ import annotations

from services.documents.limits import shown
from services.documents.store.protocol import Document


def unreadable(doc: Document) -> str:
    """Which file could not be read and why, in one clause without a full stop; or that it was removed."""
    name, reason = shown(doc.filename), doc.error.strip().removesuffix(".")
    for called in (name, doc.filename):
        if reason.startswith(f"{called} "):
            rest = reason.removeprefix(called).strip()
            # A file that was removed keeps its name, and no uploader.
            return f"{name} {rest}" if doc.origin.uploader_id is None else f"{name} could not be read: it {rest}"
    return f"{name} could not be read: {reason}" if reason else f"{name} could not be read"
