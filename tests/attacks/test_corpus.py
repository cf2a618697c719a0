"""Every attack of the corpus is tried on the whole bot, with a model that obeys it, and nothing comes of it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.attacks.aftermath import violations
from tests.attacks.corpus import ATTACKS, Attack, Way, by
from tests.attacks.obedient import GIVEN, POINTED
from tests.attacks.stage import staged
from tests.loopback.fixtures import hurried_discord
from tests.root_logger import logging_restored

__all__ = ["hurried_discord", "logging_restored"]

# It takes seconds on a busy machine, and belongs to no wait of a test.
import_module("services.llm.chat")

OBEYED_AT = {
    Way.CAPTURE: {"ClassificationResult", "SummaryResult", "AnswerResult", POINTED},
    Way.FILE_NAME: {"GatingResult", "AnswerResult"},
    Way.LOG_LINE: {GIVEN, "AnswerResult"},
    Way.OUTPUT: {"GatingResult", "SelectionResult", "AnswerResult", "VerificationResult", "ClassificationResult"},
}
"""The schemas in which each attack must have been obeyed, where they are others than those of an answer."""
OF_AN_ANSWER = {"AnswerResult"}
IN_THE_INDEX = {"SelectionResult"}
"""Of what a page is cleaned of before it is shown whole."""


def wanted(attack: Attack) -> set[str]:
    return IN_THE_INDEX if "<!--" in attack.text else OBEYED_AT.get(attack.way, OF_AN_ANSWER)


@pytest.mark.real_time
@pytest.mark.parametrize("way", list(Way), ids=str)
async def test_nothing_comes_of_attacks_by(
    way: Way, tmp_path: Path, hurried_discord: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfalls 16, 17, 18, 19, 20, 22, 23 and 47."""
    attacks = by(way)
    async with staged(tmp_path, monkeypatch, attacks) as stage:
        await stage.play_all()
        assert await stage.bot.stop() == 0
        after = stage.aftermath()
    missed = {attack.tries: wanted(attack) - stage.obedient.obeyed[attack.mark] for attack in attacks}
    assert {tries: left for tries, left in missed.items() if left} == {}, "an attack that was not tried proves nothing"
    assert violations(after) == []
    assert not stage.server.unknown


def test_the_corpus_has_enough_of_each_kind_and_no_attack_twice() -> None:
    assert len(ATTACKS) >= 80
    assert all(len(by(way)) >= 10 for way in Way)
    assert len({attack.tries for attack in ATTACKS}) == len(ATTACKS)
    assert len({(attack.way, attack.text, attack.says) for attack in ATTACKS}) == len(ATTACKS)
    assert all("{mark}" in attack.text for attack in ATTACKS if attack.way is not Way.OUTPUT)
    assert all("{mark}" in attack.says for attack in ATTACKS)
