"""Block rules for HTML and components on lines of their own, and for fences that nobody closed."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from functools import cache
from typing import cast

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.fence import fence

from services.search.text.marks import end_lead, lead, line_text
from services.search.text.tags import INLINE, KNOWN, MAX_TAG_CHARS, RAW, Tag, braces_end, literal_text, read_tag

_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_HEADING = re.compile(r"#{1,6}[ \t]")
_FENCE = re.compile(r"`{3,}|~{3,}")
_ANY_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_TABLE_PART = re.compile(r"<(?P<closing>/?)(?P<part>table|thead|tbody|tfoot|tr|th|td|caption)\b[^<>]*>", re.IGNORECASE)
_EXPRESSION_CHARS = 20_000
_LANGUAGE = re.compile(r"(?:language|lang|highlight)-(?:source-)?([\w+#-]+)")
_PARAGRAPHS: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote"]}


def add_elements(md: MarkdownIt, *, mdx: bool) -> None:
    """Adds the rules to a parser. `mdx`: braces hold expressions, and indented text is no code."""
    md.disable("html_block")
    md.block.ruler.at("fence", _fence, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    md.block.ruler.before("fence", "element", _element, _PARAGRAPHS)
    if mdx:
        md.disable("code")
        md.block.ruler.before("fence", "expression", _expression)


def _element(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    at = state.bMarks[start] + state.tShift[start]
    if state.is_code_block(start) or not state.src.startswith("<", at):
        return False
    if state.src.startswith("<!--", at):
        return silent or _comment(state, start, end, at)
    tag = _tag_at(state, at, state.eMarks[end - 1])
    if tag is None or (tag.element in INLINE and not tag.is_component):
        return False
    if silent:
        return tag.element in KNOWN or tag.is_component or not tag.name
    return _element_of(state, start, end, tag)


def _element_of(state: StateBlock, start: int, end: int, tag: Tag) -> bool:
    limit = state.eMarks[end - 1]
    if tag.element in RAW and not (tag.closing or tag.alone):
        closing = closing_tag(tag.element, state.src, tag.end, limit, state.env)
        return closing is not None and _skip_to(state, start, end, closing.end(), 0)
    is_whole = not tag.closing and (tag.element in {"pre", "table"} or tag.element in _HEADINGS)
    return (is_whole and _whole_element(state, start, end, tag)) or _line_of_tags(state, start, end, tag)


def _comment(state: StateBlock, start: int, end: int, at: int) -> bool:
    env, limit = cast("dict[tuple[str, int], bool]", state.env), state.eMarks[end - 1]
    if env.get(("comment", limit)):
        return False  # looked for before: nothing closes it
    closing = state.src.find("-->", at, limit)
    env["comment", limit] = closing < 0
    return _skip_to(state, start, end, closing, 3)


def _tag_at(state: StateBlock, at: int, limit: int) -> Tag | None:
    """A tag; where one is not closed, what follows is not read over and over."""
    env = cast("dict[str, int]", state.env)
    if at < env.get("no tag before", 0):
        limit = min(limit, state.src.find("\n", at) % (len(state.src) + 1))
    tag = read_tag(state.src, at, limit)
    if tag is None and at >= env.get("no tag before", 0):
        env["no tag before"] = at + MAX_TAG_CHARS
    return tag


@cache
def _closing(element: str) -> re.Pattern[str]:
    return re.compile(rf"</{element}\s*>", re.IGNORECASE)


def closing_tag(element: str, text: str, start: int, limit: int, env: object) -> re.Match[str] | None:
    """Find the tag that closes an element. A search that failed is remembered and not repeated."""
    missing = cast("dict[tuple[str, str, int], bool]", env)
    if missing.get(("closing", element, limit)):
        return None
    found = _closing(element).search(text, start, limit)
    if found is None:
        missing["closing", element, limit] = True
    return found


def _skip_to(state: StateBlock, start: int, end: int, position: int, length: int) -> bool:
    """Goes on behind a position; what follows it in its line stands at the line's beginning."""
    if position < 0:
        return False
    position += length
    line = _line_of(state, position - 1, start, end)
    rest = state.src[position : state.eMarks[line]]
    if not rest.strip():
        state.line = line + 1
        return True
    if line == start:
        return False  # the rule of running text takes it
    state.bMarks[line], state.tShift[line] = position, len(rest) - len(rest.lstrip())
    state.sCount[line] = state.blkIndent
    state.line = line
    return True


def _line_of(state: StateBlock, position: int, start: int, end: int) -> int:
    return max(start, bisect_right(state.bMarks, position, start, end) - 1)


def _whole_element(state: StateBlock, start: int, end: int, tag: Tag) -> bool:
    """A listing, a table or a heading in HTML, where its last line holds nothing else."""
    closing = closing_tag(tag.element, state.src, tag.end, state.eMarks[end - 1], state.env)
    if closing is None:
        return False
    last = _line_of(state, closing.end() - 1, start, end)
    if state.src[closing.end() : state.eMarks[last]].strip():
        return False
    lines = state.getLines(start, last + 1, state.blkIndent, False)
    length = tag.end - state.bMarks[start] - state.tShift[start]
    inside = lines[lines.find("<") + length : lines.rfind("</")]
    if tag.element == "pre":
        _push_code(state, inside, lines[: length + 200])
    elif tag.element == "table":
        _push_table(state, start, inside)
    else:
        _push_heading(state, start, tag, inside)
    state.line = last + 1
    return True


def _push_code(state: StateBlock, inside: str, beginning: str) -> None:
    token = state.push("fence", "code", 0)
    token.content = html.unescape(_ANY_TAG.sub("", inside))
    language = _LANGUAGE.search(beginning)
    token.info = language[1] if language else ""


def _push_heading(state: StateBlock, start: int, tag: Tag, inside: str) -> None:
    opening = state.push("heading_open", tag.element, 1)
    opening.meta = {"anchor": tag.attributes.get("id", "")}
    _push_inline(state, start, inside)
    state.push("heading_close", tag.element, -1)


def _push_inline(state: StateBlock, start: int, text: str) -> None:
    inline = state.push("inline", "", 0)
    inline.content = "\n".join(line.strip() for line in text.splitlines() if line.strip())
    inline.map, inline.children = [start, start + 1], []


def _push_table(state: StateBlock, start: int, inside: str) -> None:
    """The tokens of a Markdown table. A row is a header where all its cells are."""
    marks = [*_TABLE_PART.finditer(inside)]
    rows: list[list[tuple[str, str]]] = [[]]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        part = mark["part"].lower()
        if part == "tr":
            rows.append([])
        elif part in {"th", "td", "caption"} and not mark["closing"]:
            text = inside[mark.end() : following.start() if following else len(inside)]
            if part == "caption":
                lead(state, start, text)
            else:
                rows[-1].append((part, text))
    state.push("table_open", "table", 1)
    for cells in filter(None, rows):
        state.push("tr_open", "tr", 1)
        for part, text in cells:
            state.push(f"{part}_open", part, 1)
            _push_inline(state, start, text)
            state.push(f"{part}_close", part, -1)
        state.push("tr_close", "tr", -1)
    state.push("table_close", "table", -1)


def _line_of_tags(state: StateBlock, start: int, end: int, tag: Tag) -> bool:
    """Lines that hold tags and nothing else: titles of components stay, and what follows is no indented code."""
    limit = state.eMarks[end - 1]
    tags = [tag]
    at = tag.end
    while True:
        line = _line_of(state, at - 1, start, end)
        while at < state.eMarks[line] and state.src[at] in " \t":
            at += 1
        if at >= state.eMarks[line]:
            break
        following = _tag_at(state, at, limit) if state.src[at] == "<" else None
        if following is None:
            return False
        tags.append(following)
        at = following.end
    for each in tags:
        if each.closing:
            end_lead(state)
        lead(state, start, f"[{each.title}]({each.target})" if each.title and each.target else each.title)
        _push_prose(state, start, each.description)
    state.line = line + 1
    _shift_left(state, line + 1, end)
    return True


def _push_prose(state: StateBlock, start: int, text: str) -> None:
    if text:
        state.push("paragraph_open", "p", 1)
        _push_inline(state, start, text)
        state.push("paragraph_close", "p", -1)


def _shift_left(state: StateBlock, start: int, end: int) -> None:
    """Indentation below a tag is the layout of the HTML: it makes no code until an empty line."""
    if start >= end or state.isEmpty(start):
        return
    excess = state.sCount[start] - state.blkIndent
    for line in range(start, end if excess >= 4 else start):  # noqa: PLR2004 (so many spaces make code)
        if state.isEmpty(line):
            break
        state.sCount[line] = max(min(state.sCount[line], state.blkIndent), state.sCount[line] - excess)


def _expression(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """`{/* a comment */}` and other expressions on lines of their own."""
    at = state.bMarks[start] + state.tShift[start]
    env = cast("dict[str, int]", state.env)
    if silent or not state.src.startswith("{", at) or at < env.get("no brace before", 0):
        return False
    limit = min(state.eMarks[end - 1], at + _EXPRESSION_CHARS)
    after = braces_end(state.src, at, limit, most=_EXPRESSION_CHARS)
    if after is None:
        env["no brace before"] = limit
        return False
    line = _line_of(state, after - 1, start, end)
    if state.src[after : state.eMarks[line]].strip():
        return False
    _push_prose(state, start, literal_text(state.src[at + 1 : after - 1]))
    state.line = line + 1
    return True


def _fence(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """As CommonMark has it, except that a fence which nobody closes ends at the next heading below an empty line."""
    opening = None if silent or state.level else _FENCE.match(state.src, state.bMarks[start] + state.tShift[start])
    if opening is None:
        return fence(state, start, end, silent)
    env = cast("dict[tuple[str, str], int]", state.env)
    mark = opening.group()
    if len(mark) >= env.get(("unclosed", mark[0]), len(state.src) + 1):
        end = _next_heading(state, start + 2, end)  # looked for before: nothing closes it
    if not fence(state, start, end, silent):
        return False
    if state.line >= state.lineMax and not _is_closed(state, start):
        env["unclosed", mark[0]] = len(mark)
        state.line = _next_heading(state, start + 2, end)
        state.tokens[-1].content = state.getLines(start + 1, state.line, state.sCount[start], True)
    return True


def _next_heading(state: StateBlock, start: int, end: int) -> int:
    return next(
        (
            line
            for line in range(start, end)
            if state.isEmpty(line - 1)
            and not state.is_code_block(line)
            and _HEADING.match(state.src, state.bMarks[line] + state.tShift[line])
        ),
        end,
    )


def _is_closed(state: StateBlock, start: int) -> bool:
    last, mark = state.line - 1, state.tokens[-1].markup
    text = line_text(state, last)
    return last > start and text.startswith(mark) and not text.strip(mark[0])
