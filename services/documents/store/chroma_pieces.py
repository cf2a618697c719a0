"""A packed document as records of Chroma: one head, and pieces that are named after what is in them."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from services.documents.store.packing import Packed

PIECE_BYTES = 160_000  # of packed text in one record

VECTORS_A_PIECE = 64  # chunks whose vectors lie together

_NAME_CHARS = 32

Record = dict[str, Any]
"""The metadata of a record: plain values. Chroma adds what is written to what is there, so each has all its keys."""


def head_of(packed: Packed, doc_id: str) -> tuple[Record, Mapping[str, Callable[[], str]]]:
    """The head of a document, and what is in each of its pieces, by the piece's name; packed only where it is asked."""
    held = packed.rows[doc_id]
    body = _json({key: held[key] for key in sorted(held.keys() - {"order", "documents"})}).encode()
    vectors = dict(_vector_pieces(packed.vectors.get(doc_id, {})))
    name = _named(body)
    count = len(body) // PIECE_BYTES + 1
    pieces: dict[str, Callable[[], str]] = {
        f"{name}.{at}": lambda at=at: _text(zlib.compress(body[at * PIECE_BYTES : (at + 1) * PIECE_BYTES]))
        for at in range(count)
    }
    pieces.update({_named(blob): lambda blob=blob: _text(blob) for blob in vectors.values()})
    head = {
        "kind": "document",
        "doc_id": doc_id,
        "gone": False,
        "order": held["order"],
        "row": _json(held["documents"]),
        "body": name,
        "count": count,
        "vectors": " ".join(_named(vectors[group]) for group in sorted(vectors)),
    }
    return head, pieces


def emptied(head: Record) -> Record:
    """The same, of no pieces."""
    return {**head, "body": "", "count": 0, "vectors": ""}


def piece_names(head: Record) -> list[str]:
    """Of the text, in order, then of the vectors."""
    return [*(f"{head['body']}.{at}" for at in range(head["count"])), *str(head["vectors"]).split()]


def joined(head: Record, pieces: Mapping[str, str]) -> tuple[Record, dict[int, bytes]]:
    """The rows and the vectors of a document. Raises KeyError: a piece is missing."""
    texts = [pieces[name] for name in piece_names(head)]
    body = b"".join(zlib.decompress(base64.b85decode(text)) for text in texts[: head["count"]])
    rows = {**json.loads(body), "order": head["order"], "documents": json.loads(head["row"])}
    vectors: dict[int, bytes] = {}
    for text in texts[head["count"] :]:
        vectors.update(_vectors_in(base64.b85decode(text)))
    return rows, vectors


def _vector_pieces(vectors: Mapping[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """How many there are, their chunks' numbers, then the vectors."""
    groups: dict[int, list[int]] = {}
    for index in sorted(vectors):
        groups.setdefault(index // VECTORS_A_PIECE, []).append(index)
    for group, indices in groups.items():
        numbers = np.array([len(indices), *indices], dtype="<i4").tobytes()
        yield group, numbers + b"".join(vectors[index] for index in indices)


def _vectors_in(blob: bytes) -> Iterator[tuple[int, bytes]]:
    count = int(np.frombuffer(blob, "<i4", 1)[0])
    indices = np.frombuffer(blob, "<i4", count, 4)
    vectors = blob[4 * (count + 1) :]
    width = len(vectors) // count
    for at, index in enumerate(indices.tolist()):
        yield index, vectors[at * width : (at + 1) * width]


def _named(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_NAME_CHARS]


def _text(content: bytes) -> str:
    return base64.b85encode(content).decode()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
