from __future__ import annotations

import ntpath
from collections.abc import Callable
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.knowledge.topic_files import belongs_to, files_of, first_file_of, is_topic_name, next_file, topic_name
from settings import KnowledgeSettings

AWKWARD = st.one_of(st.text(st.characters(), max_size=80), st.sampled_from(["CON", "com¹", "..", "Straße İ ǅ Ω"]))

IS_RESERVED: Callable[[str], bool] = getattr(ntpath, "isreserved", lambda name: PureWindowsPath(name).is_reserved())
"""Python 3.13 has a function for it, and warns of the method."""


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("node-startup-issues", "node-startup-issues"),
        ("  Node startup: ISSUES!  ", "node-startup-issues"),
        ("team:gpu-2.txt", "gpu-2"),
        ("../../etc/passwd", "etc-passwd"),
        ("/absolute", "absolute"),
        ("C:\\windows", "c-windows"),
        ("Установка узла", "установка-узла"),
        ("ノード 起動", "ノード-起動"),
        ("ＧＰＵ②", "gpu2"),
        ("café", "café"),
        ("a--b__c", "a-b-c"),
        ("x\0y\ny", "x-y-y"),
        ("", ""),
        (" \n ", ""),
        ("con", "topic-con"),
        ("COM¹", "topic-com1"),
        ("nul.txt", "topic-nul"),
    ],
)
def test_names_are_made_safe(given: str, safe: str) -> None:
    """Pitfall 18."""
    assert topic_name(given) == safe


def test_a_name_of_which_nothing_remains_is_told_apart_by_its_hash() -> None:
    """Pitfall 18."""
    assert topic_name("🔥").startswith("topic-")
    assert topic_name("🔥") != topic_name("../..") == topic_name("../..")


@given(AWKWARD)
def test_no_name_leads_out_of_its_folder_or_is_a_device(text: str) -> None:
    """Pitfall 18."""
    name = topic_name(text)
    assert topic_name(name) == name
    if name:
        assert is_topic_name(name)
        assert name == name.lower()
        assert len(f"{name}-999".encode()) <= 64
        assert PurePosixPath(f"{name}.txt").name == PureWindowsPath(f"{name}.txt").name == f"{name}.txt"
        assert not IS_RESERVED(f"{name}.txt")
    else:
        assert not text.strip()


@pytest.mark.parametrize("name", ["", "A", "a b", "a/b", "..", "-a", "a--b", "con", "x" * 65, "ﬁ", "a.b", "e\u0301"])
def test_what_topic_name_would_change_is_no_topic_name(name: str) -> None:
    """Pitfall 18."""
    assert not is_topic_name(name)


def test_a_topic_goes_on_in_numbered_files() -> None:
    there = {"gpu", "gpu-2", "gpu-3", "windows", "windows-11", "layer-2", "net", "net-3"}
    assert [first_file_of(name, there) for name in ("gpu", "gpu-2", "gpu-3", "gpu-4")] == ["gpu"] * 4
    assert files_of("gpu", there) == ["gpu", "gpu-2", "gpu-3"]
    assert next_file("gpu", there) == "gpu-4"
    # A number alone makes no continuation.
    for name in ("windows-11", "layer-2", "gpu-1", "gpu-5", "net-3", "rtx-3080"):
        assert first_file_of(name, there) == name
    assert files_of("layer", there) == []
    assert next_file("layer", there) == "layer"


@pytest.mark.parametrize(
    ("name", "belongs"),
    [("gpu", True), ("gpu-2", True), ("gpu-12", True), ("gpu-1000", True), ("gpu-1", False), ("gpu-cards", False)],
)
def test_what_goes_on_from_a_topic_belongs_to_it_whether_or_not_the_files_between_are_there(
    name: str, belongs: bool
) -> None:
    assert belongs_to(name, ["gpu"]) is belongs
    assert not belongs_to(name, ["windows"])


@given(AWKWARD)
def test_the_name_of_a_topic_can_be_written_into_the_configuration(text: str) -> None:
    name = topic_name(text)
    if name:
        for written in (name, f" {name} ", f"team:{name}.txt"):
            chosen = KnowledgeSettings.model_validate({"internal_topics": [written]}).internal_topics
            assert belongs_to(f"{name}-2", chosen)


def test_letter_case_does_not_matter_in_the_configuration() -> None:
    chosen = KnowledgeSettings.model_validate({"internal_topics": ["Prices", "ＧＰＵ-2"]}).internal_topics
    assert chosen == {"prices", "gpu-2"}
