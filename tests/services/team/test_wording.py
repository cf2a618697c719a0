"""Whose wording a question is in."""

from __future__ import annotations

import pytest

from services.team import asker_among, share_of_wording

ASKED = "Which importer option skips raw files? My illness leaves me little time \U0001f468\u200d\U0001f469"
ADA, BOB = 311, 312


@pytest.mark.parametrize(
    "written",
    [
        ASKED,
        ASKED.replace("\u200d", ""),  # as a page shows it
        " which  importer option skips raw files?\r\nmy illness leaves me little time",
        "Which importer option skips raw files?",
        "Which importer option skips the raw files? My illness leaves me little time",
    ],
)
def test_a_question_that_is_shortened_or_mended_stays_in_the_askers_wording(written: str) -> None:
    assert asker_among(written, [(BOB, "Is there an importer?"), (ADA, ASKED)]) == ADA


@pytest.mark.parametrize("written", ["Can the importer leave raw files out?", "", "Files?"])
def test_another_wording_is_nobodys(written: str) -> None:
    assert asker_among(written, [(BOB, "Is there an importer?"), (ADA, ASKED)]) is None
    assert asker_among(written, []) is None


@pytest.mark.parametrize(
    ("text", "other", "share"),
    [
        ("می‌خواهم نسخه را بازگردانم", "میخواهم نسخه را بازگردانم", 1),
        ("バックアップを復元する方法は?", "バックアップを復元する方法は", 1),
        ("Backup?", "backup", 1),
        ("Backup?", "restore", 0),
        ("how do I restore it", "restore it, how do I", 0.75),
    ],
)
def test_the_share_of_wording_goes_by_neighbouring_words_in_any_script(text: str, other: str, share: float) -> None:
    assert share_of_wording(text, other) == share
