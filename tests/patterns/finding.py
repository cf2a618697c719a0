"""Finds the patterns of the product: those that its modules keep, and those that its functions compile."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache, lru_cache, partial
from inspect import signature
from pathlib import Path
from types import BuiltinMethodType, FunctionType, ModuleType
from typing import Any, NamedTuple, cast

from services import LazyPattern

ROOT = Path(__file__).parents[2]
PRODUCT = ("assembly", "clock", "commands", "model", "operators", "services", "settings", "sinks", "streams")
_MAKES = frozenset({"compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"})
_AT_ONE_PLACE = frozenset({"match", "fullmatch"})
SEARCHED = "search"


class Found(NamedTuple):
    """A pattern.

    Attributes:
        where: The module and the name that lead to it.
        methods: How it is asked: `match`, `fullmatch`, or `search` for all that look for it in a text.
    """

    where: str
    pattern: re.Pattern[str]
    methods: frozenset[str]


class Made(NamedTuple):
    """A place in a function at which a pattern is compiled. `pattern`: its text, where it is written out."""

    where: str
    pattern: str | None
    methods: frozenset[str]


@lru_cache
def sources() -> dict[str, ast.Module]:
    """The modules of the product."""
    paths = [ROOT / "app.py", *(path for package in PRODUCT for path in sorted((ROOT / package).rglob("*.py")))]
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): ast.parse(path.read_text())
        for path in paths
    }


def kept() -> list[Found]:
    """The patterns that modules keep: by themselves, in collections, classes, closures and what is made once."""
    found: dict[tuple[str, int], Found] = {}
    for name in sources():
        module = importlib.import_module(name)
        for key, value in vars(module).items():
            for pattern, method in within(value, module):
                methods = frozenset({_method(method)}) if method else _methods_of(key, name)
                known = found.get((pattern.pattern, pattern.flags))
                if known:
                    found[pattern.pattern, pattern.flags] = known._replace(methods=known.methods | methods)
                else:
                    found[pattern.pattern, pattern.flags] = Found(f"{name}.{key}", pattern, methods)
    return list(found.values())


def within(value: Any, module: ModuleType, seen: set[int] | None = None) -> Iterator[tuple[re.Pattern[str], str]]:
    """The patterns that can be reached from `value`, and of a method of one its name."""
    seen = set() if seen is None else seen
    if isinstance(value, re.Pattern):
        pattern = cast(re.Pattern[Any], value)
        if isinstance(pattern.pattern, str):
            yield pattern, ""
    elif isinstance(value, LazyPattern):
        yield value.compiled, ""
    elif (owner := _owner(value)) is not None:
        yield owner.compiled, str(value.args[0])  # what `LazyPattern._ask` is to call
    elif isinstance(value, BuiltinMethodType) and isinstance(value.__self__, re.Pattern):
        yield cast(re.Pattern[str], value.__self__), value.__name__
    elif id(value) not in seen and not isinstance(value, str | bytes | int | ModuleType):
        seen.add(id(value))
        for part in _parts(value, module):
            yield from within(part, module, seen)


def _owner(value: Any) -> LazyPattern | None:
    """Return the pattern of a method that was kept before the pattern was compiled."""
    owner: object = getattr(getattr(value, "func", None), "__self__", None)
    return owner if isinstance(owner, LazyPattern) else None


def _parts(value: Any, module: ModuleType) -> Iterator[Any]:
    if isinstance(value, dict):
        whole = cast(dict[Any, Any], value)
        yield from [*whole, *whole.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        yield from cast(list[Any], value)
    elif isinstance(value, partial):
        bound = cast(partial[Any], value)
        yield from [bound.func, *bound.args, *bound.keywords.values()]
    elif isinstance(value, FunctionType):
        yield from (cell.cell_contents for cell in value.__closure__ or ())
        yield from value.__defaults__ or ()
    elif hasattr(value, "cache_info"):
        if not signature(value).parameters and "Pattern" in str(value.__annotations__.get("return")):
            yield value()
    elif isinstance(value, type):
        if value.__module__ == module.__name__:
            yield from list(vars(value).values())
    elif type(value).__module__.partition(".")[0] in PRODUCT:
        yield from cast(dict[str, Any], getattr(value, "__dict__", {})).values()
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        yield from (getattr(value, name, None) for name in slots)


def _methods_of(name: str, module: str) -> frozenset[str]:
    """How the patterns of a name are asked: in its module, and unless it is private in all that have such a name."""
    modules = [module] if name.startswith("_") else list(sources())
    found: set[str] = set()
    for each in modules:
        found |= _methods(each).get(name, frozenset())
    return frozenset(found or {SEARCHED})


@cache
def _methods(module: str) -> dict[str, frozenset[str]]:
    tree = sources()[module]
    found: dict[str, set[str]] = {}
    called = {
        id(node.value): _method(node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.setdefault(node.id, set()).add(called.get(id(node), SEARCHED))
    return {name: frozenset(methods) for name, methods in found.items()}


def _method(name: str) -> str:
    return name if name in _AT_ONE_PLACE else SEARCHED


def made() -> list[Made]:
    """Where functions compile patterns."""
    return [each for name, tree in sources().items() for each in _made_in(tree, name, inside=False)]


def _made_in(node: ast.AST, where: str, *, inside: bool) -> Iterator[Made]:
    for child in ast.iter_child_nodes(node):
        if inside and isinstance(child, ast.Call) and (called := _called(child)):
            text = child.args[0].value if child.args and isinstance(child.args[0], ast.Constant) else None
            yield Made(where, text if isinstance(text, str) else None, frozenset({_method(called)}))
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = not isinstance(child, ast.ClassDef)
            yield from _made_in(child, f"{where}.{child.name}", inside=inside or function)
        else:
            yield from _made_in(child, where, inside=inside or isinstance(child, ast.Lambda))


def _called(call: ast.Call) -> str | None:
    function = call.func
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return None
    return function.attr if function.value.id == "re" and function.attr in _MAKES else None
