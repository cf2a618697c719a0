"""What `--init` writes, and when."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from commands.setting_up.answers import OperatorFiles, WrongAnswer, covers, delay_signals
from services.storage import files
from settings import load
from tests.commands.conftest import SECRET_KEY
from tests.commands.setting_up.conftest import Clone

LLM = {
    "ai_response.llm.base_url": "http://127.0.0.1:9/v1",
    "ai_response.llm.model": "m",
    "ai_response.llm.api_key": SECRET_KEY,
}


def test_ctrl_c_while_files_are_written_waits_until_they_fit_together(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 75 in another place: half an answer would be a configuration that nothing can read."""
    replace = files.replace

    def interrupted(path: Path, data: bytes) -> None:
        replace(path, data)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(files, "replace", interrupted)
    own = OperatorFiles(clone.config)
    own.keep(LLM)
    with pytest.raises(KeyboardInterrupt):
        own.write()
    llm = load(clone.config, {}).ai_response.llm
    assert llm is not None
    assert llm.api_key.get_secret_value() == SECRET_KEY


def test_signals_mean_afterwards_what_they_meant_before() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with delay_signals():
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_what_is_not_written_yet_counts_for_the_next_question(clone: Clone) -> None:
    own = OperatorFiles(clone.config)
    own.keep({"app.data_dir": "store"})
    assert own.settings.kb.links_file_path == clone.folder / "store/knowledge-base/links.txt"
    assert clone.written == {}


@pytest.mark.parametrize("values", [LLM | {"ai_response.llm.base_url": "x"}, {"ai_response.llm.model": "m"}])
def test_what_the_configuration_cannot_hold_is_a_wrong_answer(clone: Clone, values: dict[str, Any]) -> None:
    """Pitfall 22: the line repeats no value."""
    with pytest.raises(WrongAnswer, match=r"^ai_response\.llm") as caught:
        OperatorFiles(clone.config).try_values(values)
    assert SECRET_KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "mine", "does"),
    [
        ("APP__KB__LLM", "APP__KB__LLM", True),
        ("APP__KB__LLM__MODEL", "APP__KB__LLM", True),
        ("APP__KB", "APP__KB__LLM", True),
        ("APP__KB__LLM_X", "APP__KB__LLM", False),
    ],
)
def test_a_variable_covers_what_lies_above_and_below_it(name: str, mine: str, does: bool) -> None:
    assert covers(name, mine) is does


def test_a_disk_that_is_full_leaves_what_was_there(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    (clone.folder / "config.local.yaml").write_text("limits: {tokens_per_day: 5}\n")
    before = clone.written

    def full(path: Path, _data: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(files, "replace", full)
    code, _, err = clone.init(data_dir="store")
    assert (code, clone.written) == (1, before)
    assert "config.local.yaml: No space left on device; make room" in err
    assert err.count("\n") == 1
