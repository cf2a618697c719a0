"""What the tests of this room open is closed."""

from tests.services.left_open import stores_closed

__all__ = ["stores_closed"]
