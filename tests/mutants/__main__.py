"""Changes the product in many small ways, one at a time, and counts which of them the tests notice: `make mutants`."""

from __future__ import annotations

import argparse
import sys

from tests.mutants.areas import AREAS
from tests.mutants.results import ENOUGH, KILLED, ResultCounts, chosen, tally
from tests.mutants.running import Workshop


def judged(name: str, size: int, seed: int, only: list[str]) -> ResultCounts:
    """Runs one area's sample, or `only` these mutants, and prints its survivors and figures."""
    workshop = Workshop(name, AREAS[name])
    mutants = workshop.mutants()
    names = only or chosen(mutants, size, seed)
    counted = {*mutants, *names}
    codes = {name: code for name, code in workshop.run(names).items() if name in counted}
    for survivor in tally(name, names, codes).survivors:
        function = survivor.partition("__mutmut_")[0]
        if function in AREAS[name].at_import and not workshop.survives_from_the_start(survivor):
            codes[survivor] = KILLED
    told = tally(name, names, codes)
    sys.stdout.write(f"{workshop.differences(told.survivors)}{told.line()}\n")
    sys.stdout.flush()
    return told


def main(arguments: list[str]) -> int:
    """0: the tests of every area kill enough of its sample; 1: they do not."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"all, or some of: {', '.join(AREAS)}")
    parser.add_argument("--sample", type=int, default=200, help="how many mutants of each area (200)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--only", nargs="+", default=[], metavar="MUTANT", help="these, by name, of one area")
    given = parser.parse_args(arguments)
    if unknown := [area for area in given.areas if area not in AREAS]:
        parser.error(f"there is no area {unknown[0]}: {', '.join(AREAS)}")
    if given.only and len(given.areas) != 1:
        parser.error("--only needs the one area that these mutants are of")
    told = [judged(area, given.sample, given.seed, given.only) for area in given.areas or AREAS]
    return 0 if all(each.share >= ENOUGH for each in told) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
