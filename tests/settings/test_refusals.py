from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from settings import Settings, SettingsError, load
from settings.errors import ANY, SettingKey, all_keys, find_key
from tests.settings.conftest import Failure

SECRET = "Sup3rS3cr3tV4lue"
LLM = {"base_url": "http://127.0.0.1/v1", "api_key": "x", "model": "m"}
OPERATOR = {"token": "a-token-of-some-length", "role": "corrects"}
LEAVES = [key for key in all_keys() if key.section is None and not key.kind.startswith("a mapping")]
TIMES = [key for key in LEAVES if any(unit in key.kind for unit in ("seconds", "minutes", "hours"))]


def _yaml_for(key: SettingKey, value: object) -> str:
    """A configuration that is complete but for this one value."""
    tree: dict[str, object] = {}
    at = tree
    for word in key.path[:-1]:
        name = _any_name(key) if word == ANY else word
        below: dict[str, object] = dict(LLM) if name in {"llm", "synthesis_llm", "embeddings"} else {}
        below |= OPERATOR if name == "ana" else {}
        at[name] = below
        at = below
    at[key.path[-1]] = value
    return yaml.safe_dump(tree)


def _any_name(key: SettingKey) -> str:
    return "ana" if key.path[0] == "dashboard" else "311"


def _name(key: SettingKey) -> str:
    return key.dotted


@pytest.mark.parametrize("key", TIMES, ids=_name)
def test_impossible_times_are_refused_by_name(refused: Failure, key: SettingKey) -> None:
    """Pitfall 45: negative, NaN and infinite times are accepted."""
    for value in (-1, float("nan"), float("inf"), True, "5", 10**400):
        assert f"{key.dotted} must be {key.kind}" in refused(_yaml_for(key, value)), value


@functools.cache
def _properties(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()["properties"]


def _bounds() -> Iterator[tuple[SettingKey, int, bool]]:
    """The bounds in the schema of each key, and the nearest values beyond them: the value, and if it is allowed."""
    for key in LEAVES:
        above = find_key(key.path[:-1])
        model = Settings if above is None or above.section is None else above.section
        schema = _properties(model)[key.path[-1]]
        for each in (schema, *schema.get("anyOf", ())):
            for name, beyond in {"minimum": -1, "maximum": +1}.items():
                if name in each:
                    yield from ((key, each[name], True), (key, each[name] + beyond, False))
            if "exclusiveMinimum" in each:
                yield key, each["exclusiveMinimum"], False


@pytest.mark.parametrize(
    ("key", "value", "allowed"), [pytest.param(*each, id=f"{each[0].dotted}-{each[1]}") for each in _bounds()]
)
def test_a_bound_holds(refused: Failure, key: SettingKey, value: int, *, allowed: bool) -> None:
    """Pitfall 45: zero times are accepted."""
    text = _yaml_for(key, value)
    if allowed:
        Settings.model_validate(yaml.safe_load(text))
    else:
        assert f"{key.dotted.replace(ANY, '311')} must be {key.kind}" in refused(text)


def test_bounds_are_found() -> None:
    found = {(key.dotted, value) for key, value, _ in _bounds()}
    assert {("metrics.port", 65536), ("ai_response.max_sources", 0), ("limits.answers_per_day", -1)} <= found


@pytest.mark.parametrize("key", LEAVES, ids=_name)
def test_a_value_of_the_wrong_type_is_refused_by_name(refused: Failure, key: SettingKey) -> None:
    for value in ({"no": 1}, "1.5" if key.kind.startswith("a number") else 1.5, b"bytes"):
        line = refused(_yaml_for(key, value))
        assert f"{key.dotted.replace(ANY, _any_name(key))} must be {key.kind}" in line, value
        assert line.startswith("config.yaml:")


@pytest.mark.parametrize(
    "line",
    [
        "logging: {level: LOUD}",
        "logging: {format: xml}",
        "discord: {reply_mode: sometimes}",
        "discord: {channels: {5: {reply_mode: never}}}",
        "discord: {channels: {5: {when_unsure: ask}}}",
        "ai_response: {when_unsure: guess}",
        "ai_response: {reply_language: tlh}",
        "ai_response: {out_of_scope_hint: [a]}",
        "search: {embeddings: best}",
        "search: {embeddings: null}",
        "search: {embeddings: {base_url: 'https://x/v1'}}",
        "search: {embeddings: {base_url: 'x', api_key: k, model: m}}",
        "search: {embeddings: {base_url: 'http://☃.example/v1', api_key: k, model: m}}",
        "search: {embeddings: {base_url: 'http://a..example/v1', api_key: k, model: m}}",
        f"search: {{embeddings: {{base_url: 'http://{'a' * 64}.example/v1', api_key: k, model: m}}}}",
        "kb: {include: '*.md'}",
        "kb: {include: ['']}",
        "kb: {include: [/etc/*]}",
        "kb: {exclude: [../*.md]}",
        "kb: {exclude: [5]}",
        "kb: {source_base_url: docs.example.org}",
        "kb: {source_base_url: 'https://me:pw@docs.example.org'}",
        "kb: {source_base_url: {guides: docs.example.org}}",
        "kb: {source_base_url: {../guides: 'https://docs.example.org'}}",
        "kb: {source_base_url: ['https://docs.example.org']}",
        "discord: {opt_out_marker: ''}",
        "kb: {internal_topics: pricing}",
        "kb: {internal_topics: ['']}",
        "kb: {internal_topics: ['on call']}",
        "kb: {internal_topics: ['../pricing']}",
        "kb: {internal_topics: [pricing-]}",
        "kb: {internal_topics: [5]}",
        "discord: {team_member_ids: [0]}",
        "discord: {team_member_ids: [-4]}",
        "discord: {team_member_ids: [18446744073709551616]}",
        "discord: {team_member_ids: ['٣١١']}",
        "discord: {team_member_ids: [true]}",
        "discord: {team_member_ids: ['000000000000000000311999']}",
        "discord: {team_member_ids: 311}",
        "kb: {web_fetch_renderer: curl}",
        "kb: {sources_dir: ''}",
        "kb: {qa_raw_last_processed_id: '20260201'}",
        "kb: {qa_raw_last_processed_id: qa_20261301_031056}",
        "kb: {web_fetch_private_hosts: ['']}",
        "ai_response: {gating_prompt: '  '}",
        "documents: {store: chroma}",
        "ai_response: {llm: {base_url: 'ftp://x/v1', api_key: x, model: m}}",
        "ai_response: {llm: {base_url: 'https://', api_key: x, model: m}}",
        "ai_response: {llm: {base_url: 'https://me:pw@x/v1', api_key: x, model: m}}",
        "ai_response: {llm: {base_url: 'https://x y/v1', api_key: x, model: m}}",
        "ai_response: {llm: {base_url: 'https://x:99999/v1', api_key: x, model: m}}",
        "ai_response: {llm: {base_url: 'https://x:0/v1', api_key: x, model: m}}",
        "ai_response: {llm: {base_url: 'https://x/v1', api_key: '', model: m}}",
        "ai_response: {llm: {base_url: 'https://x/v1', api_key: 'a b', model: m}}",
        "ai_response: {llm: {base_url: 'https://x/v1', api_key: x, model: ''}}",
    ],
)
def test_impossible_values_are_refused(refused: Failure, line: str) -> None:
    """Pitfall 45: a bad log level is found only later."""
    assert refused(line).startswith("config.yaml:1: ")


def test_a_misspelt_key_is_told_from_the_right_one(refused: Failure) -> None:
    assert refused("app: {}\ndiscord:\n  tokn: x\n") == (
        "config.yaml:3: discord.tokn is not a known key; did you mean discord.token?"
    )


def test_a_misspelt_section_in_the_environment_is_answered_with_the_whole_variable(refused: Failure) -> None:
    assert refused(environ={"APP__DISCRD__TOKEN": SECRET}) == (
        "environment variable APP__DISCRD__TOKEN: discrd is not a known key; did you mean APP__DISCORD__TOKEN?"
    )


def test_a_key_in_the_wrong_section_is_answered_with_its_place(refused: Failure) -> None:
    assert refused("kb: {max_sources: 3}").endswith("did you mean ai_response.max_sources?")
    assert refused(environ={"APP__DATA_DIR": "x"}).endswith("did you mean APP__APP__DATA_DIR?")
    assert refused(environ={"APP__DISCORD_TOKEN": "x"}).endswith("did you mean APP__DISCORD__TOKEN?")
    assert refused("guilds: {7: {discord_reply_mode: all}}").endswith("did you mean guilds.7.discord.reply_mode?")


def test_a_key_of_an_earlier_version_is_answered_with_the_one_that_replaces_it(refused: Failure) -> None:
    assert refused("ai_response:\n  max_index_chars: 60000\n") == (
        "config.yaml:2: ai_response.max_index_chars is not a known key; "
        "use ai_response.max_index_entries, a number of entries instead of characters"
    )
    assert "use ai_response.max_index_entries" in refused(environ={"APP__AI_RESPONSE__MAX_INDEX_CHARS": "9"})


def test_what_may_be_a_word_or_a_mapping_is_judged_as_what_it_is(refused: Failure) -> None:
    assert refused("search: {embeddings: best}") == (
        "config.yaml:1: search.embeddings must be `packaged`, `none`, or a mapping of base_url, api_key and model"
    )
    assert "search.embeddings needs base_url and api_key as well" in refused("search: {embeddings: {model: m}}")
    assert refused("search: {embeddings: {modl: m}}").startswith("config.yaml:1: search.embeddings.modl is not a known")


def test_a_key_like_no_other_is_answered_with_what_there_is(refused: Failure) -> None:
    assert refused("metrics: {zzz: 1}").endswith("known here are port, host")
    assert "config.yaml lists every key" in refused("discord: {zzz: 1}")
    assert "config.yaml lists every key" in refused(environ={"APP__DISCORD__TOKEN__ZZZ": "1"})
    assert "is not a known key" in refused("1: x")
    assert refused("Discord: {}").endswith("did you mean discord?")


def test_everything_wrong_is_told_in_one_line(refused: Failure) -> None:
    assert refused("logging: {level: LOUD, color: 1}\ndiscord: {team_member_ids: [1, x, y]}") == (
        "config.yaml:1: logging.level must be one of `DEBUG`, `INFO`, `WARNING`, `ERROR`, `CRITICAL` "
        "(and 2 more: logging.color, discord.team_member_ids)"
    )


def test_of_many_problems_the_first_few_are_named(refused: Failure) -> None:
    assert refused("app: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1}").endswith("…)")


def test_the_bad_item_of_a_list_is_pointed_at(refused: Failure) -> None:
    assert refused("discord:\n  team_role_ids: [1, 2, x]").endswith("(look at item 3)")
    below = refused("discord:\n  team_role_ids:\n    - 1\n    - x\n")
    assert below.startswith("config.yaml:4: discord.team_role_ids must be")


def test_a_channel_that_is_no_id_is_refused(refused: Failure) -> None:
    assert refused("discord:\n  channels:\n    general: {reply_mode: all}") == (
        "config.yaml:3: discord.channels takes Discord ids as names, such as 1458745245675032710"
    )


def test_a_list_from_the_environment_must_be_json(refused: Failure) -> None:
    line = refused(environ={"APP__DISCORD__TEAM_MEMBER_IDS": "311,902"})
    assert line.startswith("environment variable APP__DISCORD__TEAM_MEMBER_IDS: discord.team_member_ids must be a list")
    assert line.endswith("written as JSON")


@pytest.mark.parametrize("text", ['{"5": 1, "5": 2}', "[" * 100_000, "9" * 5000, "NaN", "", "True"])
def test_odd_json_in_the_environment_is_a_value_of_the_wrong_type(refused: Failure, text: str) -> None:
    assert "discord.channels must be a mapping" in refused(environ={"APP__DISCORD__CHANNELS": text})
    assert "app.dry_run must be true or false" in refused(environ={"APP__APP__DRY_RUN": text})


def test_what_an_llm_from_the_environment_lacks_is_one_error(refused: Failure) -> None:
    assert refused(environ={"APP__AI_RESPONSE__LLM__MODEL": "small"}) == (
        "environment variable APP__AI_RESPONSE__LLM__MODEL: ai_response.llm needs base_url and api_key as well; "
        "set them in the file or as APP__AI_RESPONSE__LLM__BASE_URL and APP__AI_RESPONSE__LLM__API_KEY, "
        "or unset this variable"
    )


def test_a_key_left_in_env_is_an_error_that_also_says_how_to_undo_it(refused: Failure) -> None:
    """Pitfall 22."""
    line = refused(dotenv=f"OTHER=1\nAPP__AI_RESPONSE__LLM__API_KEY={SECRET}\n")
    assert line.startswith(".env:2: APP__AI_RESPONSE__LLM__API_KEY: ai_response.llm needs base_url and model as well; ")
    assert line.endswith("APP__AI_RESPONSE__LLM__MODEL, or remove this line")


def test_a_variable_below_something_that_is_no_mapping_leaves_the_error_to_that(refused: Failure) -> None:
    line = refused("discord: 5", environ={"APP__DISCORD__TOKEN": SECRET})
    assert line == "config.yaml:1: discord must be a mapping of keys"


def test_two_variables_that_differ_in_case_only_are_refused(refused: Failure) -> None:
    line = refused(environ={"APP__APP__DRY_RUN": "true", "app__app__dry_run": "false"})
    assert "app.dry_run is set twice" in line


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_variable_takes_no_secret_away(refused: Failure, text: str) -> None:
    """Compose and systemd make it of a variable that is not set; without its token the dashboard would be open."""
    line = refused("dashboard:\n  token: 0123456789abcdef", environ={"APP__DASHBOARD__TOKEN": text})
    assert line.startswith("environment variable APP__DASHBOARD__TOKEN: it is empty, and config.yaml:2 has a value")


def test_a_key_that_stands_twice_is_refused_with_both_lines(refused: Failure) -> None:
    assert refused("discord:\n  token: a\n  reply_mode: all\n  token: b\n") == (
        "config.yaml:4: discord.token stands here again, after line 2; keep one of the two"
    )
    assert "discord.channels.5 stands here again" in refused("discord: {channels: {5: {}, '5': {}}}")
    assert "x.0.a stands here again" in refused("x: [{a: 1, a: 2}]")


def test_merge_keys_are_no_repetition(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "discord: {channels: {5: &five {reply_mode: all}, 6: {<<: *five, reply_mode: mention}}}"
    )
    assert load(tmp_path / "config.yaml", {}).discord.channels[6].reply_mode == "mention"


@pytest.mark.parametrize(
    "text",
    [
        f"discord:\n  token: *{SECRET}\n",
        f"discord:\n  token: !{SECRET} x\n",
        f"discord:\n  token: @{SECRET}\n",
        f"discord:\n  token: '{SECRET}\n",
        f"discord:\n  token: {SECRET}: x\n",
        f"discord:\n  token: {SECRET}\x01\n",
        f"discord:\n  token: {SECRET}\n token: x",
        f"discord: {{token: {SECRET}",
        "a: " + "[" * 400,
        "a: 2020-99-99",
        "a: {? [1] : x}",
        "? [1]\n: x",
        "? {}\n: x",
        "--- {}\n--- {}\n",
        "- app",
        "just text",
        "a: &a [*a]",
        "a: &a {b: *a}",
    ],
)
def test_what_is_not_usable_yaml_is_refused_without_quoting_it(refused: Failure, text: str) -> None:
    """Pitfall 22: error texts quote the offending line."""
    line = refused(text)
    assert SECRET not in line
    assert line.startswith("config.yaml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("app:\n\tdry_run: true\n", "a tab stands here"),
        ("app: [1, 2\n", "while parsing a flow sequence"),
        ("app: {dry_run: true\n", "while parsing a flow mapping"),
    ],
)
def test_what_is_wrong_with_the_yaml_is_said_in_words(refused: Failure, text: str, words: str) -> None:
    assert words in refused(text)


def test_a_file_that_cannot_be_read_for_another_reason_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(SettingsError, match=r"cannot be read \(Permission denied\)"):
        load(tmp_path / "config.yaml", {})


def test_a_file_that_is_missing_or_unreadable_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.yaml: there is no such file; .*--config"):
        load(tmp_path / "nowhere.yaml", {})
    with pytest.raises(SettingsError, match="is a folder; name a file"):
        load(tmp_path, {})
    (tmp_path / "config.yaml").write_bytes(b"app: \xff\xfe\x00")
    with pytest.raises(SettingsError, match="UTF-8"):
        load(tmp_path / "config.yaml", {})


@pytest.mark.parametrize(
    "line", [f"APP__DISCORD__TOKEN {SECRET}", f"APP__DISCORD__TOKEN='{SECRET}", "APP__DISCORD__TOKEN"]
)
def test_a_broken_line_in_env_is_named_by_number(refused: Failure, line: str) -> None:
    """Pitfall 22: a token on a broken line stays out of the text."""
    text = refused(dotenv=f"# first\nX=1\n{line}\n")
    assert text.startswith(".env:3: ")
    assert SECRET not in text


def test_an_unknown_variable_in_env_is_named_with_its_line(refused: Failure) -> None:
    assert refused(dotenv=f"X=1\nAPP__DISCORD__TOKN={SECRET}\n") == (
        ".env:2: APP__DISCORD__TOKN: discord.tokn is not a known key; did you mean APP__DISCORD__TOKEN?"
    )


def test_what_may_be_a_token_in_the_place_of_a_key_is_not_shown(refused: Failure) -> None:
    """Pitfall 22: a token pasted to where a key belongs."""
    token = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"
    assert token not in refused(f"discord: {{{token}: x}}")
    assert token.lower() not in refused(environ={f"APP__DISCORD__{token}": "x"}).lower()


def _error_of(make: Callable[[], Settings]) -> str:
    """What went wrong, or else a secret shown in print."""
    try:
        settings = make()
    except (SettingsError, ValidationError) as error:
        return str(error)
    return repr(settings.discord.token)


junk = st.recursive(
    st.sampled_from([SECRET, f"x{SECRET} y", f"{SECRET}\n", 5, -1.0, True, None]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["token", "a", "5"]), inner, max_size=2)
    ),
    max_leaves=4,
)
paths = st.sampled_from([key.path for key in all_keys()])


def test_a_placeholder_that_was_left_in_is_named(refused: Failure) -> None:
    assert "discord.channels" in refused("discord: {channels: {<id>: {token: x}}}")


@given(places=st.lists(st.tuples(paths, junk), min_size=1, max_size=4), read_environment=st.booleans())
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_value_ever_gets_into_an_error_text(
    tmp_path: Path, places: list[tuple[tuple[str, ...], object]], *, read_environment: bool
) -> None:
    """Pitfall 22: validation errors print the offending value."""
    tree: dict[str, object] = {}
    environ: dict[str, str] = {}
    for (section, *path), value in places:
        text = value if isinstance(value, str) else json.dumps(value)
        environ["__".join(["APP", section, *path]).upper().replace("<ID>", "311")] = text
        node: object = value
        for word in reversed(path):
            node = {word: node}
        tree[section] = node
    (tmp_path / "config.yaml").write_text("" if read_environment else yaml.safe_dump(tree), "utf-8")
    line = _error_of(lambda: load(tmp_path / "config.yaml", environ if read_environment else {}))
    assert SECRET not in line
    assert "\n" not in line
    assert SECRET not in _error_of(lambda: Settings.model_validate(tree))


REVIEWED = "ai_response: {approval: all}\ndiscord: {review_channel_id: 1}\n"


@pytest.mark.parametrize(
    ("yaml", "says"),
    [
        ("ai_response: {approval: all}", "ai_response.approval is all, but discord.review_channel_id is not set"),
        (
            "discord: {channels: {5: {approval: unsure}}}",
            "discord.channels.5.approval is unsure, but discord.review_channel_id is not set",
        ),
        ("guilds: {7: {ai_response: {approval: all}}}", "but guilds.7.discord.review_channel_id is not set"),
        (
            f"{REVIEWED}guilds: {{7: {{discord: {{team_role_ids: [5]}}}}}}",
            "guilds.7.discord.review_channel_id is not set: set it to the channel in which the team of this server",
        ),
    ],
)
def test_answers_that_would_wait_where_nobody_is_shown_them_are_refused(tmp_path: Path, yaml: str, says: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(yaml + "\n")
    with pytest.raises(SettingsError) as refused:
        load(config, {})
    assert says in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_variable_that_lacks_an_underscore_is_not_passed_over(refused: Failure) -> None:
    told = "APP_DISCORD__TOKEN: app_discord is not a known key; did you mean APP__DISCORD__TOKEN?"
    assert refused(environ={"APP_DISCORD__TOKEN": "x"}) == f"environment variable {told}"
    assert refused(dotenv="APP_DISCORD__TOKEN=x\n") == f".env:1: {told}"
