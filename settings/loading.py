"""config.yaml, then config.local.yaml and .env beside it, then the environment: later ones win."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from dotenv.parser import parse_stream
from pydantic import ValidationError

from settings.apart import overlapping_paths
from settings.draft import ConfigDraft, drafted, read_text
from settings.errors import (
    IN_ENVIRONMENT,
    Problem,
    SettingKey,
    SettingsError,
    complaints,
    dotted,
    find,
    summary,
    unknown,
    variable,
)
from settings.kinds import fits_header
from settings.sections import LLMSettings, Settings
from settings.serving import dashboard_problems

PREFIX = "app__"
MODEL = ("ai_response", "llm")


@dataclass(frozen=True, slots=True)
class Variable:
    path: tuple[str, ...]
    name: str
    text: str
    origin: str


def from_environment(environ: Mapping[str, str]) -> list[Variable]:
    """The variables that set a key, in an order that does not depend on the environment's."""
    return [
        Variable(path, name, text, f"{IN_ENVIRONMENT}{variable(path)}")
        for name, text in sorted(environ.items())
        if (path := path_of(name)) is not None
    ]


def variables_of(environ: Mapping[str, str]) -> list[str]:
    """The names of the variables that set a key."""
    return [variable(each.path) for each in from_environment(environ)]


def from_dotenv(file: Path) -> list[Variable]:
    """Read the variables of a .env file, which need not exist. Values are literal: `$` has no meaning.

    Raises:
        SettingsError: the file cannot be read, or a line in it.
    """
    if not file.exists():
        return []
    found: dict[str, Variable] = {}
    for binding in parse_stream(io.StringIO(read_text(file, missing="create it"))):
        where = f"{file}:{binding.original.line}"
        if binding.error:
            raise SettingsError(f"{where}: this line is not NAME=value; correct it, or begin it with #")
        path = path_of(binding.key or "")
        if binding.key is None or path is None:
            continue
        if binding.value is None:
            raise SettingsError(f"{where}: {variable(path)} has no value; write {variable(path)}=…")
        # As in a shell, the last of several lines holds.
        found[binding.key] = Variable(path, binding.key, binding.value, f"{where}: {variable(path)}")
    return list(found.values())


def lay_over(draft: ConfigDraft, variables: Iterable[Variable]) -> list[Problem]:
    """Put `variables` over what the draft says, those for whole sections first. Gives those that name no key."""
    problems: list[Problem] = []
    names: dict[tuple[str, ...], str] = {}
    for each in sorted(variables, key=lambda each: len(each.path)):
        key = find(each.path)
        if key is None:
            problems.append(unknown(each.path, each.origin, as_variable=True))
        elif each.path in names:
            text = f"{dotted(each.path)} is set twice, in names that differ only in case; keep one of the two"
            problems.append(Problem(each.origin, dotted(each.path), text))
        else:
            names[each.path] = each.name
            draft.put(each.path, _value(key, each.text), each.origin)
    return problems


def path_of(name: str) -> tuple[str, ...] | None:
    """The key that a variable of this name sets; None: it is somebody else's."""
    lower = name.lower()
    return tuple(lower.removeprefix(PREFIX).split("__")) if lower.startswith(PREFIX) else None


def _value(key: SettingKey, text: str) -> Any:
    """JSON where the key takes no text; what is not JSON stays text, for the models to refuse."""
    if key.as_text:
        return text
    try:
        return json.loads(text, object_pairs_hook=_mapping)
    except (ValueError, RecursionError):
        return text


def _mapping(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a name occurs twice")
    return mapping


def load(
    path: Path,
    environ: Mapping[str, str] | None = None,
    *,
    answers: Mapping[tuple[str, ...], object] | None = None,
    setting_up: bool = False,
) -> Settings:
    """The configuration in `path` and around it, checked, with absolute paths.

    `environ` takes the place of the process's environment; `answers`, by the paths of their keys, win over everything.
    `setting_up`: a model that has only been begun counts as none, as somebody is about to be asked for the rest.

    Raises:
        SettingsError: something is missing or wrong.
    """
    draft, problems = _laid_over(path, environ)
    for each, value in (answers or {}).items():
        draft.put(each, value, "this answer")
    answered = any(each[: len(MODEL)] == MODEL for each in answers or {})
    if setting_up and not answered and _begun(draft):
        draft.put(MODEL, None, draft.where(MODEL))
    settings = None
    try:
        settings = Settings.model_validate(draft.values).placed(path.absolute().parent)
    except ValidationError as error:
        problems += complaints(error, draft.where)
    else:
        problems += [*dashboard_problems(settings, draft.where), *overlapping_paths(settings, draft.where)]
    # Raised out here, so that it does not carry Pydantic's error, which holds every value.
    if settings is None or problems:
        raise SettingsError(summary(problems))
    return settings


def begun_model(path: Path) -> dict[str, str]:
    """The texts that are set of the model that answers, by name, where one that it takes is missing; else nothing.

    Raises:
        SettingsError: a file cannot be read.
    """
    return _begun(_laid_over(path, None)[0])


def _laid_over(path: Path, environ: Mapping[str, str] | None) -> tuple[ConfigDraft, list[Problem]]:
    draft = drafted(path)
    problems = lay_over(draft, from_dotenv(path.with_name(".env")))
    problems += lay_over(draft, from_environment(os.environ if environ is None else environ))
    return draft, problems


def _begun(draft: ConfigDraft) -> dict[str, str]:
    model = draft.at(MODEL)
    if not isinstance(model, dict):
        return {}
    said = cast("dict[object, object]", model)
    fields = LLMSettings.model_fields
    if not any(field.is_required() and name not in said for name, field in fields.items()):
        return {}
    return {name: value for name in fields if isinstance(value := said.get(name), str)}


PLACEHOLDER = "REPLACE_ME"


def usable_token(settings: Settings) -> str:
    """The token to log in with.

    Raises:
        SettingsError: it is missing, a placeholder, or no token by its form.
    """
    token = settings.discord.token.get_secret_value()
    remedy = "copy the bot's token from Discord's developer portal into .env as APP__DISCORD__TOKEN=…"
    if not token or PLACEHOLDER in token:
        raise SettingsError(f"discord.token is not set: {remedy}")
    if not fits_header(token):
        raise SettingsError(f"discord.token holds blanks or letters that no token has: {remedy}")
    return token
