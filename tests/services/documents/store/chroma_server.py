"""A server of Chroma on loopback, where somebody has started one."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from services.documents.store.protocol import DocumentStore

ADDRESS = "MILLRACE_CHROMA"
"""An environment variable: `http://127.0.0.1:8000`."""


def new_store(folder: Path) -> DocumentStore:
    """Skips the test where there is no server, or nothing to speak to it with."""
    address = os.environ.get(ADDRESS)
    if importlib.util.find_spec("chromadb") is None:
        pytest.skip("the extra `chroma` is not installed")
    if not address:
        pytest.skip(f"no server of Chroma: start one (`chroma run`) and set {ADDRESS} to its address")
    from services.documents.store.chroma import ChromaStore  # noqa: PLC0415 (its client may be missing)

    return ChromaStore(address, folder)
