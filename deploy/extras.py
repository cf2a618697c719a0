"""Prints what pip installs for extras of pyproject.toml: `python deploy/extras.py pdf nats`.

The image and `make extra-…` use it.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def main(names: Sequence[str]) -> int:
    """Print a requirement a line. Exit code 2: an extra is unknown, and the error output says which there are."""
    extras: dict[str, list[str]] = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    for name in names:
        if name not in extras:
            print(f"there is no extra {name!r}; known are {', '.join(sorted(extras))}", file=sys.stderr)
            return 2
    print(*(requirement for name in names for requirement in extras[name]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
