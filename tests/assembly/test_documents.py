from __future__ import annotations

from assembly.documents import libraries_of
from services.documents.tools import CASE, GLOBAL, TEAM, USER
from settings import Settings


def test_each_library_keeps_answers_as_long_as_its_setting_says_also_for_parts_of_a_second() -> None:
    seconds = {"case_seconds": 0.5, "user_seconds": 1.25, "team_seconds": 2.0, "global_seconds": 3.75}
    chosen = Settings.model_validate({"documents": {"cache": seconds}}).documents
    kept = {library.name: library.cache_ttl for library in libraries_of(chosen)}
    assert kept == {CASE: 0.5, USER: 1.25, TEAM: 2.0, GLOBAL: 3.75}
