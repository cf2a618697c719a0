"""Whether what belongs to one server lies apart from what is shared, and from what belongs to others."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from settings.errors import Problem, dotted
from settings.sections import Settings


class _Place(NamedTuple):
    """`key`: names it; `path`: where it leads, without symlinks; `called`: what people know it by."""

    key: tuple[str, ...]
    path: str
    called: str


def overlapping_paths(settings: Settings, where: Callable[[Sequence[object]], str]) -> Iterator[Problem]:
    """One for each two owners of which a folder or list of one lies in those of the other: what is in both would be
    told in both. `settings`: placed; `where`: which line names a key.
    """
    owners = [_places(settings), *(_places(server, str(guild_id)) for guild_id, server in settings.servers.items())]
    for mine, others in itertools.combinations(owners, 2):
        pairs = (pair for pair in itertools.product(mine, others) if _meet(*pair))
        for first, second in itertools.islice(pairs, 1):
            # The longest key is the nearest to what the operator wrote for a server.
            named, beside = sorted((first, second), key=lambda place: -len(place.key))
            text = f"{named.called} must lie apart from {beside.called}: what is in both would be told in both"
            yield Problem(where(named.key), dotted(named.key), f"{text}; name another place")


def _places(settings: Settings, guild_id: str = "") -> list[_Place]:
    kb, above = settings.kb, ("guilds", guild_id, "kb") if guild_id else ("kb",)
    places = [
        _Place((*above, name), os.path.realpath(path), dotted((*above, name)))
        for name, path in (("sources_dir", kb.sources_dir), ("links_file_path", kb.links_file_path))
    ]
    if guild_id:
        home = settings.app.data_dir
        called = f"{home.parent.name}/{home.name} below app.data_dir"
        places.insert(0, _Place(("guilds", guild_id), os.path.realpath(home), called))
    return places


def _meet(one: _Place, other: _Place) -> bool:
    return f"{one.path}/".startswith(f"{other.path}/") or f"{other.path}/".startswith(f"{one.path}/")
