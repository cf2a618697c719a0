from tests.readers import idle_readers, kept_readers

__all__ = ["idle_readers", "kept_readers"]
