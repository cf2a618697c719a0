"""Turns each directive of reStructuredText (of docutils, Sphinx and its extensions) into a few plain nodes.

Nothing is opened or executed, and the text of an unknown directive stays. Importing this imports docutils; `reading`
does so when the first document is read.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from docutils import nodes
from docutils.parsers.rst import directives


def name_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OPTION = re.compile(r":(?P<name>[\w-]+):(?: +(?P<value>.*)|$)")
_OBJECT_FIELDS = frozenset(["returns", "return", "rtype"])


class TitledContent(nodes.General, nodes.Element):
    """A title (the first child) and its content. `style`: `note` (text follows on the same line) or `title`."""


class Signature(nodes.General, nodes.Element):
    """A described object: its names or signatures in `lines`, and its description."""


class Language(nodes.Invisible, nodes.Element):
    """Sets the language of the following listings that name none."""


class DirectiveCall(NamedTuple):
    """A directive as it stands in the text.

    Attributes:
        name: in lower case, without its domain.
        domain: whether it has a domain (`py:function`).
        direct: whether the argument begins on the line of the name.
        argument: the lines (of docutils' type) up to the options or the first empty line.
        options: by name; the value of a flag is empty.
        content: the rest.
        offset: the line of the text with which the content begins.
    """

    name: str
    domain: bool
    direct: bool
    argument: Any
    options: dict[str, str]
    content: Any
    offset: int

    @property
    def title(self) -> str:
        return " ".join(" ".join(self.argument).split())

    @property
    def body(self) -> str:
        """The content as text, without empty lines around it."""
        return "\n".join(self.content).strip("\n").rstrip()


def parse_call(full_name: str, lines: Any, offset: int) -> DirectiveCall:
    """Split the lines of a directive into argument, options and content. Never raises."""
    domain, _, name = full_name.lower().rpartition(":")
    direct = len(lines) > 0 and bool(lines[0].strip())
    start = 0 if direct else 1
    end = start
    while end < len(lines) and lines[end].strip():
        end += 1
    first_option = next((at for at in range(start, end) if _is_option(lines[at])), end)
    options: dict[str, str] = {}
    for line in lines[first_option:end]:
        match = _OPTION.match(line)
        if match:
            options[match["name"].lower()] = (match["value"] or "").strip()
        else:
            last = next(reversed(options))
            options[last] = f"{options[last]} {line.strip()}".strip()
    return DirectiveCall(name, bool(domain), direct, lines[start:first_option], options, lines[end:], offset + end)


def _is_option(line: str) -> bool:
    match = _OPTION.match(line)
    return match is not None and match["name"] not in _OBJECT_FIELDS


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
"""The titles of directives whose argument is text."""

VERSIONS = {
    "versionadded": "Added in",
    "versionchanged": "Changed in",
    "versionremoved": "Removed in",
    "deprecated": "Deprecated since",
    "deprecated-removed": "Deprecated since",
}

BODIES = name_set("""
    acks autosummary-body compound container cssclass div footer grid header hlist ifconfig line-block rst-class class
    tab-set tabs tab-set-code table figure centered default-domain automodule list-group row column panels
""")
"""Directives whose content is shown and whose argument is not. (The caption of a figure is its content.)"""

CODE = name_set("""
    cmd code code-block console doctest execute_code ipython jupyter-execute literal parsed-literal productionlist
    prompt sourcecode terminal testcode testoutput math mermaid pycon
""")
"""Directives whose content is shown as it is. (`parsed-literal` may hold inline markup.)"""

DROPPED = name_set("""
    audio autosummary bibliography blockdiag cite codeauthor contents currentmodule currentproject date digraph
    default-role graph graphviz iframe image include index inheritance-diagram literalinclude mdinclude meta
    moduleauthor nwdiag pdfpages plantuml plot program raw restructuredtext-test-directive sectionauthor sectnum
    section-numbering seqdiag tabularcolumns tags target-notes testcleanup testsetup title todo todolist uml video
    vimeo youtube
""")
"""Directives that show nothing: pictures, settings, generated lists, other files, and unpublished text."""

OBJECTS = name_set("""
    alias attribute class classmethod cmdoption concept confval constant data decorator decoratormethod describe
    directive enum enumerator envvar event exception function interface macro member method module namespace object
    opcode option property rst staticmethod struct type union var variable
""")
"""Directives that describe an object: the argument has one signature a line, the content describes it."""


def is_automatic(name: str) -> bool:
    """Return whether a directive takes its text from a docstring, to which its content is added."""
    return name.startswith("auto") and name not in BODIES


_ROLE = re.compile(r"(?P<name>[\w:.+-]+)(?:\((?P<base>[\w:.+-]+)\))?")
_ROWS = re.compile(r"[0-9]{1,3}")
_LANGUAGES = {"doctest": "python", "math": "tex", "mermaid": "mermaid", "testcode": "python", "ipython": "python"}
_PAGE_TAGS = name_set("html dirhtml singlehtml builder_html builder_dirhtml builder_singlehtml format_html")
_MAX_TAG_WORDS = 40
_TAG_WORDS = re.compile(r"[()]|[\w.-]{1,60}")
_DELIMITERS = {"tab": "\t", "space": " "}


class Reader(Protocol):
    """The methods of the parser that directives use."""

    @property
    def bases(self) -> dict[str, str]:
        """The base of each role that the text defines, by name."""
        ...

    def parsed(self, call: DirectiveCall, *, with_argument: bool = False) -> nodes.container:
        """Parse the content (and the argument before it) as body, sections included."""
        ...

    def inline(self, text: str) -> list[nodes.Node]:
        """Parse inline markup."""
        ...


def nodes_for(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:  # noqa: PLR0911 (a table of kinds)
    """Return the nodes that replace a directive."""
    name = call.name
    if not call.domain:
        if name in ADMONITIONS:
            return [_titled_content(reader, "note", ADMONITIONS[name], reader.parsed(call, with_argument=True))]
        if name in _HANDLERS:
            return _HANDLERS[name](reader, call)
        if name in VERSIONS:
            return _version(reader, call)
        if name in CODE:
            return _code(reader, call)
        if name in DROPPED:
            return []
        if name in BODIES:
            return [reader.parsed(call, with_argument=not call.direct)]
    if call.domain or name in OBJECTS or is_automatic(name):
        return _object_description(reader, call)
    return _unknown(reader, call)


def _titled_content(reader: Reader, style: str, title: str, *content: nodes.Node) -> TitledContent:
    lead = TitledContent(style=style)
    lead += nodes.title(title, "", *reader.inline(title))
    lead += list(content)
    return lead


def _body_with_title(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:
    body = reader.parsed(call, with_argument=not call.direct)
    return [_titled_content(reader, "title", call.title, body) if call.direct else body]


def _admonition(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:
    if call.direct:
        return [_titled_content(reader, "note", call.title, reader.parsed(call))]
    return _body_with_title(reader, call)


def _tab_item(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:
    """Read `code-tab:: language Title` as a listing below its title."""
    language, _, title = call.title.partition(" ")
    code = nodes.literal_block(call.body, call.body, language=language)
    return [_titled_content(reader, "title", title or language, code)]


def _version(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:
    """Read a remark about a version; a bare `versionadded:: 1.0` is of no use on the newest page and left out."""
    first = call.argument[0].strip() if call.direct else ""
    words = 2 if call.name == "deprecated-removed" else 1
    version = " ".join(first.split()[:words])
    rest = " ".join(first.split()[words:])
    body = reader.parsed(call)
    text = [rest, *(line.strip() for line in call.argument[1:])] if call.direct else list(call.argument)
    if any(text):
        body.insert(0, nodes.paragraph("", "", *reader.inline("\n".join(text).strip())))
    if not body.children and not call.name.startswith(("deprecated", "versionremoved")):
        return []
    return [_titled_content(reader, "note", f"{VERSIONS[call.name]} {version}".strip(), body)]


def _code(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:
    """Read a listing. Further lines in the place of the language belong to it."""
    argument = [line.strip() for line in call.argument]
    verbatim = call.name in ("math", "productionlist")
    language = argument[0].split()[0] if call.direct and not verbatim else ""
    stray = argument if verbatim else call.argument[1 if call.direct else 0 :]
    text = "\n".join([*stray, call.body]).strip("\n")
    if call.name == "parsed-literal":
        text = "\n".join([*call.argument, call.body]).strip("\n")
        return [nodes.literal_block(text, "", *reader.inline(text), language="text")]
    if call.name == "doctest" and language and not language.isidentifier():
        language = ""
    code = nodes.literal_block(text, text, language=_LANGUAGES.get(call.name) or language)
    if not text.strip():
        return []
    caption = call.options.get("caption")
    return [_titled_content(reader, "title", caption, code)] if caption else [code]


def _toctree(_: Reader, call: DirectiveCall) -> list[nodes.Node]:
    """Read the pages below this one as a list of links, by their names, as their titles are in other files."""
    if "hidden" in call.options or "glob" in call.options:
        return []
    listed = nodes.bullet_list()
    for line in [*call.argument, *call.content]:
        title, found, target = line.strip().rpartition(" <")
        page = target.rstrip(">") if found else line.strip()
        if page and page != "self" and not page.startswith(":"):
            shown = title or page.rpartition("/")[2] or page
            uri = page if "://" in page else f"{page}.rst"
            link = nodes.reference("", shown, refuri=uri)
            listed += nodes.list_item("", nodes.paragraph("", "", link))
    return [listed] if listed.children else []


def _object_description(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:
    """Read the signatures and the description of a function, an option, a setting."""
    body = reader.parsed(call)
    shown = call.name in OBJECTS and call.name not in ("module", "namespace")
    if not call.direct or not (shown or body.children):
        return [reader.parsed(call, with_argument=True)] if not call.direct else []
    if call.name == "automodule" or (call.name in ("module", "namespace")):
        return [body]
    described = Signature(lines=_signatures(call.argument))
    described += body
    return [described]


def _signatures(lines: Sequence[str]) -> list[str]:
    """Join each line that ends with a backslash or an open bracket with the next one."""
    found: list[str] = []
    for line in lines:
        if found and (found[-1].endswith(("\\", "(", ",", "["))):
            found[-1] = found[-1].removesuffix("\\") + (" " if found[-1].endswith(",") else "") + line.strip()
        else:
            found.append(line.strip())
    return [re.sub(r"\\(.)", r"\1", line) for line in found]


def _unknown(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:
    """Read an unknown directive: its argument as a title or the name of an object, its content as body. Without content
    it is left out, as it is most likely a marker, a reference or a generated list.
    """
    if not call.direct:
        return [reader.parsed(call, with_argument=True)]
    if not call.body:
        return []
    if len(call.argument) == 1 and " " not in call.title and not call.title.istitle():
        return _object_description(reader, call)
    return _body_with_title(reader, call)


def _role(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:
    """Note the base of a role, `.. role:: name(base)`; without one the role is plain text."""
    match = _ROLE.match(call.title)
    if match:
        reader.bases[match["name"].lower()] = (match["base"] or "ref").lower()
    return []


def _replace(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:
    return reader.inline(" ".join(filter(None, [call.title, " ".join(call.body.split())])))


def _unicode(_: Reader, call: DirectiveCall) -> list[nodes.Node]:
    text = ""
    for code in call.title.partition(" .. ")[0].split():
        try:
            text += directives.unicode_code(code)
        except ValueError:
            text += code
    return [nodes.Text(text)]


def _quote(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:
    body = reader.parsed(call)
    last = body.children[-1] if body.children else None
    if isinstance(last, nodes.paragraph) and last.rawsource.startswith("--"):
        body.remove(last)
        body.append(nodes.attribution("", "", *reader.inline(last.rawsource.lstrip("- "))))
    return [body]


def _only(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:
    """Leave out text that is not on the published page: what is for builders of paper alone, or for a tag of the
    project's own, such as `internal`.
    """
    words = _TAG_WORDS.findall(call.title.lower())
    return [reader.parsed(call)] if not 0 < len(words) <= _MAX_TAG_WORDS or _is_shown(words) else []


def _is_shown(words: list[str]) -> bool:
    """Return the value of an expression of tags, `and`, `or`, `not` and brackets; its words are used up."""
    shown = _all_shown(words)
    while words[:1] == ["or"]:
        del words[0]
        shown = _all_shown(words) or shown
    return shown


def _all_shown(words: list[str]) -> bool:
    shown = _is_tag_shown(words)
    while words[:1] == ["and"]:
        del words[0]
        shown = _is_tag_shown(words) and shown
    return shown


def _is_tag_shown(words: list[str]) -> bool:
    is_wanted = True
    while words[:1] == ["not"]:
        is_wanted = not is_wanted
        del words[0]
    word = words.pop(0) if words else ""
    if word != "(":
        return (word in _PAGE_TAGS) is is_wanted
    shown = _is_shown(words)
    del words[:1]
    return shown is is_wanted


def _list_table(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:
    body = reader.parsed(call)
    outer = next((child for child in body.children if isinstance(child, nodes.bullet_list)), None)
    if outer is None:
        return _captioned(reader, call, [body])
    rows = [[list(cell.children) for row in item.children for cell in row.children] for item in outer.children]
    return _captioned(reader, call, [_grid(rows, _row_count(call.options.get("header-rows")))])


def _csv_table(reader: Reader, call: DirectiveCall) -> list[nodes.Node]:
    """Read the rows in the text; a file or an address is not opened."""
    delimiter = _DELIMITERS.get(call.options.get("delim", ","), call.options.get("delim", ","))
    quote = call.options.get("quote", '"')
    delimiter = delimiter if len(delimiter) == 1 else ","
    quote = quote if len(quote) == 1 else '"'
    header = [call.options["header"]] if call.options.get("header") else []
    try:
        lines = list(
            csv.reader([*header, *call.body.split("\n")], skipinitialspace=True, delimiter=delimiter, quotechar=quote)
        )
    except (csv.Error, TypeError, ValueError):  # a field of 131,072 characters; a delimiter that is none
        lines = [[line] for line in call.body.split("\n")]
    cells = [[[nodes.paragraph("", "", *reader.inline(cell.strip()))] for cell in line] for line in lines if line]
    return _captioned(reader, call, [_grid(cells, len(header) + _row_count(call.options.get("header-rows")))])


def _captioned(reader: Reader, call: DirectiveCall, content: Sequence[nodes.Node]) -> list[nodes.Node]:
    return [_titled_content(reader, "title", call.title, *content)] if call.title else list(content)


def _row_count(value: str | None) -> int:
    return int(value) if value and _ROWS.fullmatch(value) else 0


def _grid(rows: Sequence[Sequence[Sequence[nodes.Node]]], header_rows: int) -> nodes.table:
    head, body = nodes.thead(), nodes.tbody()
    for number, cells in enumerate(rows):
        row = nodes.row("", *(nodes.entry("", *cell) for cell in cells))
        (head if number < header_rows else body).append(row)
    return nodes.table("", nodes.tgroup("", head, body))


_HANDLERS: dict[str, Callable[[Reader, DirectiveCall], list[nodes.Node]]] = {
    "admonition": _admonition,
    "code-tab": _tab_item,
    "csv-table": _csv_table,
    "epigraph": _quote,
    "figure": lambda reader, call: [reader.parsed(call)],
    "group-tab": _body_with_title,
    "highlight": lambda _, call: [Language(language=call.title)],
    "highlights": _quote,
    "image": lambda _reader, _call: [nodes.image()],
    "list-table": _list_table,
    "only": _only,
    "pull-quote": _quote,
    "replace": _replace,
    "role": _role,
    "toctree": _toctree,
    "rubric": lambda reader, call: [_titled_content(reader, "title", call.title)],
    "sidebar": _body_with_title,
    "tab": _body_with_title,
    "table": lambda reader, call: _captioned(reader, call, [reader.parsed(call)]),
    "topic": _body_with_title,
    "unicode": _unicode,
}
