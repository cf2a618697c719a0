"""Exit codes, checks of several commands, and parsers of command line options that need more than argparse. Imports
nothing heavy, so that app.py can use it for --help.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from assembly import Unusable
from model.messages import is_snowflake
from model.processes import ROLES

DONE, FAILED, UNUSABLE = 0, 1, 2
"""Exit codes: done; finished with failures or cut off; not started, as configuration or input cannot be used."""


def parse_roles(text: str) -> tuple[str, ...]:
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


def check_path_given(option: str, path: Path, what: str) -> None:
    """Refuse an empty path, such as that of an unset shell variable. `what`: file or folder. Raises Unusable."""
    if path == Path():
        raise Unusable(f"{option} needs the name of a {what}")


def check_data_dir(root: Path, option: str = "") -> None:
    """Refuse a data folder that does not exist. `option`: the one that names it; empty: the configuration does. Raises
    Unusable.
    """
    if not root.is_dir():
        right = "the right one" if option else "this the right --config"
        key, asked = option or "app.data_dir", f"is {'it ' if option else ''}{right}?"
        raise Unusable(f"{key}: {root} is no folder, so nothing is kept there; {asked}")


MAX_SHARDS = 100_000  # no bot has so many

_SHARDS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?/([0-9]{1,9})", re.ASCII)


def parse_shards(text: str) -> tuple[range, int]:
    """Parse a range of shards for argparse: `0-15/64` is shards 0 to 15 of 64, `3/64` is one shard."""
    found = _SHARDS.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError("write the first and the last shard and how many there are: 0-15/64, or 3/64")
    first, last, count = int(found[1]), int(found[2] or found[1]), int(found[3])
    if not 0 < count <= MAX_SHARDS:
        raise argparse.ArgumentTypeError(f"there are 1 to {MAX_SHARDS:,} shards in all, not {count}: 0-15/64")
    if last < first:
        raise argparse.ArgumentTypeError(f"the first shard comes first: {last}-{first}/{count}")
    if last >= count:
        raise argparse.ArgumentTypeError(f"shards are counted from 0: the last of {count} is {count - 1}")
    return range(first, last + 1), count


def visible(text: str) -> str:
    """Return `text` in one line, with each invisible character replaced by U+FFFD."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def parse_positive(text: str) -> float:
    """Parse a number above zero for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("write a number above 0, such as 1 or 60")
    return number


def parse_count(text: str) -> int:
    """Parse a whole number above zero for argparse."""
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS and int(text)):
        raise argparse.ArgumentTypeError("write a whole number above 0, such as 14")
    return int(text)


MOST_DIGITS = 9
MOST_DAYS = 36_525.0


def parse_days(text: str) -> float:
    """Parse a time such as 7d, 12h or 4w for argparse. Returns days."""
    unit = {"h": 1 / 24, "d": 1.0, "w": 7.0}.get(text[-1:])
    if unit is None:
        raise argparse.ArgumentTypeError("write a time such as 7d, 12h or 4w")
    number = parse_positive(text[:-1]) * unit
    if number > MOST_DAYS:
        raise argparse.ArgumentTypeError(f"{text} is more than a hundred years; write a time such as 7d, 12h or 4w")
    return number


def parse_user_id(text: str) -> int:
    """Parse the id of a Discord user for argparse."""
    return _parse_id(text, "user")


def parse_server_id(text: str) -> int:
    """Parse the id of a Discord server for argparse."""
    return _parse_id(text, "server")


def _parse_id(text: str, of: str) -> int:
    if not is_snowflake(text):
        raise argparse.ArgumentTypeError(f"write the id of a Discord {of}, such as 1458745245675032710")
    return int(text)
