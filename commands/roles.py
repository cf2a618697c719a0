"""Which roles a process plays where the transport is NATS: `--role gateway,worker`."""

from __future__ import annotations

import argparse

ROLES = ("gateway", "worker", "team", "knowledge")


def roles_of(text: str) -> tuple[str, ...]:
    """For argparse."""
    asked = [each.strip() for each in text.split(",")]
    if unknown := [each for each in asked if each not in ROLES]:
        raise argparse.ArgumentTypeError(f"there is no role {unknown[0]!r}: write some of {','.join(ROLES)}")
    return tuple(role for role in ROLES if role in asked)
