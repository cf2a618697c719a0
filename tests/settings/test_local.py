"""What an operator writes into config.local.yaml, beside the file that comes with the program."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from settings import Settings, SettingsError, load, local_file
from settings.reference import render_config

ROOT = Path(__file__).parents[2]
LLM = "{base_url: 'http://127.0.0.1/v1', api_key: k, model: m}"

Loaded = Callable[..., Settings]


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    def load_it(text: str, local: str, *, dotenv: str = "", environ: Mapping[str, str] | None = None) -> Settings:
        (tmp_path / "config.yaml").write_text(text, "utf-8")
        (tmp_path / "config.local.yaml").write_text(local, "utf-8")
        (tmp_path / ".env").write_text(dotenv, "utf-8")
        return load(tmp_path / "config.yaml", environ or {})

    return load_it


def test_what_an_operator_sets_outlives_an_update_of_the_program(tmp_path: Path) -> None:
    """Pitfall 71: an operator's edited `config.yaml` conflicts with the next update of the program."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    author = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    program, clone = tmp_path / "program", tmp_path / "clone"

    def run(folder: Path, *arguments: str) -> str:
        done = subprocess.run(
            [git, "-C", str(folder), *author, *arguments], capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout

    program.mkdir()
    run(program, "init", "-q")
    shutil.copy(ROOT / ".gitignore", program)
    (program / "config.yaml").write_text(render_config())
    run(program, "add", ".")
    run(program, "commit", "-qm", "one")
    run(tmp_path, "clone", "-q", str(program), str(clone))
    (clone / "config.local.yaml").write_text("discord:\n  team_member_ids: [311]\n")
    (program / "config.yaml").write_text(render_config().replace("team_active_seconds: 120", "team_active_seconds: 90"))
    run(program, "commit", "-qam", "two")
    run(clone, "pull", "-q", "--ff-only")
    assert run(clone, "status", "--porcelain") == "", "nor does it show up as something to commit"
    discord = load(clone / "config.yaml", {}).discord
    assert (discord.team_member_ids, discord.team_active_seconds) == ({311}, 90)


def test_the_local_file_wins_over_the_shipped_one_then_env_then_the_environment(loaded: Loaded) -> None:
    settings = loaded(
        "limits: {answers_per_day: 1, tokens_per_day: 1, chains_per_user_per_hour: 1}\nmetrics: {port: 1}",
        "limits: {tokens_per_day: 2, chains_per_user_per_hour: 2}\nmetrics: {port: 2}",
        dotenv="APP__LIMITS__CHAINS_PER_USER_PER_HOUR=3\nAPP__METRICS__PORT=3\n",
        environ={"APP__METRICS__PORT": "4"},
    )
    limits = settings.limits
    assert (limits.answers_per_day, limits.tokens_per_day, limits.chains_per_user_per_hour) == (1, 2, 3)
    assert settings.metrics.port == 4


def test_sections_are_merged_key_by_key_and_lists_replaced(loaded: Loaded) -> None:
    settings = loaded(
        "discord:\n  team_role_ids: [1, 2]\n  reply_mode: mention\n"
        "  channels: {5: {reply_mode: all, when_unsure: point}, 6: &six {reply_mode: all}, 7: *six}\n",
        "discord:\n  team_role_ids: [3]\n  channels: {'5': {reply_mode: off}, 7: {reply_mode: off}}\n",
    )
    assert settings.discord.team_role_ids == {3}
    assert settings.discord.reply_mode == "mention"
    channels = settings.discord.channels
    assert {key: (each.reply_mode, each.when_unsure) for key, each in channels.items()} == {
        5: ("off", "point"),
        6: ("all", None),
        7: ("off", None),
    }


def test_over_the_file_as_it_is_shipped_any_section_may_be_given(loaded: Loaded) -> None:
    settings = loaded(
        render_config(),
        f"ai_response: {{llm: {LLM}}}\nsearch: {{embeddings: {LLM}}}\ndiscord: {{channels: {{5: {{}}}}}}",
    )
    assert settings.ai_response.llm is not None
    assert not isinstance(settings.search.embeddings, str)
    assert list(settings.discord.channels) == [5]


@pytest.mark.parametrize("local", ["", "# nothing yet\n", "discord:\n  # reply_mode: off\nkb: {}\n"])
def test_a_local_file_of_comments_changes_nothing(loaded: Loaded, local: str) -> None:
    assert loaded("discord: {reply_mode: mention}", local).discord.reply_mode == "mention"


def test_a_null_takes_a_model_away(loaded: Loaded) -> None:
    assert loaded(f"ai_response: {{llm: {LLM}}}", "ai_response: {llm: null}").ai_response.llm is None


@pytest.mark.parametrize(
    ("text", "local", "says"),
    [
        (
            "discord: {reply_mode: all}",
            "\ndiscord:\n  reply_mode: loud",
            "config.local.yaml:3: discord.reply_mode must",
        ),
        ("discord: {reply_mode: loud}", "discord: {feedback: true}", "config.yaml:1: discord.reply_mode must"),
        ("", "discord: {team_member_ids: [5, x]}", "config.local.yaml:1: discord.team_member_ids must"),
        ("", "\nlimit: {}", "config.local.yaml:2: limit is not a known key; did you mean limits?"),
        ("", "a: [", "config.local.yaml:1:"),
        ("", "- a", "config.local.yaml: the top level must be a mapping"),
        ("", "app: {}\napp: {}", "config.local.yaml:2: app stands here again"),
        ("discord: {}", "discord: 5", "config.local.yaml:1: discord must be a mapping of keys"),
        ("ai_response: {}", "ai_response:\n  llm: {model: m}", "config.local.yaml:2: ai_response.llm needs"),
        ("a: &x {b: *x}", "a: &y {b: *y}", "a is not a known key"),
    ],
)
def test_an_error_names_the_file_and_line_that_it_came_from(
    loaded: Loaded, tmp_path: Path, text: str, local: str, says: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(text, local)
    assert says in str(caught.value).replace(f"{tmp_path}/", "")


def test_a_local_file_that_leads_nowhere_is_not_passed_over(loaded: Loaded, tmp_path: Path) -> None:
    loaded("", "")
    (tmp_path / "config.local.yaml").unlink()
    (tmp_path / "config.local.yaml").symlink_to("nowhere")
    with pytest.raises(SettingsError, match=r"config\.local\.yaml: there is no such file"):
        load(tmp_path / "config.yaml", {})


@pytest.mark.parametrize(
    ("name", "local"),
    [("config.yaml", "config.local.yaml"), ("bot.yml", "bot.local.yml"), ("a.b.yaml", "a.b.local.yaml")],
)
def test_another_configuration_has_a_local_file_of_its_own(tmp_path: Path, name: str, local: str) -> None:
    assert local_file(tmp_path / name) == tmp_path / local
    (tmp_path / name).write_text(yaml.safe_dump({"discord": {"reply_mode": "all"}}))
    (tmp_path / local).write_text(yaml.safe_dump({"discord": {"reply_mode": "mention"}}))
    assert load(tmp_path / name, {}).discord.reply_mode == "mention"
