"""What filing a pair costs: hardly more in a topic that holds many."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.team import archive
from services.team.filing import allowed_remarks
from tests.services.team.pairs import added, captured, opened, store


@contextmanager
def ids_read(monkeypatch: pytest.MonkeyPatch) -> Generator[list[str]]:
    """The ids that were looked into while the block ran."""
    seen: list[str] = []
    instant = archive.instant

    def noted(pair_id: str) -> object:
        seen.append(pair_id)
        return instant(pair_id)

    with monkeypatch.context() as patched:
        patched.setattr(archive, "instant", noted)
        yield seen


def test_a_pair_joins_a_full_topic_without_a_look_at_each_that_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [captured(number) for number in range(128)]
    store(tmp_path, *pairs)
    library = opened(tmp_path)
    looks: dict[int, int] = {}
    for number, pair in enumerate(pairs):
        with ids_read(monkeypatch) as seen:
            library.decide(added(pair, "gpu"), pair, put_off=True)
        looks[number] = len(seen)
    assert len(library.pairs_of_topic("gpu")) == len(pairs)
    assert looks[127] <= looks[8] + 8  # its place is found by halves


def test_where_a_model_has_no_remarks_nothing_is_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    held, pair = [captured(number) for number in range(100)], captured(200)
    with ids_read(monkeypatch) as seen:
        assert allowed_remarks(pair, held, (), ()) == ()
    assert seen == []
