"""The page of arithmetic: it says what the script says, and the script can count."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scale_arithmetic import GUILDS, PAGE, Assumptions, Load, main, page, processes


def test_the_page_is_what_the_script_writes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0
    assert PAGE.read_text() == page(Assumptions())
    assert capsys.readouterr().err == ""


def test_a_page_that_says_something_else_is_stale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "page.md"
    stale.write_text(page(Assumptions(messages=7)))
    monkeypatch.setattr("benchmarks.scale_arithmetic.PAGE", stale)
    assert main(["--check"]) == 1
    assert "is stale: run" in capsys.readouterr().err


def test_what_follows_is_worked_out_by_hand_for_a_day_of_a_thousand_guilds() -> None:
    a = Assumptions(messages=864, peak=2, asked=0.1, answered=0.5, calls=3, characters=12_000, letters=4, price=2)
    load = Load(1_000, a)
    assert load.messages == 864_000
    assert load.at_peak == pytest.approx(20)
    assert load.answers == pytest.approx(43_200)
    assert load.calls == pytest.approx(3 * 43_200 + 43_200)
    assert load.tokens == pytest.approx(4 * 43_200 * 1_000)
    assert load.money == pytest.approx(345.6)
    assert load.shards == 1


def test_few_guilds_need_one_process_and_many_need_shards_and_who_takes_over() -> None:
    loads = [Load(guilds, Assumptions()) for guilds in GUILDS]
    assert processes(loads[0]) == "1, local"
    assert not loads[-1].one_process
    assert loads[-1].shards == 10
    assert all(load.workers >= 2 for load in loads)
    assert [load.one_process for load in loads] == sorted((load.one_process for load in loads), reverse=True)


def test_an_option_puts_another_value_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--price", "0"]) == 0
    (money,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| money a day ")]
    assert [cell.strip(" |") for cell in money.split(" | ")[1:]] == ["0" for _ in GUILDS]
