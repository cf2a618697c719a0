"""What keeps a command from starting."""

from __future__ import annotations


class Unusable(Exception):
    """Options or files that cannot be used: one readable line that names them and the remedy. Nothing was done."""
