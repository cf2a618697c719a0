"""Search as the parts of the program share it."""

from __future__ import annotations

import pytest

from assembly.answering import team_search
from services.search import PassageStore
from tests.searching import by_words
from tests.world import Shelf


def test_what_is_kept_for_the_team_alone_is_closed_and_what_all_share_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    search, shelf, closed = by_words(Shelf()), Shelf(), list[PassageStore]()

    def close(store: PassageStore) -> None:
        closed.append(store)

    with monkeypatch.context() as patched:
        patched.setattr(PassageStore, "close", close)
        with team_search(search, shelf) as searching:
            topics, kb = searching.stores
            assert kb is search.kb
            assert closed == []
        assert closed == [topics]
