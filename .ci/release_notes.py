"""Prints what CHANGELOG.md says of a version, for its release: `python .ci/release_notes.py 0.2.0`."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(version: str) -> int:
    """Print the notes. Exit code 2: there are none, or the program has another version; the error output says which."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    # A heading is `## 0.2.0`, and may go on with a date.
    sections = dict(re.findall(r"^## (\S+).*\n((?:(?!## ).*\n)*)", changelog, re.MULTILINE))
    notes = sections.get(version, "").strip()
    program = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if not notes:
        print(f"CHANGELOG.md has no notes of {version}; its headings are {', '.join(sections)}", file=sys.stderr)
        return 2
    if version != program:
        print(f"pyproject.toml has version {program}, not {version}: change it, and tag that commit", file=sys.stderr)
        return 2
    # A release shows each end of a line, so an entry becomes one line.
    print(re.sub(r"\n +(?=[^\s-])", " ", notes))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[-1]))
