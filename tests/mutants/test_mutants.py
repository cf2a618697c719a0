"""The figures that `make mutants` prints, and what it mutates."""

from __future__ import annotations

import pytest

from tests.mutants.areas import AREAS
from tests.mutants.results import chosen, tally, wilson
from tests.mutants.running import ROOT
from tests.mutants.wording import in_words_only

NAMES = [f"dataflow.fork.x_fork__mutmut_{number}" for number in range(500)]


def test_a_sample_follows_from_the_seed_and_stays_where_other_code_changes() -> None:
    sample = chosen(NAMES, 100, 1)
    assert len(set(sample)) == 100
    assert sample == chosen(NAMES[::-1], 100, 1)
    assert set(sample) != set(chosen(NAMES, 100, 2))
    half = set(NAMES[::2])
    assert set(sample) & half <= set(chosen(half, 100, 1))
    assert sorted(chosen(NAMES, 1000, 1)) == sorted(NAMES)


@pytest.mark.parametrize(
    ("hits", "tries", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (81, 263, 0.255, 0.366), (170, 200, 0.794, 0.893)],
)
def test_the_interval_is_wilson_s(hits: int, tries: int, low: float, high: float) -> None:
    """The fourth is of Newcombe (1998), table I."""
    assert wilson(hits, tries) == pytest.approx((low, high), abs=0.0006)


def test_what_no_test_reaches_survives_and_what_hangs_is_killed() -> None:
    codes: dict[str, int | None] = {"a": 1, "b": 0, "c": 33, "d": -24, "e": None, "f": 2}
    told = tally("web", "fdcba", codes)
    assert (told.of, told.run, told.killed, told.timed_out, told.survivors) == (6, 5, 3, 1, ("b", "c"))
    assert told.line() == "web: 6 mutants, 5 run, 3 killed (1 by time), 2 survived: 60.0% (95 %: 23.1% to 88.2%)"
    with pytest.raises(ValueError, match="not run: e, g"):
        tally("web", "age", codes)


MODULE = """
def x_fork__mutmut_orig(error):
    log.warning("%s died", error)
    return cast("Outcome", error)

class Fork:
    async def xǁForkǁend__mutmut_orig(self):
        self.log("is over")

    async def xǁForkǁend__mutmut_1(self):
        self.log("XXis overXX")
"""


@pytest.mark.parametrize(
    ("line", "other", "in_words"),
    [
        ('log.warning("%s died", error)', 'log.warning("XX%s diedXX", error)', True),
        ('log.warning("%s died", error)', 'log.warning("%S DIED", error)', True),
        ('cast("Outcome", error)', 'cast("OUTCOME", error)', True),
        ('cast("Outcome", error)', "cast(None, error)", True),
        ('log.warning("%s died", error)', "log.warning(None, error)", False),
        ('log.warning("%s died", error)', 'log.warning("%s died", None)', False),
        ('log.warning("%s died", error)', 'log.warning("%s died", )', False),
        ('log.warning("%s died", error)', "log.warning(error)", False),
        ('cast("Outcome", error)', 'cast("Outcome", None)', False),
        ('cast("Outcome", error)', 'cast("Outcome", )', False),
        ("return cast", "yield cast", False),
    ],
)
def test_what_differs_in_words_alone_is_left_out(line: str, other: str, in_words: bool) -> None:
    original, both, rest = MODULE.partition("\nclass")
    assert line in original
    mutant = original.replace(line, other).replace("mutmut_orig", "mutmut_1")
    assert in_words_only(original + mutant + both + rest) == ({"x_fork__mutmut_1"} if in_words else set())


@pytest.mark.parametrize("name", AREAS)
def test_what_an_area_names_is_there(name: str) -> None:
    area = AREAS[name]
    assert [code for code in area.code if not any(ROOT.glob(code))] == []
    assert [path for path in (*area.tests, *area.without) if not (ROOT / path).exists()] == []
    functions = [function.rpartition(".x_") for function in area.at_import]
    texts = {module: (ROOT / f"{module.replace('.', '/')}.py").read_text() for module, _, _ in functions}
    assert [name for module, _, name in functions if f"def {name}(" not in texts[module]] == []
