from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from settings import AnswerSettings, Settings, load
from settings.errors import ANY, all_keys
from settings.knowledge import TEAM_CLASSIFICATION
from settings.reference import COMMON, common_table, find_stale, main, render_config

ROOT = Path(__file__).parents[2]
BEGIN, END = "<!-- settings:begin -->", "<!-- settings:end -->"


def test_every_key_has_a_type_and_a_one_line_explanation() -> None:
    for key in all_keys():
        assert key.kind, key.dotted
        assert key.description.endswith("."), key.dotted
        assert "\n" not in key.description, key.dotted


def test_every_key_says_what_it_may_be() -> None:
    config = re.sub(r"\n *# (?!\S+:)", " ", render_config())
    for key in all_keys():
        if key.section is None and key.kind not in {"text", "a path", "true or false"}:
            assert f" {key.kind[:1].upper()}{key.kind[1:]}." in config, key.dotted


def test_every_default_is_valid() -> None:
    assert Settings.model_validate(Settings().model_dump()) == Settings()
    assert Settings.model_validate(yaml.safe_load(render_config())) == Settings()


def test_the_config_in_the_repository_equals_the_defaults() -> None:
    assert load(ROOT / "config.yaml", {}) == Settings().resolve_paths(ROOT)


def test_every_key_is_in_the_config_below_a_comment() -> None:
    lines = render_config().splitlines()
    for key in all_keys():
        if ANY not in key.path:
            at = next(number for number, line in enumerate(lines) if line.strip("# ").startswith(f"{key.path[-1]}:"))
            assert lines[at - 1].lstrip().startswith("#"), key.dotted


def test_examples_in_the_config_can_be_uncommented(tmp_path: Path) -> None:
    text = render_config()
    start = text.index("  llm: null\n  # llm:")
    end = text.index("  # Show images to the LLM")
    example = re.sub(r"^  # ", "  ", text[start:end].replace("  llm: null\n", ""), flags=re.MULTILINE)
    for name, value in (("base_url", "http://127.0.0.1/v1"), ("api_key", "x"), ("model", "m")):
        example = example.replace(f"{name}:  #", f"{name}: {value}  #")
    (tmp_path / "config.yaml").write_text(text[:start] + example + text[end:], "utf-8")
    assert load(tmp_path / "config.yaml", {}).ai_response.llm is not None


def test_the_files_in_the_repository_are_fresh() -> None:
    assert find_stale(ROOT) == []


def test_writing_replaces_the_table_and_leaves_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert main(["--check"], tmp_path) == 1
    assert capsys.readouterr().err.splitlines() == [
        "config.yaml: stale; run python -m settings.reference --write",
        "README.md: stale; run python -m settings.reference --write",
    ]
    assert main(["--write"], tmp_path) == 0
    text = (tmp_path / "README.md").read_text("utf-8")
    assert text == f"before\n{BEGIN}\n{common_table()}{END}\nafter\n"
    assert main(["--check"], tmp_path) == 0


def test_a_missing_readme_is_left_missing(tmp_path: Path) -> None:
    assert main(["--write"], tmp_path) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml"]
    assert main(["--check"], tmp_path) == 0


def test_the_readme_shows_the_keys_that_most_people_set() -> None:
    assert 10 <= len(COMMON) <= 14
    assert [line.split("`")[1] for line in common_table().splitlines()[2:]] == list(COMMON)


@pytest.mark.parametrize("text", ["no marks", f"{BEGIN} only"])
def test_a_readme_without_marks_is_an_error_that_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "README.md").write_text(text)
    assert main(["--check"], tmp_path) == 1
    assert BEGIN in capsys.readouterr().err


def test_prompts_hold_a_task_and_nothing_about_the_form_of_the_output() -> None:
    texts = [key.default for key in all_keys() if key.dotted.endswith("_prompt") and key.default]
    assert len(texts) > len(AnswerSettings.task_keys())
    for text in texts:
        assert text == text.strip()
        assert "json" not in text.lower()
        assert len(text) < 1000


def test_being_told_where_to_turn_counts_as_an_answer_of_the_team() -> None:
    said = " ".join(TEAM_CLASSIFICATION.split())
    assert '"write to support at …") is an answer: keep it.' in said
