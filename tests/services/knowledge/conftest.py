"""What the tests of this room open is closed."""

from tests.services.passage_stores import stores_closed

__all__ = ["stores_closed"]
