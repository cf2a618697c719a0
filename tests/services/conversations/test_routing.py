"""The routing table by itself; tests/operators/test_route.py shows it at work."""

from __future__ import annotations

from itertools import product

import pytest

from model.messages import AuthorType, Destination, PlaceKind
from services.conversations.routing import TABLE


def rows(author_type: AuthorType, kind: PlaceKind) -> list[tuple[str | None, Destination]]:
    """What the table says about an author in a place, in order."""
    return [
        (None if condition is None else condition.__name__, to)
        for author, places, condition, to in TABLE
        if author is author_type and kind in places
    ]


@pytest.mark.parametrize(("author_type", "kind"), list(product(AuthorType, PlaceKind)))
def test_everybody_has_a_last_row_without_a_condition_and_no_row_behind_it(
    author_type: AuthorType, kind: PlaceKind
) -> None:
    conditions = [condition for condition, _ in rows(author_type, kind)]
    assert conditions[-1] is None
    assert None not in conditions[:-1]
    assert len(conditions) == len(set(conditions))


def test_only_users_are_answered_and_only_the_team_is_captured() -> None:
    assert {author for author, _, _, to in TABLE if to is Destination.ANSWER} == {AuthorType.COMMUNITY_USER}
    assert {author for author, _, _, to in TABLE if to is Destination.CAPTURE} == {AuthorType.TEAM_MEMBER}


@pytest.mark.parametrize("kind", list(PlaceKind))
def test_the_first_thing_asked_is_whether_the_bot_is_addressed_and_whether_the_talk_is_private(
    kind: PlaceKind,
) -> None:
    """Pitfall 47."""
    assert rows(AuthorType.COMMUNITY_USER, kind)[0] == ("addresses_bot", Destination.ANSWER)
    assert rows(AuthorType.TEAM_MEMBER, kind)[0] == ("is_private", Destination.NOTHING)
