"""What the tests of this room open is closed."""

from tests.readers import idle_readers, kept_readers
from tests.services.left_open import stores_closed

__all__ = ["idle_readers", "kept_readers", "stores_closed"]
