"""Every key there is, found out from the models: for error texts, the environment and the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from settings.kinds import FollowsData, Says, Section
from settings.root import Settings

ANY = "<id>"
"""Stands in a path for whatever the operator writes there."""


@dataclass(frozen=True, slots=True)
class SettingKey:
    path: tuple[str, ...]
    kind: str
    """What its value must be."""
    description: str
    default: Any
    section: type[Section] | None = None
    """The model of what lies below it."""
    nullable: bool = False
    required: bool = False
    as_text: bool = False
    secret: bool = False
    follows_data: bool = False

    @property
    def dotted(self) -> str:
        return ".".join(self.path)


@cache
def all_keys() -> tuple[SettingKey, ...]:
    """Sections and keys, each section before what lies below it, in the order in which the models name them."""
    return tuple(_below(Settings, ()))


def find(path: Sequence[str]) -> SettingKey | None:
    """The key at `path`, in which any word may stand for a channel id; None: there is none."""
    for key in all_keys():
        if len(key.path) == len(path) and all(mine in {ANY, given} for mine, given in zip(key.path, path, strict=True)):
            return key
    return None


def names_below(path: Sequence[str]) -> list[str]:
    """The names that may follow `path`."""
    return [
        key.path[-1]
        for key in all_keys()
        if len(key.path) == len(path) + 1
        and all(mine in {ANY, given} for mine, given in zip(key.path[:-1], path, strict=True))
    ]


def _below(model: type[Section], above: tuple[str, ...]) -> Iterator[SettingKey]:
    for name, field in model.model_fields.items():
        path = (*above, name)
        section, nullable, by_id = _section_of(field.annotation)
        says = next((mark for mark in field.metadata if isinstance(mark, Says)), None)
        kind = says.kind if says else "a mapping of keys, or null" if nullable else "a mapping of keys"
        yield SettingKey(
            path=path,
            kind="a mapping of channel ids" if by_id else kind,
            description=field.description or "",
            default=_default(field),
            section=None if by_id else section,
            nullable=nullable,
            required=field.is_required(),
            as_text=says is not None and says.as_text,
            secret=field.annotation is SecretStr,
            follows_data=any(isinstance(mark, FollowsData) for mark in field.metadata),
        )
        if section is not None and by_id:
            path = (*path, ANY)
            yield SettingKey(
                path=path, kind="a mapping of keys", description="One channel.", default={}, section=section
            )
        if section is not None:
            yield from _below(section, path)


def _default(field: FieldInfo) -> Any:
    return None if field.is_required() else field.get_default(call_default_factory=True, validated_data={})


def _section_of(annotation: Any) -> tuple[type[Section] | None, bool, bool]:
    """The model in an annotation, whether null may stand for it, and whether it comes once per channel id."""
    choices = (annotation, *get_args(annotation))
    for choice in choices:
        if isinstance(choice, type) and issubclass(choice, Section):
            nullable = type(None) in choices
            return choice, nullable, len(choices) > 1 and not nullable
    return None, False, False
