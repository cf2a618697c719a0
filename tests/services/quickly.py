"""How property tests run."""

from __future__ import annotations

from hypothesis import settings

<<<<<<< HEAD
QUICKLY = settings(max_examples=40, deadline=None)
=======
QUICKLY = settings(max_examples=25, deadline=None)
>>>>>>> assistant
"""For property tests: enough examples to find what they look for, and no failure because a machine is busy."""
