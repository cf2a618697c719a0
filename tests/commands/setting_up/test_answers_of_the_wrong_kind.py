"""A file of answers is refused as a whole, also for an answer that is needed last."""

from __future__ import annotations

from typing import Any

import pytest

from tests.commands.setting_up.conftest import Clone


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"build_index": "maybe"}, "build_index cannot be used: it must be true or false"),
        ({"build_index": 1}, "build_index cannot be used: it must be true or false"),
        ({"build_index": [True]}, "build_index cannot be used: it must be true or false"),
        ({"first_question": ["a"]}, "first_question cannot be used: it must be text"),
        ({"first_question": {"a": "b"}}, "first_question cannot be used: it must be text"),
        ({"first_question": True}, "first_question cannot be used: it must be text"),
        ({"first_question": "a\u202eb"}, "first_question cannot be used: this holds invisible characters"),
        ({"data_dir": ["a", "b"]}, "data_dir cannot be used: it must be text"),
        ({"model_name": 1.5}, "model_name cannot be used: it must be text"),
        ({"team_roles": {"Staff": 1}}, "team_roles cannot be used: it must be text, or a list of texts"),
        ({"documentation": [["docs"]]}, "documentation cannot be used: it must be text, or a list of texts"),
    ],
)
def test_an_answer_of_the_wrong_kind_is_refused_before_anything_is_written(
    clone: Clone, answer: dict[str, Any], says: str
) -> None:
    line = clone.refused(**({"documentation": "docs"} | answer))
    (name,) = answer
    lines = (clone.folder / "answers.yaml").read_text().splitlines()
    (number,) = (number for number, each in enumerate(lines, 1) if each.startswith(f"{name}:"))
    assert f"answers.yaml:{number}: {says}" in line


def test_what_is_left_empty_is_left_out(clone: Clone) -> None:
    code, _, _ = clone.init(documentation="docs", build_index=None, first_question=None, team_roles=None)
    assert code == 0
    assert clone.local == {"kb": {"sources_dir": "docs"}}
