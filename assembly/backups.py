"""What a backup of the data folder has to know of the settings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from services.storage import DataFolder
from services.storage.backups import CopyOrder
from settings import KnowledgeSettings, Settings

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
"""What the handler of the log names an earlier file by."""


def copy_order(settings: Settings) -> CopyOrder:
    """Give the order in which a backup copies the data folder: the reverse of the order in which the files are written.

    The marks of what is done come first: they vouch for all else. Then answers: those being posted before those that
    are recorded, as they go from the one to the other. Then what the team taught: topics, the decisions that they are
    made of, captures that wait, the archive that all of these are about. Likewise the index, what it is made of, and
    the pages. Last is what keeps something from being used (deleted files, runbooks that are not shown, people who
    opted out): the newest of these holds for all.
    """
    folder = DataFolder(settings.app.data_dir)
    first, last = [folder.seen, folder.outbox, folder.posts, folder.feedback], list[Path]()
    for each in (settings, *settings.servers.values()):
        own, kb = DataFolder(each.app.data_dir), each.kb
        first += (kb.team_state_path, kb.team_index_path, kb.team_index_cache_path, kb.team_topics_dir, own.decisions)
        first += (own.pending, kb.index_path, kb.index_cache_path)
        # The places of captures are noted after these.
        last += (kb.team_raw_dir, own.places, kb.web_fetch_cache_dir, kb.links_file_path, kb.sources_dir)
    last += (folder.feedback_key, folder.tombstones, folder.shown_runbooks, folder.opt_outs)
    return CopyOrder(first=_plain(*first), last=_plain(*last), without=_plain(*_logs(settings), *_secrets(settings)))


def _secrets(settings: Settings) -> Iterator[Path]:
    """Token and keys: a backup goes to places where these must not be."""
    root = settings.app.data_dir
    if root.is_dir():
        yield from (path for path in root.iterdir() if path.name == ".env" or path.name.startswith(".env."))


def elsewhere(settings: Settings) -> Iterator[str]:
    """Name the bot's files that a backup does not contain, each with the reason in brackets."""
    for path in _secrets(settings):
        yield f"{path} (it holds secrets; keep it apart)"
    root = os.path.realpath(settings.app.data_dir)
    for above, each in (("", settings), *((f"guilds.{name}.", server) for name, server in settings.servers.items())):
        yield from _outside(root, each.kb, above)
    if settings.documents.store != "embedded":
        yield f"documents.store (what the server at {settings.documents.store} keeps)"


def _outside(root: str, kb: KnowledgeSettings, above: str) -> Iterator[str]:
    for key in (
        "sources_dir",
        "links_file_path",
        "index_path",
        "index_cache_path",
        "web_fetch_cache_dir",
        "team_raw_dir",
        "team_topics_dir",
        "team_index_path",
        "team_index_cache_path",
        "team_state_path",
    ):
        (place,) = _plain(getattr(kb, key))
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


def _plain(*places: Path) -> tuple[Path, ...]:
    """Make paths absolute and resolve links in their folders, so that they can be compared; a link itself stays a
    link.
    """
    plain = (Path(os.path.abspath(place)) for place in places)  # noqa: PTH100 (as said)
    return tuple(Path(os.path.realpath(place.parent), place.name) for place in plain)
