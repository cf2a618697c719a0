"""Block rules for the Markdown extensions of documentation generators: tabs, admonitions, containers, includes."""

from __future__ import annotations

import re
from typing import cast

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock

_INDENT = 4
_WORDS_OF_A_TITLE = 4
_INCLUDE_LINES = 50
_STATEMENT_LINES = 300

_ADMONITION = re.compile(r"(?:!!!|\?\?\?\+?)[ \t]*(?P<types>[\w-][\w -]{0,80})?(?:\"(?P<title>.*)\")?")
_TAB = re.compile(r"===[!+]{0,2}[ \t]+(?:\"(?P<double>.+)\"|'(?P<single>.+)')")
_SLASHES = re.compile(r"/{3,}+(?:[ \t]++(?P<name>[\w-]++)(?:[ \t]*+\|[ \t]*+(?P<title>.*))?)?")
_COLONS = re.compile(r":{3,}+[ \t]*+(?:\{?(?P<name>[\w.:-]++)\}?)?(?P<rest>(?:[ \t\[{].*)?)")
_LEAF = re.compile(r"::[a-z][\w-]*(?:\[(?P<title>[^\]]*)\])?(?:\{[^{}]*\})?")
_ATTRIBUTES = re.compile(r"\{[^{}]*\}")
_OPTION = re.compile(r"[\w-]+:(?:\s.*)?|- .*")
_SNIPPET = re.compile(r"(?:#+[ \t]*)?;?-{1,}+8<-{1,}+(?P<file>.*)")
_REMOVED_LINE = re.compile(
    r"<<<[ \t]*[@./\w~].*"  # VitePress: code from a file
    r"|\*\[[^\]]+\]:.*"  # what an abbreviation stands for
    r"|\{![^{}]*!\}|@include.*|\[\[?_?toc_?\]?\]|\{:[^{}]*\}|!\[\[.*\]\]|<!--more-->",
    re.IGNORECASE,
)
_STATEMENT = re.compile(
    r"import\s+(?:[\"']|(?:type\s+)?[{*]|(?:type\s+)?[\w$]+(?:\s*,|\s+from\b))"
    r"|export\s+(?:const|let|var|function|default|async|class|type|interface|[{*])"
)
_WHOLE_IMPORT = re.compile(r"import\b[^\"'`]*[\"'][^\"']+[\"']\s*;?")
_KIND_TITLES = {"warning": "Warning", "danger": "Danger", "caution": "Caution", "deprecated": "Deprecated"}
"""Admonitions that are told from a paragraph without a title of their own."""
_WITHOUT_TITLE = {"code-group", "code", "html", "group", "raw", "steps", "cards", "grid", "v-pre"}
PARAGRAPHS: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote"]}


def add_generator_rules(md: MarkdownIt, *, mdx: bool) -> None:
    """Add the rules to a parser. `mdx`: statements of JavaScript may stand between the paragraphs."""
    md.block.ruler.before("fence", "too deep", _too_deep)
    md.block.ruler.before("fence", "indented", _tab_or_admonition, PARAGRAPHS)
    md.block.ruler.before("fence", "container", _container, PARAGRAPHS)
    md.block.ruler.before("fence", "removed line", _removed_line, PARAGRAPHS)
    md.block.ruler.before("fence", "statement", _mdx_statement if mdx else _import_line)


def push_title(state: StateBlock, line: int, title: str) -> None:
    """Add a title as a paragraph of its own, which the reader of the tokens makes bold."""
    if title.strip():
        push_paragraph(state, line, line + 1, title.strip(), is_title=True)


def push_paragraph(state: StateBlock, start: int, end: int, text: str, **meta: bool) -> None:
    """Add the lines from `start` to `end` as a paragraph with this text."""
    state.push("paragraph_open", "p", 1).meta = meta
    push_inline(state, start, end, text)
    state.push("paragraph_close", "p", -1)


def push_inline(state: StateBlock, start: int, end: int, text: str) -> None:
    inline = state.push("inline", "", 0)
    inline.content, inline.map, inline.children = text, [start, end], []


def end_title(state: StateBlock) -> None:
    """Mark the end of the text below the last title."""
    state.push("title_end", "", 0)


def title_or_kind(name: str, title: str) -> str:
    """Return the title of an admonition, or a name for its kind if it has none."""
    return title or _KIND_TITLES.get(name.lower(), "")


def line_text(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip()


def _starts_with(state: StateBlock, line: int, marks: tuple[str, ...]) -> bool:
    return not state.is_code_block(line) and state.src.startswith(marks, state.bMarks[line] + state.tShift[line])


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read deeper nesting than anybody writes as one paragraph: no word is lost, and no stack overflows."""
    if silent or state.level < state.md.options["maxNesting"] - 2:
        return False
    push_paragraph(state, start, end, state.getLines(start, end, 0, False))
    state.line = end
    return True


def _tab_or_admonition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read `=== "Tab"`, `!!! note "Title"` or `??? tip`, and the indented lines below."""
    if not _starts_with(state, start, ("===", "!!!", "???")):
        return False
    text = line_text(state, start)
    indented_end = _end_of_indented(state, start, end)
    if tab := _TAB.fullmatch(text):
        title = tab["double"] or tab["single"]
    elif admonition := _ADMONITION.fullmatch(text):
        name, given = (admonition["types"] or "").strip(), admonition["title"]
        if given is None and indented_end == start + 1:
            return False
        title = "" if given == "" else title_or_kind(name.partition(" ")[0], given or _title_without_quotes(name))
    else:
        return False
    if silent:
        return True
    push_title(state, start, title)
    _parse_indented(state, start + 1, indented_end)
    end_title(state)
    return True


def _title_without_quotes(types: str) -> str:
    """Take four words or more after `!!!` for a title whose quotes were forgotten, else for classes."""
    words = types.split()
    return " ".join(words[1:]) if len(words) >= _WORDS_OF_A_TITLE else ""


def _end_of_indented(state: StateBlock, start: int, end: int) -> int:
    """Return the line after the last one that is indented below `start`."""
    last = start
    for line in range(start + 1, end):
        if state.isEmpty(line):
            continue
        if state.sCount[line] < state.blkIndent + _INDENT:
            break
        last = line
    return last + 1


def _parse_indented(state: StateBlock, start: int, end: int) -> None:
    indent, last_line = state.blkIndent, state.lineMax
    state.blkIndent, state.lineMax = indent + _INDENT, end
    state.level += 1
    state.md.block.tokenize(state, start, end)
    state.level -= 1
    state.blkIndent, state.lineMax, state.line = indent, last_line, end


def _container(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a line that opens or closes a container: `:::tip Title`, `/// note | Title`, `::leaf[Text]`."""
    if not _starts_with(state, start, (":::", "///", "::")):
        return False
    text = line_text(state, start)
    if text.startswith("///"):
        found = _SLASHES.fullmatch(text)
        title = (found["title"] or "") if found else ""
    elif text.startswith(":::"):
        found = _COLONS.fullmatch(text)
        title = _colon_title(found["rest"]) if found else ""
    else:
        found = _LEAF.fullmatch(text)
        title = (found["title"] or "") if found else ""
    if found is None or silent:
        return found is not None
    name = (found.groupdict().get("name") or "").lower()
    if name not in _WITHOUT_TITLE:
        push_title(state, start, title_or_kind(name, title))
    if not name:
        end_title(state)
    state.line = _after_options(state, start + 1, end, everything="." in name)
    return True


def _colon_title(rest: str) -> str:
    rest = rest.strip()
    if rest.startswith("["):
        return rest[1:].partition("]")[0]
    return _ATTRIBUTES.sub("", rest).strip().removesuffix(":::").strip().strip('"')


def _after_options(state: StateBlock, start: int, end: int, *, everything: bool) -> int:
    """Return the line after the options that are indented below a container's first line. `everything`: all indented
    lines are options, as of a documented module.
    """
    line = start
    while line < end and (everything or not state.isEmpty(line)):
        if not state.isEmpty(line) and (
            state.sCount[line] < state.blkIndent + _INDENT
            or not (everything or _OPTION.fullmatch(line_text(state, line)))
        ):
            break
        line += 1
    return line


def _removed_line(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Drop a line that includes something or that only the generator reads."""
    if not _starts_with(state, start, ("<<<", "*[", "{", "@include", "[", "!", "-", ";-", "<!--more", "#")):
        return False
    text = line_text(state, start)
    snippet = _SNIPPET.fullmatch(text)
    if snippet is None and not _REMOVED_LINE.fullmatch(text):
        return False
    if not silent:
        state.line = start + 1
        if snippet and not snippet["file"].strip():
            closing = range(start + 1, min(end, start + _INCLUDE_LINES))
            state.line = next((line + 1 for line in closing if line_text(state, line) == text), start + 1)
    return True


def _import_line(state: StateBlock, start: int, _: int, silent: bool) -> bool:
    """Drop an import that is whole on its line."""
    if silent or not _starts_with(state, start, ("import",)) or not _WHOLE_IMPORT.fullmatch(line_text(state, start)):
        return False
    state.line = start + 1
    return True


def _mdx_statement(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Drop an import or export, up to an empty line outside brackets."""
    if silent or state.level or state.sCount[start] or not _starts_with(state, start, ("import", "export")):
        return False
    text = line_text(state, start)
    if not _STATEMENT.match(text):
        return False
    state.line = start + 1
    tried = cast("dict[str, int]", state.env)
    if not _WHOLE_IMPORT.fullmatch(text) and start >= tried.get("statements tried to", 0):
        state.line = _end_of_statement(state, start, min(end, start + _STATEMENT_LINES))
        tried["statements tried to"] = state.line
    return True


def _end_of_statement(state: StateBlock, start: int, end: int) -> int:
    """Return the line after the statement; where brackets stay open, the first empty line."""
    first_empty = None
    depth = 0
    for line in range(start, end):
        text = line_text(state, line)
        if not text and depth <= 0:
            return line
        if not text and first_empty is None:
            first_empty = line
        depth += sum(text.count(mark) for mark in "([{") - sum(text.count(mark) for mark in ")]}")
    return end if depth <= 0 or first_empty is None else first_empty
