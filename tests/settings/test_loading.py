from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from settings import ChannelSettings, LLMSettings, Settings, SettingsError, discord_token, load
from settings.sections import DiscordSettings
from tests.settings.conftest import Failure, Loader

LLM = "ai_response: {llm: {base_url: 'http://127.0.0.1:8080/v1/', api_key: none, model: small}}"


def test_an_empty_file_gives_the_defaults(loaded: Loader, tmp_path: Path) -> None:
    assert loaded() == Settings().resolve_paths(tmp_path)


def test_a_section_whose_lines_are_all_comments_has_its_defaults(loaded: Loader) -> None:
    assert loaded("discord:\n  # token: x\n").discord == DiscordSettings()


def test_env_beside_the_file_wins_over_it_and_the_environment_over_both(loaded: Loader) -> None:
    settings = loaded(
        "limits: {answers_per_day: 1, tokens_per_day: 1, chains_per_user_per_hour: 1}",
        dotenv="APP__LIMITS__TOKENS_PER_DAY=2\nexport APP__LIMITS__CHAINS_PER_USER_PER_HOUR=2\nOTHER=x\n# note\n",
        environ={"APP__LIMITS__CHAINS_PER_USER_PER_HOUR": "3", "APPLE": "x"},
    )
    assert settings.limits.answers_per_day == 1
    assert settings.limits.tokens_per_day == 2
    assert settings.limits.chains_per_user_per_hour == 3


def test_the_last_of_two_lines_in_env_holds(loaded: Loader) -> None:
    settings = loaded(dotenv="APP__LIMITS__ANSWERS_PER_DAY=1\nAPP__LIMITS__ANSWERS_PER_DAY=2\n")
    assert settings.limits.answers_per_day == 2


def test_the_process_environment_is_used_when_no_other_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("APP__LIMITS__ANSWERS_PER_DAY", "7")
    (tmp_path / "config.yaml").write_text("")
    assert load(tmp_path / "config.yaml").limits.answers_per_day == 7


def test_lists_numbers_and_booleans_come_from_the_environment_as_json(loaded: Loader) -> None:
    """Pitfall 45: lists cannot be set from the environment."""
    settings = loaded(
        environ={
            "app__discord__team_member_ids": '[311, "902"]',
            "APP__Discord__Message_Batch_Wait_Seconds": "2.5",
            "APP__APP__DRY_RUN": "true",
            "APP__DISCORD__ESCALATION_CHANNEL_ID": "77",
            "APP__KB__WEB_FETCH_PRIVATE_HOSTS": '["Wiki.Internal"]',
            "APP__DISCORD__CHANNELS": '{"5": {"reply_mode": "mention"}}',
            "APP__DISCORD__CHANNELS__6__REPLY_MODE": "off",
        }
    )
    assert settings.discord.team_member_ids == {311, 902}
    assert settings.discord.message_batch_wait_seconds == 2.5
    assert settings.app.dry_run is True
    assert settings.discord.escalation_channel_id == 77
    assert settings.kb.web_fetch_private_hosts == ("wiki.internal",)
    assert settings.discord.channels == {
        5: ChannelSettings(reply_mode="mention"),
        6: ChannelSettings(reply_mode="off"),
    }


@pytest.mark.parametrize("text", ["12345", "null", "true", "[1]", '"quoted"', "a$b${HOME}", "1e400"])
def test_text_from_the_environment_is_never_taken_for_json(loaded: Loader, text: str) -> None:
    settings = loaded(
        environ={"APP__DISCORD__TOKEN": text, "APP__DISCORD__OPT_OUT_MARKER": text},
        dotenv=f"APP__DISCORD__ESCALATION_EMOJI='{text}'",
    )
    assert settings.discord.token.get_secret_value() == text
    assert settings.discord.opt_out_marker == text
    assert settings.discord.escalation_emoji == text


def test_a_variable_for_one_channel_leaves_the_others(loaded: Loader) -> None:
    settings = loaded(
        "discord: {channels: {5: {reply_mode: off}, 6: &six {reply_mode: all}, 7: *six}}",
        environ={"APP__DISCORD__CHANNELS__6__REPLY_MODE": "mention"},
    )
    assert {key: each.reply_mode for key, each in settings.discord.channels.items()} == {
        5: "off",
        6: "mention",
        7: "all",
    }


def test_variables_make_the_llm_mapping_where_it_is_null(loaded: Loader) -> None:
    settings = loaded(
        "ai_response: {llm: null}",
        dotenv="APP__AI_RESPONSE__LLM__API_KEY=12345\n",
        environ={
            "APP__AI_RESPONSE__LLM__BASE_URL": "https://bridge.example/v1/llm/",
            "APP__AI_RESPONSE__LLM__MODEL": "small",
        },
    )
    llm = settings.ai_response.llm
    assert llm is not None
    assert (llm.base_url, llm.api_key.get_secret_value(), llm.model) == (
        "https://bridge.example/v1/llm",
        "12345",
        "small",
    )
    assert (llm.vram_limit, llm.structured_output_method) == (24, "function_calling")
    assert (llm.timeout_seconds, llm.max_retries, llm.retry_timeouts) == (60, 2, False)


def test_a_variable_can_take_the_llm_away(loaded: Loader) -> None:
    assert isinstance(loaded(LLM).ai_response.llm, LLMSettings)
    assert loaded(LLM, environ={"APP__AI_RESPONSE__LLM": "null"}).ai_response.llm is None


def test_a_bare_off_in_yaml_is_a_reply_mode(loaded: Loader) -> None:
    assert loaded("discord: {reply_mode: off}").discord.reply_mode == "off"


@given(number=st.integers(1, 2**64 - 1))
def test_any_snowflake_may_be_a_number_or_text(number: int) -> None:
    """Pitfall 45: ids must be quoted."""
    for given_as in (number, str(number), f" {number} "):
        settings = Settings.model_validate(
            {
                "discord": {
                    "team_member_ids": [given_as],
                    "escalation_channel_id": given_as,
                    "channels": {given_as: {"reply_mode": "all"}},
                }
            }
        )
        assert settings.discord.team_member_ids == {number}
        assert settings.discord.escalation_channel_id == number
        assert list(settings.discord.channels) == [number]


def test_a_channel_differs_in_what_it_names_only(loaded: Loader) -> None:
    settings = loaded(
        "ai_response: {when_unsure: silent}\n"
        "discord: {channels: {5: {when_unsure: point}, 6: {reply_mode: off}, 7: {}}}"
    )
    assert settings.discord.channels[5].reply_mode is None
    assert [settings.when_unsure_in(channel) for channel in (5, 6, 7, 8)] == ["point", "silent", "silent", "silent"]
    assert loaded("ai_response: {when_unsure: point}").when_unsure_in(8) == "point"


def test_files_are_embedded_as_the_search_is_unless_they_have_an_endpoint_of_their_own(loaded: Loader) -> None:
    endpoint = "{base_url: 'http://127.0.0.1/v1', api_key: k, model: m}"
    assert loaded().document_embeddings == "packaged"
    assert loaded("search: {embeddings: none}").document_embeddings == "none"
    for text in (f"search: {{embeddings: {endpoint}}}", f"documents: {{embeddings: {endpoint}}}"):
        embeddings = loaded(text).document_embeddings
        assert not isinstance(embeddings, str)
        assert embeddings.model == "m"


def test_variables_make_a_mapping_where_a_word_may_stand(loaded: Loader) -> None:
    below = {"BASE_URL": "http://127.0.0.1/v1", "API_KEY": "k", "MODEL": "m"}
    environ = {f"APP__SEARCH__EMBEDDINGS__{name}": value for name, value in below.items()}
    embeddings = loaded("search: {embeddings: packaged}", environ=environ).search.embeddings
    assert not isinstance(embeddings, str)
    assert embeddings.base_url == "http://127.0.0.1/v1"
    assert loaded(environ={"APP__SEARCH__EMBEDDINGS": "none"}).search.embeddings == "none"


def test_documents_are_published_at_one_address_or_at_one_a_folder(loaded: Loader) -> None:
    assert loaded().kb.source_base_url == ""
    assert loaded("kb: {source_base_url: 'https://docs.example.org/'}").kb.source_base_url == "https://docs.example.org"
    assert loaded(
        "kb: {source_base_url: {guides/: 'https://g.example', ./faq: 'https://f.example/x/'}}"
    ).kb.source_base_url == {
        "guides": "https://g.example",
        "faq": "https://f.example/x",
    }
    environ = {"APP__KB__SOURCE_BASE_URL": "https://docs.example.org"}
    assert loaded(environ=environ).kb.source_base_url == "https://docs.example.org"


def test_globs_keep_their_case(loaded: Loader) -> None:
    kb = loaded("kb: {include: ['Guides/**', ./README.md], exclude: ['*.DRAFT.md']}").kb
    assert (kb.include, kb.exclude) == (("Guides/**", "README.md"), ("*.DRAFT.md",))
    assert loaded(environ={"APP__KB__EXCLUDE": '["old/**"]'}).kb.exclude == ("old/**",)


def test_settings_cannot_be_changed(loaded: Loader) -> None:
    settings = loaded()
    with pytest.raises(ValueError, match="frozen"):
        settings.app.dry_run = True


def test_a_byte_order_mark_does_no_harm(loaded: Loader) -> None:
    assert loaded("\ufefflogging: {level: debug}", dotenv="\ufeffAPP__APP__DRY_RUN=true").logging.level == "DEBUG"


def test_paths_that_are_not_set_follow_the_data_folder(loaded: Loader, tmp_path: Path) -> None:
    kb = loaded("app: {data_dir: /srv/bot}\nkb: {sources_dir: docs, team_raw_dir: data/raw}").kb
    assert kb.sources_dir == tmp_path / "docs"
    assert kb.team_raw_dir == tmp_path / "data/raw"
    assert kb.index_path == Path("/srv/bot/knowledge-base/index.txt")
    assert kb.team_state_path == Path("/srv/bot/team-knowledge/state.json")


def test_paths_are_relative_to_the_file(loaded: Loader, tmp_path: Path) -> None:
    settings = loaded("logging: {file: {path: logs/bot.log}}")
    assert settings.app.data_dir == tmp_path / "data"
    assert settings.kb.links_file_path == tmp_path / "data/knowledge-base/links.txt"
    assert settings.logging.file.path == tmp_path / "logs/bot.log"


def test_no_log_file_is_an_empty_path_or_null(loaded: Loader) -> None:
    assert loaded("logging: {file: {path: ''}}").logging.file.path is None
    assert loaded("logging: {file: {path: null}}").logging.file.path is None


def test_placing_twice_changes_nothing(loaded: Loader, tmp_path: Path) -> None:
    settings = loaded("kb: {sources_dir: docs}")
    assert settings.resolve_paths(tmp_path) == settings


def test_a_rehearsal_moves_what_is_learned_and_leaves_the_documents(loaded: Loader, tmp_path: Path) -> None:
    settings = loaded("kb: {sources_dir: docs, team_raw_dir: /srv/raw}")
    rehearsed = settings.for_replay(Path("/scratch"))
    assert rehearsed.app.data_dir == Path("/scratch")
    assert rehearsed.kb.team_raw_dir == Path("/scratch/team-knowledge/raw")
    assert rehearsed.kb.team_index_path == Path("/scratch/team-knowledge/index-team.txt")
    assert rehearsed.kb.sources_dir == tmp_path / "docs"
    assert rehearsed.kb.index_path == settings.kb.index_path


def test_a_token_is_handed_out_as_it_stands(loaded: Loader) -> None:
    assert (
        discord_token(loaded(dotenv="APP__DISCORD__TOKEN=MTk4.Cl2FMQ.ZnCjm1XVW7vRze4b\n"))
        == "MTk4.Cl2FMQ.ZnCjm1XVW7vRze4b"
    )


@pytest.mark.parametrize("token", ["", "   ", "REPLACE_ME", "your-REPLACE_ME-token"])
def test_a_placeholder_is_no_token(loaded: Loader, token: str) -> None:
    """Pitfall 45: a placeholder token is accepted."""
    settings = loaded(environ={"APP__DISCORD__TOKEN": token})
    with pytest.raises(SettingsError, match=r"^discord\.token is not set: .*APP__DISCORD__TOKEN") as caught:
        discord_token(settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("token", ["two words", "line\nline", "naïve"])
def test_a_token_that_no_header_can_carry_is_refused_without_quoting_it(loaded: Loader, token: str) -> None:
    """Pitfall 22: secrets in error texts."""
    settings = loaded(environ={"APP__DISCORD__TOKEN": token})
    with pytest.raises(SettingsError) as caught:
        discord_token(settings)
    assert token not in str(caught.value)


@pytest.mark.parametrize("given_id", ["", "qa_20260201_031056", "qa_20260201_031056.228", "qa_20260201_031056.228000"])
def test_a_cursor_may_have_any_number_of_fraction_digits(loaded: Loader, given_id: str) -> None:
    assert loaded(f"kb: {{qa_raw_last_processed_id: '{given_id}'}}").kb.qa_raw_last_processed_id == given_id


def test_an_image_adapter_of_another_name_is_refused(refused: Failure) -> None:
    assert "ai_response.llm_image_adapter must be `OpenAIImageAdapter`" in refused(
        "ai_response: {llm_image_adapter: X}"
    )


def test_importing_settings_loads_neither_discord_nor_an_llm_client() -> None:
    heavy = "{'discord', 'openai', 'langchain_core', 'langchain_crynux', 'aiohttp', 'httpx', 'reactivex', 'rich'}"
    code = f"import settings, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
