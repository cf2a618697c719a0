"""Draws what the demo prints as `docs/demo.svg`.

python examples/picture.py            draws it
python examples/picture.py --check    exits 1 when the picture no longer shows what the demo prints
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from drawing import canvas, drawn

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "demo.svg"
TITLE = "python app.py --config examples/demo.yaml --replay examples/demo.jsonl"
COLUMNS = 110


def draw() -> str:
    """The demo as it looks in a terminal."""
    sys.path.insert(0, str(ROOT))
    from commands.replay import ReplayOptions, replay  # noqa: PLC0415 - found only once the path is set
    from settings import load  # noqa: PLC0415 - as above

    logging.disable(logging.CRITICAL)
    console = canvas(COLUMNS)
    replay(load(ROOT / "examples" / "demo.yaml"), ReplayOptions(ROOT / "examples" / "demo.jsonl"), console)
    return drawn(console, TITLE, "demo")


def main() -> int:
    picture = draw().encode()
    if "--check" in sys.argv[1:]:
        if PICTURE.is_file() and PICTURE.read_bytes() == picture:
            return 0
        print("docs/demo.svg is stale: run python examples/picture.py", file=sys.stderr)
        return 1
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_bytes(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
