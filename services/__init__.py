"""Whom operators and sinks talk to, in rooms. A room exports what its `__init__` imports."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from functools import cache, cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast


def lazy_exports(room: str) -> Callable[[str], object]:
    """Return the `__getattr__` of a room that imports each of its exports at the first use (PEP 562).

    `room`: the name of its package, whose `__init__` imports the exports under `if TYPE_CHECKING:`. A process that
    reads files (`clock.worker`) works with a single module, and would import all others of its rooms: 1.1 s, not 0.2.
    """

    @cache
    def home() -> dict[str, str]:
        """Return the module of each export."""
        tree = ast.parse(Path(str(sys.modules[room].__file__)).read_text(encoding="utf-8"))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module != room]
        return {alias.name: str(node.module) for node in imports for alias in node.names}

    def export(name: str) -> object:
        if name.startswith("__") or name not in home():
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(import_module(home()[name]), name)
        setattr(sys.modules[room], name, value)
        return value

    return export


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return `re.compile(pattern, flags)`, which is compiled when it is asked for the first time.

    For rooms with many long patterns: compiling those of search and redaction takes 0.15 s, and a command needs a
    tenth of them.
    """
    return cast("re.Pattern[str]", LazyPattern(pattern, flags))


class LazyPattern:
    """Stands in the place of a pattern. After its first use, its methods are those of the pattern."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        found = re.compile(self.pattern, self._flags)
        vars(self).update({name: getattr(found, name) for name in _METHODS})
        return found

    def __getattr__(self, name: str) -> Any:
        if name in _METHODS:  # a module may keep the method under a name of its own, long before it calls it
            return partial(self._ask, name)
        return getattr(self.compiled, name)

    def _ask(self, method: str, *arguments: Any, **named: Any) -> Any:
        return getattr(self.compiled, method)(*arguments, **named)


_METHODS = frozenset({"search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"})
