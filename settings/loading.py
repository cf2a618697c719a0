"""config.yaml, then .env beside it, then the environment: later ones win."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from settings.complaints import complaints
from settings.environment import from_dotenv, from_environment, lay_over
from settings.errors import SettingsError, summary
from settings.root import Settings
from settings.yaml_file import read_yaml


def load(path: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """The configuration in `path` and around it, checked, with absolute paths.

    `environ` takes the place of the process's environment.

    Raises:
        SettingsError: something is missing or wrong.
    """
    draft = read_yaml(path)
    problems = lay_over(draft, from_dotenv(path.with_name(".env")))
    problems += lay_over(draft, from_environment(os.environ if environ is None else environ))
    settings = None
    try:
        settings = Settings.model_validate(draft.values)
    except ValidationError as error:
        problems += complaints(error, draft)
    # Raised out here, so that it does not carry Pydantic's error, which holds every value.
    if settings is None or problems:
        raise SettingsError(summary(problems))
    return settings.placed(path.absolute().parent)
