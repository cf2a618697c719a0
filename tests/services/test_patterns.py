from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+")


def test_no_pattern_has_a_possessive_group() -> None:
    """Python 3.11.0 to 3.11.4 match `(?:a|b)*+` wrongly (CPython issue 106052), and `(?>(?:a|b)*)` as it should be.
    Those of single characters, `[ab]*+`, are right everywhere.
    """
    files = sorted(ROOT.glob("[a-z]*/**/*.py"))
    assert len(files) > 100
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if POSSESSIVE_GROUP.search(line)
    ]
    assert found == []
