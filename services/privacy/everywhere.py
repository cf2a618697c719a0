"""Forgets a person in the data that all servers share, and in that of each server."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from services.privacy.forgetting import Forgotten, forget, texts_in
from services.privacy.strangers import Surroundings
from services.storage import DataFolder, files
from services.team import TeamLibrary


class Learned(NamedTuple):
    """The knowledge of one team: its data folder, its raw archive, and its library (None: topics are left alone).
    Topics in `named_by_operator` keep their names.
    """

    folder: DataFolder
    raw: Path
    team: TeamLibrary | None = None
    named_by_operator: Collection[str] = ()


def texts_everywhere(learned: Sequence[Learned], user_id: int, others: Sequence[Path] = ()) -> list[str]:
    """Collect what a person wrote, before anything is removed. `others`: further archives, which are only read.
    Blocking. Raises OSError.
    """
    texts = [text for each in learned for text in texts_in(each.folder, each.raw, user_id)]
    return [*texts, *(text for each in others for text in texts_in(learned[0].folder, each, user_id))]


def forget_everywhere(
    shared: Learned,
    servers: Sequence[Learned],
    user_id: int,
    texts: list[str],
    surroundings: Surroundings | None = None,
) -> Forgotten:
    """Run `forget` on the shared data and on that of each server, and add up the results. `texts`: what the person
    wrote; texts found in recordings are added to it.
    """
    for server in servers:
        files.remove_folder(server.folder.regeneration)  # or it would be named, and gone by then
    done = forget(shared.folder, shared.raw, user_id, shared.team, surroundings, texts, shared.named_by_operator)
    for server in servers:
        done.add(forget(server.folder, server.raw, user_id, server.team, None, texts, server.named_by_operator))
    return done
