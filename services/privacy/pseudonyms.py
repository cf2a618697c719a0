"""Names for people that only the owner of a key can trace back to them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

from services.storage import files


def pseudonym(key: bytes, user_id: int) -> str:
    """The same for one person on one installation; only the owner of its `key` can tell whose it is."""
    return hmac.new(key, str(user_id).encode(), hashlib.sha256).hexdigest()[:16]


def pseudonym_key(path: Path) -> bytes:
    """The key of an installation, made where there is none yet. Blocking. Raises OSError."""
    if not path.exists():
        files.replace(path, new_pseudonym_key())
    return path.read_bytes()


def new_pseudonym_key() -> bytes:
    """For an installation that has none yet."""
    return secrets.token_hex(32).encode()
