from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from settings import Settings, SettingsError, load

Loader = Callable[..., Settings]
Failure = Callable[..., str]


@pytest.fixture
def loaded(tmp_path: Path) -> Loader:
    """Loads a configuration of this text, .env and environment."""

    def load_it(text: str = "", *, dotenv: str | None = None, environ: Mapping[str, str] | None = None) -> Settings:
        (tmp_path / "config.yaml").write_text(text, "utf-8")
        if dotenv is not None:
            (tmp_path / ".env").write_text(dotenv, "utf-8")
        return load(tmp_path / "config.yaml", environ or {})

    return load_it


@pytest.fixture
def refused(loaded: Loader, tmp_path: Path) -> Failure:
    """The one line that says why a configuration was refused, without its folder."""

    def fail(text: str = "", *, dotenv: str | None = None, environ: Mapping[str, str] | None = None) -> str:
        with pytest.raises(SettingsError) as caught:
            loaded(text, dotenv=dotenv, environ=environ)
        line = str(caught.value)
        assert "\n" not in line
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None or caught.value.__suppress_context__
        return line.replace(f"{tmp_path}/", "")

    return fail
