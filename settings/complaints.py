"""What is wrong with a configuration, in words of our own: Pydantic's quote the values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from pydantic import ValidationError

from settings.draft import Draft
from settings.errors import Problem, dotted, variable
from settings.keys import SettingKey, all_keys, find, names_below

FEW = 10
"""So many known names are listed where none comes close."""


def complaints(error: ValidationError, draft: Draft) -> Iterator[Problem]:
    """Each problem once, however many errors it makes; what a mapping lacks is one problem."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    told: set[str] = set()
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        path = tuple(map(str, each["loc"]))
        if each["type"] == "missing":
            lacking.setdefault(path[:-1], []).append(path[-1])
            continue
        problem = _complaint(each["type"], path, draft)
        if problem.key not in told:
            told.add(problem.key)
            yield problem
    for path, names in lacking.items():
        yield _lack(path, names, draft)


def unknown(path: Sequence[str], where: str, *, as_variable: bool = False) -> Problem:
    """Nothing is called that; perhaps something else was meant. `as_variable`: say it in names of the environment."""
    depth = next(count for count in range(1, len(path) + 1) if find(path[:count]) is None)
    name = variable if as_variable else dotted
    meant = _meant(path[: depth - 1], path[depth - 1])
    siblings = names_below(path[: depth - 1])
    if meant:
        rest = path[depth:] if find((*meant, *path[depth:])) else ()
        remedy = f"did you mean {name((*meant, *rest))}?"
    elif 0 < len(siblings) <= FEW:
        remedy = f"known here are {', '.join(siblings)}"
    else:
        remedy = "correct or remove it; README.md lists every key"
    key = dotted(path[:depth])
    return Problem(where, key, f"{key} is not a known key; {remedy}")


def _meant(above: Sequence[str], word: str) -> tuple[str, ...] | None:
    """The likeliest key: one of this name elsewhere, else a neighbour with a similar name."""
    name = word.lower().replace("-", "_")
    siblings = names_below(above)
    if name not in siblings:
        elsewhere = next((key.path for key in all_keys() if key.path[-1] == name), None)
        if elsewhere:
            return elsewhere
    close = get_close_matches(name, siblings, n=1)
    return (*above, close[0]) if close else None


def _complaint(kind: str, path: tuple[str, ...], draft: Draft) -> Problem:
    where = draft.where(path)
    if kind in {"extra_forbidden", "invalid_key"}:
        return unknown(path, where)
    if path[-1] == "[key]":
        above = dotted(path[:-2])
        return Problem(
            draft.where(path[:-1]), above, f"{above} takes Discord ids as names, such as 1458745245675032710"
        )
    key, beyond = _nearest(path)
    name = dotted(path[: len(key.path)])
    item = f" (look at item {int(beyond[0]) + 1})" if beyond and beyond[0].isdigit() else ""
    as_json = ", written as JSON" if "APP__" in where and key.kind.startswith(("a list", "a mapping")) else ""
    return Problem(where, name, f"{name} must be {key.kind}{as_json}{item}")


def _nearest(path: tuple[str, ...]) -> tuple[SettingKey, tuple[str, ...]]:
    """The key that a path leads to or through, and the rest of the path."""
    for length in range(len(path), 0, -1):
        key = find(path[:length])
        if key is not None:
            return key, path[length:]
    raise AssertionError(f"no model has {dotted(path)}")


def _lack(path: tuple[str, ...], names: Sequence[str], draft: Draft) -> Problem:
    needed = " and ".join(names)
    variables = " and ".join(variable((*path, name)) for name in names)
    text = f"{dotted(path)} needs {needed} as well; set them in the file or as {variables}"
    return Problem(draft.where(path), dotted((*path, names[0])), text)
