"""`python -m benchmarks.documents [evaluate|gate|speed] [--data DIR] [--keep DIR] [--chroma ADDRESS]`.

`evaluate` (the default) asks every question of the suites in DIR (else in the folder that `EVAL_DATA` names, else those
that lie beside this file) and prints a table; with `EVAL_OUT` set, one JSON line a suite is
written there. `gate` shows what cosines right
and wrong passages of prose reach. `speed` measures search over 20,000 passages. `--keep` keeps what was embedded.
`--chroma` evaluates over the server of Chroma at ADDRESS, which must hold nothing yet.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.documents.evaluating import evaluate
from benchmarks.documents.gate import show_gate
from benchmarks.documents.speed import show_speed
from benchmarks.documents.suites import find, load
from benchmarks.evaluation import data


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.documents", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("evaluate", "gate", "speed"), default="evaluate")
    parser.add_argument(
        "--data", type=Path, default=data.folder(), help="see benchmarks/documents/suites.py for its layout"
    )
    parser.add_argument("--keep", type=Path, help="where to keep what was embedded, for the next run")
    parser.add_argument("--chroma", metavar="ADDRESS", help="an empty server of Chroma to evaluate over")
    options = parser.parse_args()
    suites = load(find(options.data))
    with tempfile.TemporaryDirectory() as folder:
        kept: Path = options.keep or Path(folder)
        if options.what == "speed":
            return asyncio.run(show_speed(Path(folder)))
        if options.what == "gate":
            return asyncio.run(show_gate(suites, kept))
        out = os.environ.get("EVAL_OUT")
        return asyncio.run(evaluate(suites, kept, Path(out) if out else None, options.chroma))


if __name__ == "__main__":
    sys.exit(main())
