"""The record of one reply, and its packed form in memory, since twenty thousand are kept."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, FiniteFloat

_Id = Annotated[int, Field(ge=0, lt=2**64)]


@dataclass(frozen=True, slots=True)
class Post:
    """The record of one reply, by its last piece."""

    at: FiniteFloat
    message_id: _Id
    place_id: _Id  # the thread that it is in
    asked_in: _Id  # where the question was written: a channel or a thread
    asker_id: _Id
    last_asked_id: _Id  # the last message of the part that it answers
    opened_thread: bool  # the bot opened the thread for this asker
    question: str  # empty where the bot was killed before it recorded the post, and found it later
    sources: tuple[str, ...]


_NUMBERS = struct.Struct("<d5Q?")
_TEXTS = json.JSONEncoder(ensure_ascii=False)  # `json.dumps` would make one for each post


def packed(post: Post) -> bytes:
    ids = post.message_id, post.place_id, post.asked_in, post.asker_id, post.last_asked_id
    texts = _TEXTS.encode([post.question, *post.sources])
    return _NUMBERS.pack(post.at, *ids, post.opened_thread) + texts.encode("utf-8", "surrogatepass")


def unpacked(packed: bytes) -> Post:
    at, message_id, place_id, asked_in, asker_id, last_asked_id, opened_thread = _NUMBERS.unpack_from(packed)
    question, *sources = json.loads(packed[_NUMBERS.size :].decode("utf-8", "surrogatepass"))
    return Post(at, message_id, place_id, asked_in, asker_id, last_asked_id, opened_thread, question, tuple(sources))


def asker_of(packed: bytes) -> int:
    """Return the asker of a packed post without unpacking its texts."""
    return _NUMBERS.unpack_from(packed)[4]
