"""Collections as objects of the bucket `evidence`: their names there, and their SQLite files compressed."""

from __future__ import annotations

import contextlib
import uuid
import zlib
from collections.abc import Generator
from pathlib import Path

from services.documents.store import naming

FOLDERS = ((naming.CASE_PREFIX, "evidence"), (naming.USER_PREFIX, "runbooks"))
_LEVEL, _READ_BYTES = 1, 1 << 20


def object_name(name: str) -> str | None:
    """Of a collection: its path below a data folder. None: it is kept in this process only, and made anew elsewhere."""
    folder = next((folder for prefix, folder in FOLDERS if name.startswith(prefix)), None)
    return None if folder is None else f"{folder}/{name}.sqlite"


def collection_of(key: str) -> str | None:
    """The other way round. None: it is no collection's."""
    name = key.rpartition("/")[2].removesuffix(".sqlite")
    return name if object_name(name) == key else None


@contextlib.contextmanager
def scratch(folder: Path) -> Generator[Path]:
    """A path for a file that is gone afterwards."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f".unfinished-{uuid.uuid4().hex}"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def pack(path: Path) -> bytes:
    """The content of a file, compressed. Blocking."""
    packer, encode_compressed = zlib.compressobj(_LEVEL), bytearray()
    with path.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            encode_compressed += packer.compress(piece)
    return bytes(encode_compressed + packer.flush())


def unpack(content: bytes, path: Path) -> None:
    """Make a file of what `pack` gave. Blocking."""
    unpacker = zlib.decompressobj()
    with path.open("wb") as file:
        while content:
            file.write(unpacker.decompress(content, _READ_BYTES))
            content = unpacker.unconsumed_tail
        file.write(unpacker.flush())
