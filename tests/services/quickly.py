"""How property tests run."""

from __future__ import annotations

from hypothesis import settings

QUICKLY = settings(max_examples=25, deadline=None)
"""For property tests: enough examples to find what they look for, and no failure because a machine is busy."""
