"""What a live bot asks of its process before it opens anything."""

from __future__ import annotations

import argparse
from unittest.mock import Mock

import pytest

from commands import live
from settings import Settings


class Asked(Exception):
    """The limit of descriptors was about to be raised."""


@pytest.mark.parametrize("transport", ["local", "nats://127.0.0.1:4222"])
def test_the_limit_of_descriptors_is_raised_first(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """H2: with few of them, idle connections kept questions from being answered."""
    monkeypatch.setattr(live, "raise_descriptor_limit", Mock(side_effect=Asked))
    for name in ("collect_garbage_less_often", "shorten_thread_switches", "use_one_malloc_arena"):
        monkeypatch.setattr(live, name, Mock())
    settings = Settings.model_validate({"transport": transport, "discord": {"token": "a.b.c" * 12}})
    options = argparse.Namespace(dry_run=False, record=None, llm_record=None, llm_replay=None, role=None, shards=None)
    with pytest.raises(Asked):
        live.run(settings, options)
