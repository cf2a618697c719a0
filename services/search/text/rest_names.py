"""Groups the directives of docutils, Sphinx and its extensions by how they are shown (names in lower case, without
domain).
"""

from __future__ import annotations

ADMONITIONS = {
    "attention": "Attention",
    "caution": "Caution",
    "danger": "Danger",
    "error": "Error",
    "hint": "Hint",
    "important": "Important",
    "note": "Note",
    "seealso": "See also",
    "tip": "Tip",
    "warning": "Warning",
}
"""Those with a title of their own. What follows the name is their text."""

VERSIONS = {
    "versionadded": "Added in",
    "versionchanged": "Changed in",
    "versionremoved": "Removed in",
    "deprecated": "Deprecated since",
    "deprecated-removed": "Deprecated since",
}

BODIES = frozenset(
    [
        "acks",
        "autosummary-body",
        "compound",
        "container",
        "cssclass",
        "div",
        "footer",
        "grid",
        "header",
        "hlist",
        "ifconfig",
        "line-block",
        "rst-class",
        "class",
        "tab-set",
        "tabs",
        "tab-set-code",
        "table",
        "figure",
        "centered",
        "default-domain",
        "automodule",
        "list-group",
        "row",
        "column",
        "panels",
    ]
)
"""Their content is shown, and the argument is for machines. (The caption is the content of a figure.)"""

CODE = frozenset(
    [
        "cmd",
        "code",
        "code-block",
        "console",
        "doctest",
        "execute_code",
        "ipython",
        "jupyter-execute",
        "literal",
        "parsed-literal",
        "productionlist",
        "prompt",
        "sourcecode",
        "terminal",
        "testcode",
        "testoutput",
        "math",
        "mermaid",
        "pycon",
    ]
)
"""Their content is shown as it is. (`parsed-literal` may hold inline markup.)"""

DROPPED = frozenset(
    [
        "audio",
        "autosummary",
        "bibliography",
        "blockdiag",
        "cite",
        "codeauthor",
        "contents",
        "currentmodule",
        "currentproject",
        "date",
        "digraph",
        "default-role",
        "graph",
        "graphviz",
        "iframe",
        "image",
        "include",
        "index",
        "inheritance-diagram",
        "literalinclude",
        "mdinclude",
        "meta",
        "moduleauthor",
        "nwdiag",
        "pdfpages",
        "plantuml",
        "plot",
        "program",
        "raw",
        "restructuredtext-test-directive",
        "sectionauthor",
        "sectnum",
        "section-numbering",
        "seqdiag",
        "tabularcolumns",
        "tags",
        "target-notes",
        "testcleanup",
        "testsetup",
        "title",
        "todo",
        "todolist",
        "uml",
        "video",
        "vimeo",
        "youtube",
    ]
)
"""Pictures, settings, generated lists, what other files hold, and what is not published."""

OBJECTS = frozenset(
    [
        "alias",
        "attribute",
        "class",
        "classmethod",
        "cmdoption",
        "concept",
        "confval",
        "constant",
        "data",
        "decorator",
        "decoratormethod",
        "describe",
        "directive",
        "enum",
        "enumerator",
        "envvar",
        "event",
        "exception",
        "function",
        "interface",
        "macro",
        "member",
        "method",
        "module",
        "namespace",
        "object",
        "opcode",
        "option",
        "property",
        "rst",
        "staticmethod",
        "struct",
        "type",
        "union",
        "var",
        "variable",
    ]
)
"""Descriptions: the argument is a signature a line, the content says what it is."""


def is_automatic(name: str) -> bool:
    """Return whether a directive takes its text from a docstring; what is written below it is added."""
    return name.startswith("auto") and name not in BODIES
