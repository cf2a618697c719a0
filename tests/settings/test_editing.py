"""Keys put into files that somebody has written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from settings.editing import edit_dotenv, edit_yaml
from settings.loading import read_dotenv
from settings.reference import render_config

ROLES, MEMBERS = ("discord", "team_role_ids"), ("discord", "team_member_ids")
MODEL, URL = ("ai_response", "llm"), ("ai_response", "llm", "base_url")
SOURCES = ("kb", "sources_dir")


def test_an_empty_file_gets_sections_with_a_comment_for_each_key() -> None:
    assert edit_yaml("", {ROLES: [5, 7], SOURCES: "docs", MEMBERS: []}) == (
        "discord:\n"
        "  # Roles whose holders answer for the team.\n"
        "  team_role_ids: [5, 7]\n"
        "  # Users who answer for the team.\n"
        "  team_member_ids: []\n"
        "kb:\n"
        "  # The folder of documents.\n"
        '  sources_dir: "docs"\n'
    )


HAND_WRITTEN = """\
# mine
discord:  # who
    team_role_ids:  # two of them
      - 1
      - 2
    # about the mode
    reply_mode: mention  # quiet

# the end of it
kb:
    sources_dir: old  # here
    exclude: ["*.tmp"]
"""


def test_what_is_written_by_hand_keeps_its_comments_and_its_place() -> None:
    edited = edit_yaml(HAND_WRITTEN, {ROLES: [3], MEMBERS: [9], SOURCES: "new", URL: "http://x"})
    assert (
        edited
        == """\
# mine
discord:  # who
    team_role_ids: [3]
    # about the mode
    reply_mode: mention  # quiet
    # Users who answer for the team.
    team_member_ids: [9]

# the end of it
kb:
    sources_dir: "new"  # here
    exclude: ["*.tmp"]
ai_response:
  # The LLM that answers; null: no LLM, answers quote the best passage.
  llm:
    # The endpoint, up to and including the version, such as …/v1.
    base_url: "http://x"
"""
    )


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("discord:\n  # all comments\nkb: {}\n", ROLES, [1]),
        ("discord: {reply_mode: off, team_role_ids: [1]}", ROLES, [2]),
        ("{discord: {reply_mode: off}}", ROLES, [2]),
        ("a: &x {reply_mode: off}\ndiscord: *x\n", ROLES, [2]),
        ("ai_response:\n  llm: null\n", URL, "http://x"),
        ("ai_response:\n  llm:\n    base_url: x\n    model: m", MODEL, None),
        ("---\nkb: {}\n...\n", SOURCES, "docs"),
        (
            "ai_response:\n  answer_prompt: |-\n    one\n\n    two\n\nkb:\n  sources_dir: x",
            ("ai_response", "max_sources"),
            4,
        ),
        ("kb:\n  sources_dir: |\n    x\n", SOURCES, "y"),
        ("'kb':\n  'sources_dir': 'x'\n", SOURCES, 'ö "\\ \u2028'),
        ("discord:\n  channels:\n    5: {reply_mode: off}\n", ("discord", "channels", "5", "reply_mode"), "all"),
        ("discord: null", ROLES, [1]),
        ("discord:\n    a: 1\n    b:\n        - 1\n        # last", ROLES, [1]),
    ],
)
def test_whatever_the_form_of_a_file_it_says_what_it_said_and_the_change(
    text: str, path: tuple[str, ...], value: Any
) -> None:
    before: Any = yaml.safe_load(text)
    after: Any = yaml.safe_load(edit_yaml(text, {path: value}))
    for word in path:
        old, new = named(before), named(after)
        before, after = old.pop(word, None), new.pop(word)
        assert old == new, "nothing else has changed"
    assert after == value


def named(values: dict[Any, Any] | None) -> dict[str, Any]:
    """A mapping with its names as text; empty for none."""
    return {str(key): value for key, value in (values or {}).items()}


def test_the_file_that_is_shipped_can_be_edited_as_well() -> None:
    shipped = render_config()
    edited = edit_yaml(shipped, {URL: "http://x", ROLES: [5]})
    changed = set(edited.splitlines()) - set(shipped.splitlines())
    assert changed == {"  llm:", '    base_url: "http://x"', "  team_role_ids: [5]"} | {
        line for line in edited.splitlines() if "The endpoint, up to" in line and "base_url" not in line
    }


VALUES = st.one_of(st.text(max_size=8), st.integers(), st.none(), st.booleans(), st.lists(st.integers(), max_size=3))
SECTIONS = st.dictionaries(
    st.sampled_from(["discord", "kb", "limits", "x"]),
    st.one_of(st.none(), st.dictionaries(st.sampled_from(["sources_dir", "a", "b"]), VALUES, max_size=3)),
    max_size=4,
)


@given(values=SECTIONS, value=VALUES, flow=st.booleans())
@example(values={}, value="\x85", flow=False)
@example(values={"kb": {"a": "\u2028"}}, value="\u2029", flow=True)
def test_editing_is_setting_one_key(values: dict[str, Any], value: Any, flow: bool) -> None:
    text = yaml.safe_dump(values, default_flow_style=flow)
    expected: dict[str, Any] = {**values, "kb": {**named(values.get("kb")), "sources_dir": value}}
    assert yaml.safe_load(edit_yaml(text, {SOURCES: value})) == expected


KEY, TOKEN = ("ai_response", "llm", "api_key"), ("discord", "token")


def test_variables_are_replaced_where_they_stand_and_others_stay() -> None:
    text = "# mine\nOTHER='a b'\n\nexport app__discord__token=old # was\nAPP__METRICS__PORT=5"
    assert edit_dotenv(text, {TOKEN: "new", KEY: "sk"}) == (
        "# mine\nOTHER='a b'\n\nAPP__DISCORD__TOKEN=new\nAPP__METRICS__PORT=5\nAPP__AI_RESPONSE__LLM__API_KEY=sk\n"
    )


def test_of_a_variable_that_is_set_twice_one_is_left() -> None:
    text = "APP__DISCORD__TOKEN=a\nX=1\nAPP__DISCORD__TOKEN=b\n"
    assert edit_dotenv(text, {TOKEN: "c"}) == "APP__DISCORD__TOKEN=c\nX=1\n"


def test_a_mapping_is_taken_away_with_all_that_is_below_it() -> None:
    text = "APP__AI_RESPONSE__LLM__MODEL=m\nAPP__AI_RESPONSE__LLM_ENABLE_IMAGE=true\nAPP__AI_RESPONSE__LLM={}\n"
    assert edit_dotenv(text, {MODEL: None}) == "APP__AI_RESPONSE__LLM_ENABLE_IMAGE=true\n"


@given(value=st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_categories=["Cc"])))
def test_a_value_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    file: Path = tmp_path_factory.getbasetemp() / "variables.env"
    file.write_text(edit_dotenv("A='1'\n", {TOKEN: value, SOURCES: "x"}), "utf-8")
    assert {each.path: each.text for each in read_dotenv(file)} == {TOKEN: value, SOURCES: "x"}
