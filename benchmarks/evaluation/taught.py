"""Which conversations there is something to learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from model.messages import AuthorType

USER, TEAM = AuthorType.COMMUNITY_USER, AuthorType.TEAM_MEMBER


def taught(names: Mapping[int, int], spoken_by: Mapping[int, AuthorType]) -> dict[int, tuple[int, ...]]:
    """The conversations to learn from, by name: those in which a team member speaks after a community user.

    `names`: the conversation of each message. Gives the message ids of the whole conversation, in order.
    """
    conversations: dict[int, list[int]] = {}
    for message_id in sorted(names):
        conversations.setdefault(names[message_id], []).append(message_id)
    return {name: tuple(ids) for name, ids in conversations.items() if teaches([spoken_by[i] for i in ids])}


def teaches(author_types: Sequence[AuthorType]) -> bool:
    """Whether the team has answered a user, by who said each message, in order."""
    asked = author_types.index(USER) if USER in author_types else len(author_types)
    return TEAM in author_types[asked:]
