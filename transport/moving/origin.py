"""The file `.exported.json` of an exported folder: it lets `--adopt` verify that the log has not changed since the
export.

.exported.json    {"id": "5f2c…", "log": "2026-11-23T07:00:00Z", "last": {"team": 17, …}}
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from pydantic import TypeAdapter, ValidationError

from services.storage import files, read_text
from transport.layout import LOG, Layout

MARK = ".exported.json"


@dataclass(frozen=True, slots=True)
class FolderOrigin:
    """An export.

    Attributes:
        log: when the stream was made that it is from.
        last: by scope, the number of the last entry then.
    """

    id: str = ""
    log: str = ""
    last: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def owner(self) -> str:
        """Who owns what is adopted from this folder, until a process takes it over."""
        return f"app.py --adopt {self.id}".strip()


_ORIGIN = TypeAdapter(FolderOrigin)


async def origin_of(streams: JetStreamContext, layout: Layout) -> FolderOrigin:
    """Of an export that begins now."""
    last = {name: (await _last(streams, f"log.{name}.>"))[0] for name in layout.scopes()}
    return FolderOrigin(secrets.token_hex(8), await _made(streams), last)


def write_origin(root: Path, origin: FolderOrigin) -> None:
    files.renew(root / MARK, json.dumps(asdict(origin)).encode() + b"\n", flush=False)


def read_origin(root: Path) -> FolderOrigin:
    """One of nothing where the folder is not from an export."""
    try:
        return _ORIGIN.validate_json(read_text(root / MARK) or "{}")
    except ValidationError:
        return FolderOrigin()


async def untouched(streams: JetStreamContext, name: str, origin: FolderOrigin) -> bool:
    """Whether a scope is as it was exported into the folder, but for what was adopted from there since."""
    if not origin.id or origin.log != await _made(streams):
        return False
    last, _ = await _last(streams, f"log.{name}.>")
    _, epoch = await _last(streams, f"log.{name}.epoch")
    # Entries run out; but whoever changes a scope begins with an epoch.
    return last <= origin.last.get(name, 0) or epoch.get("owner") == origin.owner


async def _made(streams: JetStreamContext) -> str:
    return str((await streams.stream_info(LOG)).created)


async def _last(streams: JetStreamContext, subject: str) -> tuple[int, Mapping[str, Any]]:
    """The number of the last entry, and what it says where it is an epoch."""
    try:
        found = await streams.get_last_msg(LOG, subject)
    except NotFoundError:
        return 0, {}
    return found.seq or 0, json.loads(found.data or b"{}") if subject.endswith(".epoch") else {}
