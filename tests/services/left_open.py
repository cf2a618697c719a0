"""Databases that tests open and need not close: Python 3.13 warns of those that are left open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from services.documents.store.collection_files import CollectionFiles
from services.search import PassageStore


@pytest.fixture(autouse=True)
def stores_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made: list[PassageStore | CollectionFiles] = []

    def noted(kind: type[PassageStore | CollectionFiles]) -> None:
        init = kind.__init__

        def noting(store: Any, *args: Any, **kwargs: Any) -> None:
            init(store, *args, **kwargs)
            made.append(store)

        monkeypatch.setattr(kind, "__init__", noting)

    noted(PassageStore)
    noted(CollectionFiles)
    yield
    for store in made:
        store.close()
