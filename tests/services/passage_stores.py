"""Stores of passages that tests open and need not close: Python 3.13 warns of databases that are left open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from services.search import PassageStore


@pytest.fixture(autouse=True)
def stores_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made: list[PassageStore] = []
    init = PassageStore.__init__

    def noted(store: PassageStore, *args: Any, **kwargs: Any) -> None:
        init(store, *args, **kwargs)
        made.append(store)

    monkeypatch.setattr(PassageStore, "__init__", noted)
    yield
    for store in made:
        store.close()
