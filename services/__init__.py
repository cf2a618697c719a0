"""Whom operators and sinks talk to, in rooms. A room exports what its `__init__` imports."""
