"""Describes a wrong configuration in one line, with the key and the remedy and without any value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo

from model.processes import UserError
from settings.kinds import MAX_NAME_CHARS, TAKEN_NAMES, BelowDataDir, SettingsSection, ValueHelp
from settings.sections import GuildSettings, OperatorSettings, Settings

VARIABLE_ORIGIN = "environment variable "
"""The beginning of `Problem.where` for an environment variable."""

# A longer word, or one with other signs, may be a token in the position of a key.
PRESENTABLE = re.compile(r"[A-Za-z0-9_-]{1,36}", re.ASCII)


class SettingsError(UserError):
    """The configuration cannot be used. The message is one line for the operator: file and line, key and remedy.

    The line never contains a configured value, so that it cannot contain a secret.
    """


class SettingMissing(SettingsError):
    """A key that is needed is not set."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a configuration."""

    where: str  # file and line, or the environment variable
    key: str
    text: str

    @property
    def line(self) -> str:
        return f"{self.where}: {self.text}"


def summarise(problems: Sequence[Problem]) -> str:
    """Return one line with the first problem, and the keys of the others."""
    first, *others = problems
    keys = list(dict.fromkeys(problem.key for problem in others if problem.key != first.key))
    if not keys:
        return first.line
    named = ", ".join(keys[:5]) + (", …" if len(keys) > 5 else "")  # noqa: PLR2004 (as many as a line bears)
    return f"{first.line} (and {len(keys)} more: {named})"


def dotted(path: Sequence[object]) -> str:
    return ".".join(_word(part) for part in path)


def variable_name(path: Sequence[object]) -> str:
    """Return the name of the environment variable that sets the key at `path`."""
    return "__".join(["APP", *(_word(part).upper() for part in path)])


def _word(part: object) -> str:
    text = str(part)
    return text if PRESENTABLE.fullmatch(text) or text == "<id>" else "…"


ANY = "<id>"  # stands in a path for the id of a channel or server, or the name of an operator
NAME_RULE = (
    f"as names at most {MAX_NAME_CHARS} lower-case letters, digits and single underscores that begin with a letter, "
    f"such as ana, but not {' or '.join(sorted(TAKEN_NAMES))}"
)


@dataclass(frozen=True, slots=True)
class SettingKey:
    path: tuple[str, ...]
    kind: str  # what its value must be
    description: str
    default: Any
    section: type[SettingsSection] | None = None  # the model of the keys below it
    nullable: bool = False  # of a section: null, or a word, may replace it
    required: bool = False
    is_text: bool = False
    secret: bool = False
    is_below_data_dir: bool = False

    @property
    def dotted(self) -> str:
        return ".".join(self.path)


@cache
def all_keys() -> tuple[SettingKey, ...]:
    """Return all sections and keys in the order of the models, each section before its keys."""
    return tuple(_keys_below(Settings, ()))


def _fits(known: Sequence[str], path: Sequence[str]) -> bool:
    return len(known) == len(path) and all(mine in {ANY, given} for mine, given in zip(known, path, strict=True))


def find_key(path: Sequence[str]) -> SettingKey | None:
    """Return the key at `path`, in which any word may replace ANY; None: it is unknown."""
    return next((key for key in all_keys() if _fits(key.path, path)), None)


def names_below(path: Sequence[str]) -> list[str]:
    """Return the names of the keys directly below `path`."""
    return [key.path[-1] for key in all_keys() if _fits(key.path[:-1], path)]


def _keys_below(model: type[SettingsSection], above: tuple[str, ...]) -> Iterator[SettingKey]:
    for name, field in model.model_fields.items():
        path = (*above, name)
        section, nullable, by_id = _find_section(field.annotation)
        value_help = _find_help(field)
        if by_id:
            kind = f"a mapping of {_id_noun(section)} {'names' if section is OperatorSettings else 'ids'}"
        elif value_help is not None:
            kind = value_help.kind
        else:
            kind = "a mapping of keys, or null" if nullable else "a mapping of keys"
        yield SettingKey(
            path=path,
            kind=kind,
            description=field.description or "",
            default=_default(field),
            section=None if by_id else section,
            nullable=nullable,
            required=field.is_required(),
            is_text=value_help is not None and value_help.is_text,
            secret=field.annotation is SecretStr,
            is_below_data_dir=any(isinstance(mark, BelowDataDir) for mark in field.metadata),
        )
        if section is not None and by_id:
            path = (*path, ANY)
            yield SettingKey(
                path=path,
                kind="a mapping of keys",
                description=f"One {_id_noun(section)}.",
                default={},
                section=section,
            )
        if section is not None:
            yield from _keys_below(section, path)


def _find_help(field: FieldInfo) -> ValueHelp | None:
    own = next((mark for mark in field.metadata if isinstance(mark, ValueHelp)), None)
    choices = get_args(field.annotation)
    if own is not None:
        return own
    if NoneType in choices:
        other = _find_help(FieldInfo.from_annotation(choices[0]))
        return None if other is None else replace(other, kind=f"{other.kind}, or null")
    if get_origin(field.annotation) is Literal:
        values = ", ".join(f"`{value}`" for value in choices)
        return ValueHelp(f"one of {values}" if len(choices) > 1 else values, is_text=True)
    if field.annotation is int or field.annotation is float:
        return ValueHelp(f"a {'whole ' if field.annotation is int else ''}number{_describe_bounds(field.metadata)}")
    return None


def _describe_bounds(marks: Sequence[object]) -> str:
    """Describe the bounds of a number."""
    bounds = {name: getattr(mark, name) for mark in marks for name in ("ge", "gt", "le") if hasattr(mark, name)}
    if "gt" in bounds:
        return f" above {bounds['gt']}"
    if "le" in bounds:
        return f" from {bounds['ge']} to {bounds['le']}"
    return f" of {bounds['ge']} or more" if bounds else ""


def _id_noun(section: type[SettingsSection] | None) -> str:
    """Return the noun for the thing whose id or name is the name of such a section."""
    return "server" if section is GuildSettings else "operator" if section is OperatorSettings else "channel"


def _default(field: FieldInfo) -> Any:
    return None if field.is_required() else field.get_default(call_default_factory=True, validated_data={})


def _find_section(annotation: Any) -> tuple[type[SettingsSection] | None, bool, bool]:
    """Return the section in an annotation, True if null or a word may replace it, and True if there is one per id."""
    choices = (annotation, *(part for choice in get_args(annotation) for part in (choice, *get_args(choice))))
    for choice in choices:
        if isinstance(choice, type) and issubclass(choice, SettingsSection):
            by_id = get_origin(annotation) is Mapping
            return choice, len(choices) > 1 and not by_id, by_id
    return None, False, False


MAX_LISTED = 10  # no more known names are listed when none is similar

Where = Callable[[Sequence[object]], str]
"""Gives the origin of the value at a path: file and line, or the environment variable."""


def problems_of(error: ValidationError, where_of: Where) -> Iterator[Problem]:
    """Turn pydantic's errors into problems, one for each key; all missing keys of a section are one problem."""
    missing: dict[tuple[str, ...], list[str]] = {}
    reported: set[str] = set()
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        # In a choice of forms, pydantic names the chosen form. An operator may have left ANY as it is.
        path = tuple(part for part in map(str, each["loc"]) if part == ANY or not part.startswith("<"))
        if each["type"] == "missing":
            missing.setdefault(path[:-1], []).append(path[-1])
            continue
        problem = _problem_of(each["type"], path, where_of)
        if problem.key not in reported:
            reported.add(problem.key)
            yield problem
    for path, names in missing.items():
        yield _missing_keys(path, names, where_of)


RENAMED = {
    "discord.capture_continuations": "remove it: whole conversations are captured",
    "ai_response.max_index_chars": "use ai_response.max_index_entries, a number of entries instead of characters",
}
"""The keys of earlier versions, with their remedies."""


def unknown_key(path: Sequence[str], where: str, *, as_variable: bool = False) -> Problem:
    """Describe an unknown key, with a similar one if there is any. `as_variable`: as an environment variable."""
    depth = next(count for count in range(1, len(path) + 1) if find_key(path[:count]) is None)
    name = variable_name if as_variable else dotted
    meant = _guess_key(path[: depth - 1], path[depth - 1])
    siblings = names_below(path[: depth - 1])
    renamed = RENAMED.get(dotted(path[:depth]))
    if renamed is not None:
        remedy = renamed
    elif meant:
        rest = path[depth:] if find_key((*meant, *path[depth:])) else ()
        remedy = f"did you mean {name((*meant, *rest))}?"
    elif 0 < len(siblings) <= MAX_LISTED:
        remedy = f"known here are {', '.join(siblings)}"
    else:
        remedy = "correct or remove it; config.yaml lists every key"
    key = dotted(path[:depth])
    return Problem(where, key, f"{key} is not a known key; {remedy}")


def _guess_key(above: Sequence[str], word: str) -> tuple[str, ...] | None:
    """Return the path of the likeliest key: one of this name elsewhere, else a neighbour with a similar name."""
    name = word.lower().replace("-", "_")
    siblings = names_below(above)
    if name not in siblings:
        # Also with _ in place of the dots, as in APP__DISCORD_TOKEN.
        ends = {key.path: ["_".join(key.path[start:]) for start in range(len(key.path))] for key in all_keys()}
        elsewhere = [path for path, names in ends.items() if name in names]
        # The nearest first: for a key of a server, another key of the same server.
        for depth in range(len(above), 0, -1):
            near = [path for path in elsewhere if _fits(path[:depth], above[:depth])]
            if near:
                return (*above[:depth], *near[0][depth:])
        if elsewhere:
            return elsewhere[0]
    close = get_close_matches(name, siblings, n=1)
    return (*above, close[0]) if close else None


def _problem_of(kind: str, path: tuple[str, ...], where_of: Where) -> Problem:
    where = where_of(path)
    if kind in {"extra_forbidden", "invalid_key"}:
        return unknown_key(path, where)
    if path[-1] == "[key]":
        above, key = dotted(path[:-2]), find_key(path[:-2])
        names = "Discord ids as names, such as 1458745245675032710"
        if key is not None and key.kind.endswith("operator names"):
            names = NAME_RULE
        return Problem(where_of(path[:-1]), above, f"{above} takes {names}")
    key, beyond = _find_nearest(path)
    name = dotted(path[: len(key.path)])
    item = f" (look at item {int(beyond[0]) + 1})" if beyond and beyond[0].isdigit() else ""
    as_json = ", written as JSON" if "APP__" in where and key.kind.startswith(("a list", "a mapping")) else ""
    return Problem(where, name, f"{name} must be {key.kind}{as_json}{item}")


def _find_nearest(path: tuple[str, ...]) -> tuple[SettingKey, tuple[str, ...]]:
    """Return the longest known key at the beginning of a path, and the rest of the path."""
    for length in range(len(path), 0, -1):
        key = find_key(path[:length])
        if key is not None:
            return key, path[length:]
    raise AssertionError(f"no model has {dotted(path)}")


def _missing_keys(path: tuple[str, ...], names: Sequence[str], where_of: Where) -> Problem:
    needed = " and ".join(names)
    variables = " and ".join(variable_name((*path, name)) for name in names)
    where = where_of(path)
    text = f"{dotted(path)} needs {needed} as well; set them in the file or as {variables}{_undo_advice(where)}"
    return Problem(where, dotted((*path, names[0])), text)


def _undo_advice(where: str) -> str:
    """Return the advice to remove an incomplete variable, as every command would refuse it."""
    if where.startswith(VARIABLE_ORIGIN):
        return ", or unset this variable"
    return ", or remove this line" if ": APP__" in where else ""
