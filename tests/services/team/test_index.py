"""What the cache and the index of the team's topics hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from clock import rfc3339
from services.knowledge import hash_text
from services.team import index as index_module
from services.team.index import TeamIndex
from services.team.topics import Topic
from tests.team import pair

AT = 1_771_200_000.25
THINGS = Topic("things", (pair(1),))
OTHERS = Topic("others", (pair(2),))


def index_in(folder: Path, key: str = "key") -> TeamIndex:
    return TeamIndex(folder / "index.txt", folder / "cache.json", key)


def described(folder: Path) -> TeamIndex:
    """Of two topics, one has a description."""
    index, topics = index_in(folder), {"things": THINGS, "others": OTHERS}
    index.load(topics)
    index.describe(THINGS, "About things.", "key", AT)
    index.write(AT)
    return index


def test_a_description_is_kept_with_the_content_that_it_is_of_and_when_it_was_made(tmp_path: Path) -> None:
    described(tmp_path)
    cached = json.loads((tmp_path / "cache.json").read_text())
    assert cached["generated_at"] == rfc3339(AT)
    (record,) = cached["sources"].values()
    assert record == {
        "source_type": "file",
        "content_hash": hash_text(THINGS.text),
        "summary_text": "About things.",
        "summary_key": "key",
        "last_indexed_at": rfc3339(AT),
        "summary_pending": False,
        "file": {
            "rel_path": "things.txt",
            "size_bytes": len(THINGS.text.encode()),
            "mtime_ns": 1_771_200_000_250_000_000,
        },
    }


def test_topics_are_in_order_of_name_and_one_without_a_description_says_what_was_asked_first(tmp_path: Path) -> None:
    index = described(tmp_path)
    assert [entry.id for entry in index.entries] == ["team:others.txt", "team:things.txt"]
    assert index.entries[1].description == "About things."
    assert OTHERS.pairs[0].turns[0].text in index.entries[0].description
    assert index.described == ["things"]
    text = (tmp_path / "index.txt").read_text()
    assert text.index("team:others.txt") < text.index("team:things.txt")
    assert index.is_written


def test_content_that_was_described_before_gets_that_description_again_and_other_content_none(tmp_path: Path) -> None:
    described(tmp_path)
    again, grown = index_in(tmp_path), THINGS.with_pair(pair(3))
    again.load({"things": THINGS, "others": OTHERS})
    assert again.is_written is False  # the index is made of the topics, and compared
    assert again.undescribed_topics(AT) == [OTHERS]
    again.follow(["things"], {"things": grown})
    assert again.undescribed_topics(AT) == [OTHERS, grown]
    again.follow(["things"], {"things": THINGS})
    assert again.undescribed_topics(AT) == [OTHERS]
    other_key = index_in(tmp_path, "another prompt")
    other_key.load({"things": THINGS})
    assert other_key.undescribed_topics(AT) == [THINGS]
    assert other_key.entries[0].description == "About things."  # until there is a new one


def test_of_descriptions_that_no_topic_has_any_more_the_newest_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_KEPT_EARLIER", 2)
    index = described(tmp_path)
    grown = [THINGS]
    for number in range(3, 6):
        grown.append(grown[-1].with_pair(pair(number)))
        index.follow(["things"], {"things": grown[-1]})
        index.describe(grown[-1], f"About {number} things.", "key", AT)
    assert index.find_undescribed(grown, AT) == [THINGS]
    index.follow(["things"], {})
    assert index.find_undescribed([replace(grown[-2], name="renamed")], AT) == []


def test_what_is_forgotten_has_no_description_and_gets_none_again(tmp_path: Path) -> None:
    index = described(tmp_path)
    index.forget(["things"])
    assert index.described == []
    assert index.undescribed_topics(AT) == [OTHERS, THINGS]
    index.write(AT)
    assert json.loads((tmp_path / "cache.json").read_text())["sources"] == {}


def test_a_topic_that_is_gone_is_in_neither_file(tmp_path: Path) -> None:
    index = described(tmp_path)
    index.follow(["things"], {"others": OTHERS})
    assert not index.is_written
    index.write(AT + 60)
    assert "things" not in (tmp_path / "index.txt").read_text()
    assert "things" not in (tmp_path / "cache.json").read_text()
    assert [entry.id for entry in index.entries] == ["team:others.txt"]


def test_a_damaged_cache_is_told_of_by_its_path_and_costs_the_descriptions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache.json").write_text("{")
    index = index_in(tmp_path)
    index.load({"things": THINGS})
    assert index.undescribed_topics(AT) == [THINGS]
    assert caplog.messages[0].startswith(f"{tmp_path / 'cache.json'} is not a cache of schema_version ")


def test_what_an_earlier_cache_holds_is_known_as_well(tmp_path: Path) -> None:
    described(tmp_path)
    (tmp_path / "cache.json").rename(tmp_path / "earlier.json")
    index = index_in(tmp_path)
    index.load({"things": THINGS}, tmp_path / "earlier.json")
    assert index.described == []
    assert index.undescribed_topics(AT) == []
    assert index.described == ["things"]
