"""The configuration: YAML, .env and environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from settings import Settings, SettingsError, load
from settings.errors import all_keys, variable_name
from settings.loading import read_yaml
from tests.fuzzing.mutations import DEEP, TEXTS, THOROUGHLY, damaged, one_line

SECRET = "aVerySecretValueOfSomebody"
PLAIN = f"""\
discord:
  token: "{SECRET}"
  team_member_ids: [1458745245675032710, "2"]
  channels:
    "1458745245675032711": {{reply_mode: "off"}}
  message_batch_wait_seconds: 60
ai_response:
  llm: &model
    base_url: https://llm.example/v1
    model: m
    api_key: "{SECRET}"
kb:
  llm: *model
  source_urls: {{guides: https://docs.example}}
limits:
  tokens_per_day: 5
app: {{data_dir: data, log_level: info}}
"""
DOTENV = f"""\
# comment
APP__DISCORD__TOKEN={SECRET}
export APP__DISCORD__TEAM_MEMBER_IDS='[1, "2"]'
APP__AI_RESPONSE__LLM={{"base_url": "https://llm.example/v1", "model": "m", "api_key": "{SECRET}"}}
OTHER=x
APP__APP__LOG_LEVEL="debug"
"""
SHIPPED = (Path(__file__).parents[2] / "config.yaml").read_text("utf-8")
DEMO = (Path(__file__).parents[2] / "examples" / "demo.yaml").read_text("utf-8")
SMALL = "app: {data_dir: data}\n"
ODD_YAML = (
    *(
        "2026-13-45",
        "!!int x",
        "!!float x",
        "!!bool x",
        "!!binary x",
        "!!timestamp x",
        "!!python/object:os.x {}",
        "!x y",
    ),
    *(
        "!!set {a, b}",
        "!!omap [a: 1]",
        "? [a]\n: b",
        "? {a: 1}\n: b",
        "<<: 5",
        "<<: [1]",
        ".inf",
        ".nan",
        "0o8",
        "1:60:70",
    ),
    *(
        "&a [*a]",
        "&a {b: *a}",
        "*unknown",
        "0x",
        "1_000",
        "@",
        "`",
        "|",
        ">",
        "|9",
        "- - -",
        "{",
        "[",
        "%YAML 3.0\n---\n",
        "2001-12-14t21:59:43.10-05:99",
    ),
)
VARIABLES = [variable_name(key.path).replace("…", "5") for key in all_keys()]


def refused_in_one_line(path: Path, environ: dict[str, str]) -> Settings | None:
    try:
        return load(path, environ)
    except SettingsError as error:
        one_line(error, hidden=SECRET)
        return None


def odd_yaml(text: str) -> st.SearchStrategy[bytes]:
    """With another value behind one of the colons."""
    pieces = text.split(": ")

    def apply(at: int, value: str) -> bytes:
        place = 1 + at % (len(pieces) - 1)
        _, _, rest = pieces[place].partition("\n")
        return ": ".join([*pieces[:place], f"{value}\n{rest}", *pieces[place + 1 :]]).encode("utf-8", "surrogatepass")

    return st.builds(apply, st.integers(0, 1000), st.sampled_from(ODD_YAML + TEXTS))


@THOROUGHLY
@given(damaged(PLAIN.encode(), DEMO.encode()) | odd_yaml(PLAIN))
@example(b"app: !!bool x")
@example(b'app: !!int ""')
@example(b"app: !!timestamp x")
def test_a_configuration_is_read_or_refused_in_one_line_that_shows_no_value(tmp_path: Path, content: bytes) -> None:
    """Pitfalls 22 and 45."""
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    refused_in_one_line(path, {})


@THOROUGHLY
@given(damaged(PLAIN.encode(), DEMO.encode()) | odd_yaml(PLAIN))
@example(SHIPPED.encode())
@example(b"app: a\n\tdata_dir: b")
@example(b"app: !")
@example(b"? app\n")
def test_the_parser_in_c_reads_what_the_one_in_python_reads(tmp_path: Path, content: bytes) -> None:
    """Values, and the line of each. What the latter refuses is of no matter."""
    path = tmp_path / "config.yaml"
    path.write_bytes(content)

    def read() -> tuple[str, object] | None:
        try:
            draft = read_yaml(path)
        except SettingsError:
            return None
        return repr(draft.values), draft.origins

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("settings.loading._LOADERS", (yaml.SafeLoader,))
        in_python = read()
    assert in_python in (None, read())


@THOROUGHLY
@given(damaged(DOTENV.encode()))
def test_so_is_what_lies_beside_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(SMALL, "utf-8")
    (tmp_path / ".env").write_bytes(content)
    refused_in_one_line(path, {})


@THOROUGHLY
@given(
    st.sampled_from(VARIABLES),
    st.sampled_from((*TEXTS, "[", "{}", '{"a": 1}', "[1]", '["x"]', "1e400", "-5", "[" * DEEP)) | st.text(max_size=9),
)
def test_so_is_an_environment_variable(tmp_path: Path, name: str, value: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(SMALL, "utf-8")
    refused_in_one_line(path, {name: value})
