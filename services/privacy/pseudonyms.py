"""Pseudonyms for people, which only the owner of a key can trace back."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

from services.storage import files


def pseudonym(key: bytes, user_id: int) -> str:
    """Return the pseudonym of a person, the same each time on one installation. Only the owner of its `key` can trace
    it back.
    """
    return hmac.new(key, str(user_id).encode(), hashlib.sha256).hexdigest()[:16]


def pseudonym_key(path: Path) -> bytes:
    """The key of an installation, made where there is none yet. Blocking. Raises OSError."""
    if not path.exists():
        files.replace(path, new_pseudonym_key())
    return path.read_bytes()


def new_pseudonym_key() -> bytes:
    """Make a key, for an installation that has none yet."""
    return secrets.token_hex(32).encode()
