"""Which roles a process plays where the transport is NATS: `--role gateway,worker`."""

from __future__ import annotations

import argparse
from collections.abc import Generator
from contextlib import contextmanager

from assembly import Unusable

ROLES = ("gateway", "worker", "team", "knowledge")


def roles_of(text: str) -> tuple[str, ...]:
    """Parse a list of roles, such as `gateway,worker`, for argparse."""
    asked = [each.strip() for each in text.split(",")]
    if unknown := [each for each in asked if each not in ROLES]:
        raise argparse.ArgumentTypeError(f"there is no role {unknown[0]!r}: write some of {','.join(ROLES)}")
    return tuple(role for role in ROLES if role in asked)


@contextmanager
def requires_nats_extra() -> Generator[None]:
    """Turn a missing `nats` package during an import into Unusable."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "nats":
            raise
        raise Unusable("transport: nats needs the extra: run `make extra-nats`, or set transport: local") from None
