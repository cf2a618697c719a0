"""One gateway dispatch, as it is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dispatch:
    at: float
    """When it was received, in seconds since 1970, UTC."""
    t: str
    """Discord's name of the type, such as `MESSAGE_CREATE`."""
    d: Mapping[str, object]
    """Discord's payload (API v10)."""
