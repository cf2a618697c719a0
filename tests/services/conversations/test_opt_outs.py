from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from services.conversations.people import OptOutFile
from services.storage import DamagedIds


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "opt-outs.json"


def content(path: Path) -> str:
    return path.read_text()


def damage(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('["7", "8')


async def test_a_choice_is_in_force_before_it_is_written_and_outlives_the_process(file: Path) -> None:
    people = OptOutFile(file)
    saving = asyncio.create_task(people.add(7))
    await asyncio.sleep(0)
    assert 7 in people
    await saving
    assert 7 in OptOutFile(file)
    await people.discard(7)
    assert 7 not in people
    assert 7 not in OptOutFile(file)


async def test_many_choices_at_once_are_all_kept(file: Path) -> None:
    people = OptOutFile(file)
    await asyncio.gather(*(people.add(each) for each in range(20)))
    assert json.loads(content(file)) == sorted((str(each) for each in range(20)), key=int)


async def test_with_a_damaged_file_nothing_starts_and_it_stays_as_it_is(file: Path) -> None:
    damage(file)
    with pytest.raises(DamagedIds):
        OptOutFile(file)
    assert content(file) == '["7", "8'
