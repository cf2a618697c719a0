"""Decides which files of the data folder a backup copies, and in which order."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from assembly.data_folder import KB_PATHS
from services.storage import DataFolder
from services.storage.backups import CopyOrder
from settings import KnowledgeSettings, Settings

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
"""The ending of earlier log files."""


def copy_order(settings: Settings) -> CopyOrder:
    """Give the order in which a backup copies the data folder: the reverse of the order in which the files are written.

    First the watermarks, which say that messages are done. Then answers: those being posted or waiting for
    approval, before recorded ones, which they become. Then team knowledge: topics, the decisions that they are made
    of, pending captures, and the archive that all of these are about. Likewise the index, its cache, and the pages.
    Last the lists that keep data from being used (deleted files, runbooks that are not shown, people who opted
    out): their newest state counts.
    """
    folder = DataFolder(settings.app.data_dir)
    first, last = [folder.watermarks, folder.outbox, folder.drafts, folder.posts, folder.feedback], list[Path]()
    for each in settings.servers.values():
        server_folder, kb = DataFolder(each.app.data_dir), each.kb
        first += (
            kb.team_state_path,
            kb.team_index_path,
            kb.team_index_cache_path,
            kb.team_topics_dir,
            server_folder.decisions,
        )
        first += (server_folder.pending, kb.index_path, kb.index_cache_path)
        # The places of captures are noted after these.
        last += (
            kb.team_raw_dir,
            server_folder.places,
            kb.web_fetch_cache_dir,
            kb.links_file_path,
            *kb.document_folders,
        )
    last += (folder.feedback_key, folder.tombstones, folder.shown_runbooks, folder.opt_outs)
    return CopyOrder(
        first=_absolute(*first), last=_absolute(*last), excluded=_absolute(*_logs(settings), *_secrets(settings))
    )


_SECRETS = re.compile(r"\.env(?:rc|\..*)?~?|.*\.env~?", re.IGNORECASE | re.DOTALL)
"""Names of files with variables: `.env`, `.env.local`, `.envrc`, `prod.env`, and an editor's copies."""


def _secrets(settings: Settings) -> Iterator[Path]:
    """Return the paths of the token and the keys: a backup goes to places where these must not be."""
    paths = settings.app.data_dir.rglob("*")
    yield from sorted(path for path in paths if not path.is_dir() and _is_secret(path))


def _is_secret(path: Path) -> bool:
    # Not `resolve()`: before Python 3.13 it raises where a link leads to itself.
    leads_to = Path(os.path.realpath(path)).name
    return bool(_SECRETS.fullmatch(path.name) or _SECRETS.fullmatch(leads_to))


def files_not_in_backup(settings: Settings) -> Iterator[str]:
    """Name the bot's files that a backup does not contain, each with the reason in brackets."""
    for path in _secrets(settings):
        yield f"{path} (it holds secrets; keep it apart)"
    root = os.path.realpath(settings.app.data_dir)
    for guild_id, each in settings.servers.items():
        yield from _outside(root, each.kb, "" if guild_id is None else f"guilds.{guild_id}.")
    if settings.documents.store != "embedded":
        yield f"documents.store (what the server at {settings.documents.store} keeps)"


def _outside(root: str, kb: KnowledgeSettings, above: str) -> Iterator[str]:
    for key in KB_PATHS:
        (place,) = _absolute(getattr(kb, key))
        if not place.is_relative_to(root):
            yield f"{above}kb.{key} ({place} lies outside of app.data_dir)"


def _logs(settings: Settings) -> Iterator[Path]:
    path = settings.logging.file.path
    if path is not None:
        yield path
        there = path.parent.iterdir() if path.parent.is_dir() else ()
        for each in there:
            base, _, tail = each.name.rpartition(".")
            if base == path.name and _DAY.fullmatch(tail):
                yield each


def _absolute(*places: Path) -> tuple[Path, ...]:
    """Make paths absolute, and resolve links in their folders, so that they can be compared; links themselves stay."""
    plain = (Path(os.path.abspath(place)) for place in places)  # noqa: PTH100 (as said)
    return tuple(Path(os.path.realpath(place.parent), place.name) for place in plain)
