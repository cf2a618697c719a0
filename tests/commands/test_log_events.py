from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

import app


def test_waiting_and_the_start_of_processing_are_events(
    config: Path, export: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(f"{config.read_text()}logging: {{level: DEBUG, format: json}}\n")
    assert app.main(["--config", str(config), "--replay", str(export), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    events = {line["message"].split(":")[0]: line for line in lines}
    waits, begins = events["discord.user_batch_wait"], events["discord.user_batch_process_start"]
    assert waits["message_id"] == begins["message_id"] == "1481080340800864257"
    assert waits["author_id"] == begins["author_id"] == "311"
    # From here on every line about the part can be found by one id.
    assert begins["correlation_id"] == events["gate"]["correlation_id"]
    took = [line for line in lines if " took " in line["message"]]
    assert {line["message"].split()[0] for line in took} >= {"gate", "select", "load", "generate", "reply"}
    assert {line["level"] for line in took} == {logging.getLevelName(logging.DEBUG)}
