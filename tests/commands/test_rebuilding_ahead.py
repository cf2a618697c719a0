"""`--regen` asks a model ahead: in a third of the time, and for the same library, byte for byte (Pitfall 73)."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from clock import Deadlock, VirtualLoop, now
from commands import regen
from services.llm import Asker
from services.team import Pair
from settings import Settings, load
from tests.services.storage.power import Machine, PowerCut
from tests.services.team.pairs import added, everything, is_whole, opened, store
from tests.team import START, pair
from tests.thinking import Thinking

SUBJECTS = (
    "apples bears cats dogs eggs figs goats hats ices jars keys lamps maps nuts owls pens quills rats".split()  # noqa: SIM905 (easier to read)
)
BEGUN = START + 86_400


def talks(count: int, subjects: int, seed: int) -> list[Pair]:
    """Conversations about so many subjects, some of which come up more often than others; a few are chatter."""
    chance = random.Random(seed)  # noqa: S311 (no secret)
    weights = [1 / (rank + 2) for rank in range(subjects)]
    drawn = chance.choices(SUBJECTS[:subjects], weights, k=count)
    about = ["chatter" if chance.random() < 0.12 else subject for subject in drawn]
    return [pair(at, f"how about {each} {at}?", f"so, {at} times.") for at, each in enumerate(about, 1)]


@dataclass
class Ran:
    """A run of the command: how long it took, in virtual seconds, and the model that it asked."""

    seconds: float
    model: Thinking


@pytest.fixture(autouse=True)
def impatient_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of runs: nobody waits for the real disk."""
    monkeypatch.setattr(os, "fsync", int)


def settings_in(folder: Path, at_once: int, describe: str) -> Settings:
    path = folder / "config.yaml"
    path.write_text(f"kb: {{regeneration_concurrency: {at_once}, team_summarization_prompt: {describe}}}\n")
    return load(path)


def with_archive(folder: Path, pairs: list[Pair]) -> Path:
    """A folder with an archive, and a library that a rebuild replaces."""
    folder.mkdir()
    store(folder / "data", *pairs)
    library = opened(folder / "data")
    for each in pairs[:3]:
        library.decide(added(each, "old"))
    return folder


def run(
    folder: Path,
    at_once: int,
    monkeypatch: pytest.MonkeyPatch,
    seconds: Callable[[int], float] = lambda _number: 0.1,
    die_at: float | None = None,
    die: Callable[[], None] = lambda: None,
    start: float = BEGUN,
    describe: str = "Describe it.",
) -> Ran:
    """`die`: called so many seconds after the `start`, after which the run is cut off; `describe`: a prompt."""
    model = Thinking(seconds)

    @asynccontextmanager
    async def thinking(*_: object, **__: object) -> AsyncGenerator[Asker]:
        yield model

    monkeypatch.setattr(regen, "open_llm", thinking)

    async def timed() -> Ran:
        if die_at is not None:
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().call_later(die_at, lambda: (die(), task.cancel()))
        report = await regen.rebuild(settings_in(folder, at_once, describe), restart=False)
        assert not report.given_up
        return Ran(now() - start, model)

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(start)) as runner:
        return runner.run(timed())


def library_in(folder: Path) -> dict[str, bytes]:
    """All but how many calls it took."""
    return {name: data for name, data in everything(folder / "data").items() if name != "state/tokens.json"}


@pytest.mark.slow
@pytest.mark.parametrize("subjects", [1, 5, 12, 18])
def test_100_conversations_take_at_most_0_4_of_what_their_calls_take_and_make_the_same_library(
    subjects: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 73."""
    pairs = talks(100, subjects, seed=subjects)
    one, eight = (with_archive(tmp_path / name, pairs) for name in ("one", "eight"))
    slow, fast = run(one, 1, monkeypatch), run(eight, 8, monkeypatch)
    assert slow.seconds == pytest.approx(slow.model.spent)
    assert (slow.model.most, fast.model.most) == (1, 8)
    assert fast.model.calls.count("classify") >= 100
    if subjects > 1:  # of one topic, each pair is integrated after the other
        assert fast.seconds <= 0.4 * slow.model.spent
    assert len(fast.model.calls) <= 1.15 * len(slow.model.calls)
    assert library_in(eight) == library_in(one)
    assert is_whole(eight / "data", opened(eight / "data"))


@pytest.mark.parametrize("seed", range(4))
def test_the_library_does_not_depend_on_how_long_each_call_takes(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = talks(60, 10, seed)
    one, eight = (with_archive(tmp_path / name, pairs) for name in ("one", "eight"))
    chance = random.Random(seed)  # noqa: S311 (no secret)
    slow = run(one, 1, monkeypatch)
    fast = run(eight, 8, monkeypatch, lambda _number: chance.expovariate(10))
    assert len(fast.model.calls) <= 1.15 * len(slow.model.calls)
    assert library_in(eight) == library_in(one)


@pytest.mark.slow
def test_killed_at_any_moment_and_gone_on_with_it_makes_the_same_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfalls 6, 14 and 73: at 15 system calls and 15 moments between them, each twice in a row."""
    pairs = talks(40, 7, seed=3)
    whole = with_archive(tmp_path / "whole", pairs)
    counting = Machine()
    uncut: list[Ran] = []
    assert counting.run(lambda: uncut.append(run(whole, 8, monkeypatch)))
    expected = library_in(whole)
    chance = random.Random(1)  # noqa: S311 (no secret)
    calls = len(counting.calls)
    cuts: list[tuple[int | None, float | None]] = [(chance.randrange(calls), None) for _ in range(15)]
    cuts += [(None, chance.uniform(0, uncut[0].seconds)) for _ in range(15)]
    for number, (last, seconds) in enumerate(cuts):
        folder = with_archive(tmp_path / str(number), pairs)
        for part in (1.0, 0.5):
            machine = Machine(None if last is None else round(last * part))
            moment = None if seconds is None else seconds * part

            def killed(machine: Machine = machine, moment: float | None = moment, folder: Path = folder) -> None:
                with suppress(asyncio.CancelledError):
                    run(folder, 8, monkeypatch, die_at=moment, die=lambda: setattr(machine, "dead", True))

            with suppress(PowerCut, Deadlock):  # whoever waited for the dead waits in vain
                machine.run(killed)
        run(folder, 8, monkeypatch)
        assert library_in(folder) == expected, f"killed at {last}, {seconds}"


def test_gone_on_with_the_next_day_it_bears_the_time_at_which_it_was_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = talks(40, 7, seed=3)
    whole, cut = (with_archive(tmp_path / name, pairs) for name in ("whole", "cut"))
    run(whole, 8, monkeypatch)
    with suppress(asyncio.CancelledError):
        run(cut, 8, monkeypatch, die_at=1.5)
    assert library_in(cut) != library_in(whole)
    run(cut, 8, monkeypatch, start=BEGUN + 86_400)
    assert library_in(cut) == library_in(whole)


def test_with_other_descriptions_it_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = talks(40, 7, seed=3)
    whole, cut = (with_archive(tmp_path / name, pairs) for name in ("whole", "cut"))
    run(whole, 8, monkeypatch, describe="Describe it well.")
    with suppress(asyncio.CancelledError):
        run(cut, 8, monkeypatch, die_at=1.5)
    run(cut, 8, monkeypatch, describe="Describe it well.")
    assert library_in(cut) == library_in(whole)
