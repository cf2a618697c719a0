"""How property tests of the services run."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

QUICKLY = settings(suppress_health_check=[HealthCheck.too_slow])
"""Enough examples to find what they look for, and no failure because a machine is busy."""
