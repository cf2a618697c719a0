"""Forgets a person in what all servers share, and in what some keep by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from services.privacy.forgetting import Forgotten, forget
from services.privacy.strangers import Surroundings
from services.storage import DataFolder
from services.team import TeamLibrary


class Learned(NamedTuple):
    """What one team has taught: where it is kept, its raw archive, and its topics; None: they are left."""

    folder: DataFolder
    raw: Path
    team: TeamLibrary | None = None


def forget_everywhere(
    shared: Learned,
    servers: Sequence[Learned],
    user_id: int,
    surroundings: Surroundings | None = None,
    others: Sequence[Path] = (),
) -> Forgotten:
    """As `forget`, also in what some servers keep by themselves. `shared`: what is not theirs; `others`: archives of
    somebody else, which are only read.
    """
    elsewhere = [*(server.raw for server in servers), *others]
    done = forget(shared.folder, shared.raw, user_id, shared.team, surroundings, elsewhere)
    for server in servers:
        done.add(forget(server.folder, server.raw, user_id, server.team, elsewhere=others))
    return done
