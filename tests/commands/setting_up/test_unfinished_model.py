"""`--init` where a key is set and not its model: it is the key of the model that is being set up."""

from __future__ import annotations

import pytest

from settings import load
from tests.commands.conftest import SECRET_KEY
from tests.commands.setting_up.conftest import Clone
from tests.loopback.llm_server import LLMServer

VARIABLE = "APP__AI_RESPONSE__LLM__API_KEY"
LINE = f"{VARIABLE}={SECRET_KEY}\n"


def test_a_key_in_the_environment_is_that_of_the_model_in_the_answers(
    clone: Clone, model_there: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 22: it is written nowhere."""
    monkeypatch.setenv(VARIABLE, SECRET_KEY)
    code, out, err = clone.init(model_base_url=model_there.base_url, model_name="m")
    assert (code, err) == (0, "")
    assert "LLM m at 127.0.0.1" in out
    assert clone.local == {"ai_response": {"llm": {"base_url": model_there.base_url, "model": "m"}}}
    assert ".env" not in clone.written
    assert f"Bearer {SECRET_KEY}" in str(model_there.seen[-1].headers)
    llm = load(clone.config).ai_response.llm
    assert llm is not None
    assert llm.api_key.get_secret_value() == SECRET_KEY


def test_a_key_in_env_is_too_and_stays_there(clone: Clone, model_there: LLMServer) -> None:
    (clone.folder / ".env").write_text(LINE)
    assert clone.init(model_base_url=model_there.base_url, model_name="m", documentation="docs")[0] == 0
    assert clone.written[".env"] == LINE
    assert clone.local["ai_response"] == {"llm": {"base_url": model_there.base_url, "model": "m"}}
    assert load(clone.config).ai_response.llm is not None


def test_a_name_without_an_address_is_offered_likewise(clone: Clone, model_there: LLMServer) -> None:
    (clone.folder / ".env").write_text(f"{LINE}APP__AI_RESPONSE__LLM__MODEL=m\n")
    assert clone.init(model_base_url=model_there.base_url)[0] == 0
    llm = load(clone.config).ai_response.llm
    assert llm is not None
    assert (llm.base_url, llm.model) == (model_there.base_url, "m")


def test_a_key_without_a_model_keeps_nobody_from_setting_up_the_rest(clone: Clone) -> None:
    (clone.folder / ".env").write_text(LINE)
    code, out, err = clone.init(documentation="docs", build_index=True)
    assert (code, err) == (0, "")
    assert "! ai_response.llm lacks something still; there is api_key" in out
    assert "other commands refuse it; with model_base_url `none` it is taken away" in out
    assert clone.written[".env"] == LINE, "what is left out stays as it is"
    assert clone.local == {"kb": {"sources_dir": "docs"}}
    code, _, err = clone.run("--check")
    assert code == 2
    assert f".env:1: {VARIABLE}: ai_response.llm needs base_url and model as well" in err


def test_a_lone_key_of_another_model_is_told_and_stops_nothing(clone: Clone) -> None:
    (clone.folder / ".env").write_text(f"APP__KB__LLM__API_KEY={SECRET_KEY}\n")
    code, out, err = clone.init(documentation="docs", build_index=True)
    assert (code, err) == (0, "")
    assert "! kb.llm has api_key and no more: complete or remove it, other commands refuse it" in out
    assert clone.local == {"kb": {"sources_dir": "docs"}}
    code, _, err = clone.run("--check")
    assert code == 2
    assert "kb.llm needs base_url and model as well" in err


def test_no_model_takes_a_key_that_was_left_behind_away(clone: Clone) -> None:
    (clone.folder / ".env").write_text(f"OTHER=1\n{LINE}")
    code, out, _ = clone.init(model_base_url="none")
    assert code == 0
    assert "no model is asked" in out
    assert clone.written[".env"] == "OTHER=1\n"
    assert load(clone.config).ai_response.llm is None


def test_a_key_in_the_environment_that_no_model_is_wanted_for_is_to_be_unset(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, SECRET_KEY)
    code, out, _ = clone.init(model_base_url="none")
    assert code == 0
    assert f"the environment variable {VARIABLE} wins over what was written: unset it" in out


def test_an_unfinished_model_that_is_wrong_besides_is_one_line(clone: Clone) -> None:
    """Only what is missing is asked for."""
    (clone.folder / "config.local.yaml").write_text("ai_response: {llm: small}\n")
    code, _, err = clone.init(documentation="docs")
    assert code == 2
    assert "ai_response.llm must be a mapping of keys, or null" in err
