"""Questions read for a few files."""

from __future__ import annotations

from services.documents.asking.plan import Plan, plan
from services.documents.store.protocol import Document, Origin, State

NAMES = ("server.log", "deploy/compose.yaml", "staging/compose.yaml", "error.log", "worker-2.log", "app.log")


def documents(*names: str) -> list[Document]:
    return [Document(name, Origin(name), State.READY, n_lines=400) for name in names]


def planned(question: str, *names: str) -> Plan:
    """`names`: of the files that are there; without any, several usual ones."""
    return plan(question, documents(*names or NAMES))
