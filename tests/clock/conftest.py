from tests.leaks import crashes

__all__ = ["crashes"]
