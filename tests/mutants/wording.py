"""Which mutants change words only that no test has to notice: the text of a log line, the type that `cast` names."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_LEVELS = frozenset(("debug", "info", "warning", "error", "exception", "critical"))
_ORIGINAL = "orig"


def in_words_only(module: str) -> set[str]:
    """The names of the mutants that differ in such words alone from the original.

    `module`: the source that mutmut has put its mutants into, each a function beside the original. A mutant without
    the text, or one that logs another value, differs in more.
    """
    variants: dict[str, dict[str, ast.AST]] = {}
    for node in ast.walk(ast.parse(module)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "__mutmut_" in node.name:
            function, _, variant = node.name.rpartition("__mutmut_")
            variants.setdefault(function, {})[variant] = node
    return {f"{function}__mutmut_{variant}" for function, nodes in variants.items() for variant in _alike(nodes)}


def _alike(nodes: dict[str, ast.AST]) -> Iterable[str]:
    """The variants of one function that are the original but for such words."""
    original = nodes.pop(_ORIGINAL)
    if not _leave_out_words(original):
        return ()
    return [variant for variant, node in nodes.items() if _leave_out_words(node) and _body(node) == _body(original)]


def _leave_out_words(function: ast.AST) -> bool:
    """Whether there were any."""
    worded = [node for node in ast.walk(function) if isinstance(node, ast.Call) and _has_words(node)]
    for call in worded:
        call.args[0] = ast.Constant("")
    return bool(worded)


def _has_words(call: ast.Call) -> bool:
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="log"), attr=level), args=[ast.Constant(value=str()), *_]):
            return level in _LEVELS
        case ast.Call(func=ast.Name(id="cast"), args=[_, _]):
            return True
        case _:
            return False


def _body(function: ast.AST) -> str:
    """All of it but its name."""
    return "".join(ast.dump(node) for node in ast.iter_child_nodes(function))
