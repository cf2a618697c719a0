"""Rules for markdown-it: HTML, JSX components, templates, attribute lists, and fences that nobody closed."""

from __future__ import annotations

import html
import re
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cache
from typing import NamedTuple, cast

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.fence import fence
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from services.search.text.markdown_extensions import (
    PARAGRAPHS,
    end_title,
    line_text,
    push_inline,
    push_paragraph,
    push_title,
)

MAX_TAG_CHARS = 4000
_MAX_BRACES = 1500

_OPENING = re.compile(r"<(?P<closing>/?)(?P<name>[A-Za-z][\w.:-]*)?")
_ATTRIBUTE = re.compile(r"(?P<name>[A-Za-z_@:#.$\[(][^\s=/>\"'{}<]*)(?P<equals>\s*=\s*)?")
_UNQUOTED = re.compile(r"[^\s\"'=<>`{}]+")
_SPACE = re.compile(r"\s*")
_IN_BRACES = re.compile(r"""[{}]|/\*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`""", re.DOTALL)
_LITERAL = re.compile(r"""\s*(?P<quote>["'`])(?P<text>[^"'`]*)(?P=quote)\s*""")

_INLINE_NAMES = """
    a abbr acronym b bdi bdo big br button cite code data del dfn em font i img input ins kbd label mark
    meter q rp rt ruby s samp small span strike strong sub sup time tt u var wbr
"""
INLINE = frozenset(_INLINE_NAMES.split())
"""Elements of running text."""
RAW = frozenset("audio canvas iframe math noscript object script style svg video".split())  # noqa: SIM905 (shorter so)
"""Elements whose content is no text."""
_BLOCK_NAMES = """
    address article aside blockquote body caption center col colgroup dd details dialog dir div dl dt
    fieldset figcaption figure footer form frame h1 h2 h3 h4 h5 h6 head header hr html legend li link
    main menu meta nav ol optgroup option p picture pre search section select slot source summary table
    tbody td template textarea tfoot th thead title tr track ul
"""
KNOWN = INLINE | RAW | frozenset(_BLOCK_NAMES.split())
VOID = frozenset("br col hr img input link meta source track wbr".split())  # noqa: SIM905 (shorter so)

HIDING_STYLE = re.compile(
    r"display['\"]?\s*+:\s*+['\"]?none\b|visibility['\"]?\s*+:\s*+['\"]?(?:hidden|collapse)\b", re.IGNORECASE
)

_WITHOUT_TITLE = frozenset("badge icon image img link since version code youtube video".split())  # noqa: SIM905 (shorter so)
_TITLES = ("title", "label", "header", "heading", "summary", "question")


class Tag(NamedTuple):
    """One tag.

    Attributes:
        name: as written; empty for a fragment.
        attributes: those with a text as value, by their names in lower case; `hidden` also if a style hides.
        self_closing: whether no other tag closes it.
        end: the index after it.
    """

    name: str
    attributes: dict[str, str]
    closing: bool
    self_closing: bool
    end: int

    @property
    def element(self) -> str:
        """The name in lower case."""
        return self.name.lower()

    @property
    def is_hidden(self) -> bool:
        """Whether readers do not see the element."""
        return "hidden" in self.attributes

    @property
    def is_component(self) -> bool:
        return self.name[:1].isupper() or "." in self.name or "-" in self.name

    @property
    def title(self) -> str:
        """The title that a component shows above its content; empty for HTML and for ornaments."""
        if not self.is_component or self.closing or self.element in _WITHOUT_TITLE:
            return ""
        names = (*_TITLES, "name", "value") if "tab" in self.element else _TITLES
        return next((self.attributes[name] for name in names if self.attributes.get(name)), "")

    @property
    def description(self) -> str:
        return self.attributes.get("description", "") if self.is_component else ""

    @property
    def target(self) -> str:
        return self.attributes.get("href", "")


def read_tag(text: str, start: int, limit: int) -> Tag | None:
    """Read the tag at `start` if it ends before `limit`; attributes may be HTML's, Vue's and JSX's."""
    limit = min(limit, start + MAX_TAG_CHARS)
    opening = _OPENING.match(text, start, limit)
    if opening is None:
        return None
    attributes: dict[str, str] = {}
    at = opening.end()
    while True:
        space = _SPACE.match(text, at, limit)
        began, at = at, space.end() if space else at
        if text.startswith((">", "/>"), at) and at < limit:
            return _make_tag(opening, attributes, self_closing=text[at] == "/", end=text.index(">", at) + 1)
        # Attributes are set apart by space, except after a quote.
        after_quote = bool(attributes) and text[began - 1 : began] in {'"', "'", "}"}
        if (not opening["name"] or began == at) and not after_quote:
            return None
        after = _attribute(text, at, limit, attributes)
        if after is None:
            return None
        at = after


def _make_tag(opening: re.Match[str], attributes: dict[str, str], *, self_closing: bool, end: int) -> Tag:
    name = opening["name"] or ""
    return Tag(name, attributes, bool(opening["closing"]), self_closing or name.lower() in VOID, end)


def _attribute(text: str, at: int, limit: int, attributes: dict[str, str]) -> int | None:
    if text.startswith("{", at):
        return braces_end(text, at, limit)  # {...props}
    named = _ATTRIBUTE.match(text, at, limit)
    if named is None:
        return None
    name, value, end = named["name"].lower(), "", named.end()
    if named["equals"] is not None:
        value, end = _attribute_value(text, named.end(), limit)
    if value:
        attributes[name] = value
    if _hides(name, text[named.end() : end]):
        attributes["hidden"] = "hidden"
    return end


def _hides(name: str, written: str) -> bool:
    if name == "style":
        return HIDING_STYLE.search(html.unescape(written)) is not None
    return name == "hidden" and (not written.startswith("{") or written.strip("{ }") == "true")


def _attribute_value(text: str, at: int, limit: int) -> tuple[str, int | None]:
    """Return the text of an attribute's value and the index after it, None where it has no end."""
    if text.startswith("{", at):
        end = braces_end(text, at, limit)
        return ("" if end is None else literal_text(text[at + 1 : end - 1])), end
    if text.startswith(('"', "'"), at):
        end = text.find(text[at], at + 1, limit)
        return " ".join(text[at + 1 : max(end, at)].split()), end + 1 if end >= 0 else None
    value = _UNQUOTED.match(text, at, limit)
    return (value.group(), value.end()) if value else ("", None)


def braces_end(text: str, start: int, limit: int, most: int = _MAX_BRACES) -> int | None:
    """Return the index after the brace that closes the one at `start`, None if it is not within `most` characters.
    Braces in strings and comments do not count.
    """
    depth = 0
    at = start
    limit = min(limit, start + most)
    while found := _IN_BRACES.search(text, at, limit):
        at = found.end()
        if found.group() == "{":
            depth += 1
        elif found.group() == "}":
            depth -= 1
            if depth == 0:
                return at
        elif found.group() == "/*":
            end = text.find("*/", at, limit)
            if end < 0:
                return None
            at = end + 2
    return None


def literal_text(expression: str) -> str:
    """Return the text of an expression that is a string literal; empty for any other."""
    literal = _LITERAL.fullmatch(expression)
    return "" if literal is None or "${" in literal["text"] else literal["text"]


_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_HEADING = re.compile(r"#{1,6}[ \t]")
_FENCE = re.compile(r"`{3,}|~{3,}")
_ANY_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_TABLE_PART = re.compile(r"<(?P<closing>/?)(?P<part>table|thead|tbody|tfoot|tr|th|td|caption)\b[^<>]*>", re.IGNORECASE)
_TABLE_DEPTHS = {"tr": 1, "th": 2, "td": 2, "caption": 2}
_EXPRESSION_CHARS = 20_000
_LANGUAGE = re.compile(r"(?:language|lang|highlight)-(?:source-)?([\w+#-]+)")


def add_html_rules(md: MarkdownIt, *, mdx: bool) -> None:
    """Add the rules for blocks to a parser. `mdx`: braces hold expressions, and indented text is no code."""
    md.disable("html_block")
    md.block.ruler.at("fence", _fence, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    md.block.ruler.before("fence", "element", _element, PARAGRAPHS)
    if mdx:
        md.disable("code")
        md.block.ruler.before("fence", "expression", _block_expression)


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
    if tag.element in RAW and not (tag.closing or tag.self_closing):
        closing = closing_tag(tag.element, state.src, tag.end, limit, state.env)
        return closing is not None and _skip_past(state, start, end, closing.end(), 0)
    is_whole = not tag.closing and (tag.element in {"pre", "table"} or tag.element in _HEADINGS)
    return (is_whole and _whole_element(state, start, end, tag)) or _lines_of_tags(state, start, end, tag)


def _comment(state: StateBlock, start: int, end: int, at: int) -> bool:
    env, limit = cast("dict[tuple[str, int], bool]", state.env), state.eMarks[end - 1]
    if env.get(("comment", limit)):
        return False  # searched before: nothing closes it
    closing = state.src.find("-->", at, limit)
    env["comment", limit] = closing < 0
    return _skip_past(state, start, end, closing, 3)


def _tag_at(state: StateBlock, at: int, limit: int) -> Tag | None:
    """Read a tag. After one that does not end, the text is not searched again."""
    env = cast("dict[str, int]", state.env)
    if at < env.get("no tag before", 0):
        line_end = state.src.find("\n", at)
        limit = min(limit, line_end) if line_end >= 0 else limit
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


def _skip_past(state: StateBlock, start: int, end: int, position: int, length: int) -> bool:
    """Go on behind a position; the rest of its line is read like a line of its own."""
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
    """Read a listing, a table or a heading in HTML if nothing else is on its last line."""
    closing = closing_tag(tag.element, state.src, tag.end, state.eMarks[end - 1], state.env)
    if closing is None:
        return False
    last = _line_of(state, closing.end() - 1, start, end)
    if state.src[closing.end() : state.eMarks[last]].strip():
        return False
    lines = state.getLines(start, last + 1, state.blkIndent, False)
    _push_tag(state, tag)
    length = tag.end - state.bMarks[start] - state.tShift[start]
    inside = lines[lines.find("<") + length : lines.rfind("</")]
    if tag.element == "pre":
        _push_code(state, inside, lines[: length + 200])
    elif tag.element == "table":
        _push_table(state, start, inside)
    else:
        _push_heading(state, start, tag, inside)
    _push_tag(state, tag._replace(closing=True))
    state.line = last + 1
    return True


def _push_tag(state: StateBlock | StateInline, tag: Tag) -> None:
    """Add a tag to the tokens, for the text that it formats or hides."""
    state.push("tag", "", 0).meta = {"tag": tag}
    if tag.is_hidden:
        cast("dict[str, bool]", state.env)["hides"] = True


def _push_code(state: StateBlock, inside: str, beginning: str) -> None:
    token = state.push("fence", "code", 0)
    token.content = html.unescape(_ANY_TAG.sub("", inside))
    language = _LANGUAGE.search(beginning)
    token.info = language[1] if language else ""


def _push_heading(state: StateBlock, start: int, tag: Tag, inside: str) -> None:
    opening = state.push("heading_open", tag.element, 1)
    opening.meta = {"anchor": tag.attributes.get("id", "")}
    push_inline(state, start, start + 1, _stripped_lines(inside))
    state.push("heading_close", tag.element, -1)


def _push_table(state: StateBlock, start: int, inside: str) -> None:
    """Push the tokens of a Markdown table. A row is a header if all its cells are."""
    marks = [*_TABLE_PART.finditer(inside)]
    hidden = [False, False, False]  # the part of the table, the row, the cell
    rows: list[list[tuple[str, str]]] = [[]]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        part = mark["part"].lower()
        tag = read_tag(inside, mark.start(), mark.end())
        hidden[_TABLE_DEPTHS.get(part, 0)] = tag is not None and not tag.closing and tag.is_hidden
        if part == "tr":
            rows.append([])
        elif part in {"th", "td", "caption"} and not mark["closing"] and not any(hidden):
            text = inside[mark.end() : following.start() if following else len(inside)]
            if part == "caption":
                push_title(state, start, text)
            else:
                rows[-1].append((part, text))
    state.push("table_open", "table", 1)
    for cells in filter(None, rows):
        state.push("tr_open", "tr", 1)
        for part, text in cells:
            state.push(f"{part}_open", part, 1)
            push_inline(state, start, start + 1, _stripped_lines(text))
            state.push(f"{part}_close", part, -1)
        state.push("tr_close", "tr", -1)
    state.push("table_close", "table", -1)


def _lines_of_tags(state: StateBlock, start: int, end: int, tag: Tag) -> bool:
    """Read lines of nothing but tags: titles of components stay, and the lines below are no indented code."""
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
        _push_tag(state, each)
        if each.closing:
            end_title(state)
        if each.is_hidden:
            continue
        push_title(state, start, f"[{each.title}]({each.target})" if each.title and each.target else each.title)
        _push_prose(state, start, each.description)
    state.line = line + 1
    _unindent(state, line + 1, end)
    return True


def _push_prose(state: StateBlock, start: int, text: str) -> None:
    if text:
        push_paragraph(state, start, start + 1, _stripped_lines(text))


def _stripped_lines(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _unindent(state: StateBlock, start: int, end: int) -> None:
    """Take the indentation below a tag for the layout of the HTML, not for code, up to an empty line."""
    if start >= end or state.isEmpty(start):
        return
    excess = state.sCount[start] - state.blkIndent
    for line in range(start, end if excess >= 4 else start):  # noqa: PLR2004 (so many spaces make code)
        if state.isEmpty(line):
            break
        state.sCount[line] = max(min(state.sCount[line], state.blkIndent), state.sCount[line] - excess)


def _block_expression(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read `{/* a comment */}` and other expressions on lines of their own."""
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
    """Read a fence as CommonMark does, but let an unclosed one end at the next heading below an empty line."""
    opening = None if silent or state.level else _FENCE.match(state.src, state.bMarks[start] + state.tShift[start])
    if opening is None:
        return fence(state, start, end, silent)
    env = cast("dict[tuple[str, str], int]", state.env)
    mark = opening.group()
    if len(mark) >= env.get(("unclosed", mark[0]), len(state.src) + 1):
        end = _next_heading(state, start + 2, end)  # searched before: nothing closes it
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


MAX_INLINE_CHARS = 20_000
"""The longest paragraph that is parsed. People write no longer ones; such a paragraph stays as it is written."""
_MAX_BRACKETS = 400
"""The most brackets of one kind in a paragraph: for each one that nothing closes, the parser reads the rest of it."""
_FREE_SECONDS, _SECONDS_PER_CHAR = 0.5, 2e-6
"""For all paragraphs of a text, on one core; documentation takes a twentieth of that."""

_CLOSED_BY = {"{{": "}}", "{%": "%}", "{!": "!}"}
_ATTRIBUTES = re.compile(r"\{:?[ \t]*(?:[.#] ?[\w-]|[\w-]+=)[^{}\n]*\}|\{:[^{}\n]*\}")
_ROLE = re.compile(r"\{[a-z][\w:+-]*\}(?=`)")
_TITLED = re.compile(
    r"(?:tab|details|hint|callout|step|stepper|expand|accordion|card)\b[^\"]*\"(?P<title>[^\"]*)\"", re.IGNORECASE
)
_CROSS_REFERENCE = re.compile(r"\[(?P<target>(?:[A-Za-z_][^\[\]\n]{1,200})?)\]")
_ANCHOR = re.compile(
    r"(?<![ \t])[ \t]*+(?:\{:?[ \t]*+#(?P<anchor>[^\s{}]++)[^{}]*+\}"
    r"|\{/\*[ \t]*+#(?P<comment>[^\s{}*]++)[ \t]*+\*/\})[ \t]*+$"
)
_ALERT = re.compile(r"\[!(?P<kind>\w+)\][+-]?[ \t]*(?P<title>[^\n]*)\n?")
_ALERT_TITLES = {"warning": "Warning", "caution": "Caution", "danger": "Danger"}


def add_inline_rules(md: MarkdownIt, *, mdx: bool) -> None:
    """Add the rules for running text to a parser. `mdx`: braces hold expressions."""
    md.disable(["html_inline", "text_join"])
    md.inline.ruler.before("autolink", "braces", _inline_expression if mdx else _braces)
    md.inline.ruler.after("autolink", "tag", _inline_tag)
    md.inline.ruler.after("link", "cross_reference", _cross_reference)
    md.core.ruler.before("inline", "prepare", _prepare_inline)
    md.core.ruler.at("inline", _inline)


def _prepare_inline(state: StateCore) -> None:
    """Take explicit anchors and alerts out of paragraphs, and mark those that are too long to be read."""
    tokens = state.tokens
    for at, token in enumerate(tokens):
        if token.type != "inline":
            continue
        before = tokens[at - 1]
        if before.type == "heading_open" and (found := _ANCHOR.search(token.content)):
            before.meta = {"anchor": found["anchor"] or found["comment"]}
            token.content = token.content[: found.start()]
        quote = tokens[at - 2] if at > 1 else None
        if quote is not None and quote.type == "blockquote_open" and (alert := _ALERT.match(token.content)):
            quote.meta = {"alert": alert["title"] or _ALERT_TITLES.get(alert["kind"].lower(), "")}
            token.content = token.content[alert.end() :]
        if len(token.content) > MAX_INLINE_CHARS or max(map(token.content.count, "[{")) > _MAX_BRACKETS:
            token.type = "verbatim"


def _inline(state: StateCore) -> None:
    """Read the markup of paragraphs while there is time; the others stay as they are written."""
    end = time.thread_time() + _FREE_SECONDS + len(state.src) * _SECONDS_PER_CHAR
    for token in state.tokens:
        if token.type != "inline":
            continue
        if time.thread_time() > end:
            token.type = "verbatim"
        else:
            token.children = token.children or []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _inline_tag(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "<":
        return False
    if state.src.startswith("<!--", state.pos):
        end = state.src.find("-->", state.pos, state.posMax)
        state.pos = end + 3 if end >= 0 else state.pos + 4
        return True
    tag = read_tag(state.src, state.pos, state.posMax)
    if tag is None or _is_placeholder(state, tag):
        return False
    end = tag.end
    if tag.element in RAW and not (tag.closing or tag.self_closing):
        closing = closing_tag(tag.element, state.src, tag.end, state.posMax, state.env)
        end = closing.end() if closing else end
    if not silent:
        _push_tag(state, tag)
    state.pos = end
    return True


def _is_placeholder(state: StateInline, tag: Tag) -> bool:
    """Return whether a tag is a placeholder such as `<file>`: unknown to HTML, without attributes, never closed."""
    if tag.element in KNOWN or tag.attributes or tag.self_closing or not tag.name or tag.name[:1].isupper():
        return False
    if tag.closing:
        return f"<{tag.name}" not in state.src
    return closing_tag(re.escape(tag.element), state.src, tag.end, state.posMax, state.env) is None


def _braces(state: StateInline, silent: bool) -> bool:
    """Read templates, attribute lists and roles. Other braces are text."""
    src, start = state.src, state.pos
    if src[start] != "{":
        return False
    closed_by = _CLOSED_BY.get(src[start : start + 2])
    if closed_by is not None:
        end = src.find(closed_by, start + 2, state.posMax)
        if end >= 0:
            if not silent and (titled := _TITLED.match(src[start + 2 : end].strip("<>%- "))):
                state.push("tag", "", 0).meta = {"tag": Tag("Tab", {"title": titled["title"]}, False, False, 0)}
            state.pos = end + 2
            return True
    if src.startswith("{#", start):
        end = src.find("#}", start + 2, state.posMax)
        if end >= 0 and "}" not in src[start:end]:
            state.pos = end + 2
            return True
    found = _ATTRIBUTES.match(src, start, state.posMax) or _ROLE.match(src, start)
    if found is None:
        return False
    state.pos = found.end()
    return True


def _inline_expression(state: StateInline, silent: bool) -> bool:
    """Read an expression of MDX: a string is its text, anything else is unknown here and left out."""
    if state.src[state.pos] != "{":
        return False
    end = braces_end(state.src, state.pos, state.posMax)
    if end is None:
        return False
    if not silent:
        inside = state.src[state.pos + 1 : end - 1]
        state.append_pending(" " if inside.strip() in {"' '", '" "'} else literal_text(inside))
    state.pos = end
    return True


def _cross_reference(state: StateInline, silent: bool) -> bool:
    """Read `[text][module.name]` or `[text][]`, whose target only the generator knows, as its text."""
    start = state.pos
    if state.src[start] != "[" or "][" not in state.src or (start and state.src[start - 1].isalnum()):
        return False
    label_end = state.md.helpers.parseLinkLabel(state, start)
    reference = _CROSS_REFERENCE.match(state.src, label_end + 1) if label_end > start + 1 else None
    if reference is None:
        return False
    if not silent:
        most = state.posMax
        state.pos, state.posMax = start + 1, label_end
        state.md.inline.tokenize(state)
        state.posMax = most
    state.pos = reference.end()
    return True


def without_hidden(tokens: Sequence[Token], env: Mapping[str, object], *, mdx: bool, is_page: bool) -> list[Token]:
    """Empty the tokens that a tag hides, and return all but those of lines of tags. A heading of a page that hides
    something keeps its `whole` text, of which generators make its anchor.

    `env`: of the parser; `mdx`: a tag with a slash at its end needs no other. `is_page`: a tag that nothing closes
    hides the rest, as in browsers; in other text, which may only speak of such a tag, it hides nothing.
    """
    if "hides" in env:
        _Hider(mdx=mdx).read(tokens, is_page=is_page)
    return [token for token in tokens if token.type != "tag"]


class _Hider:
    """Goes through tokens and empties those between a tag that hides and the one that closes it."""

    def __init__(self, *, mdx: bool) -> None:
        self._mdx = mdx
        self._element = ""
        """The hidden element; empty while nothing is hidden."""
        self._depth = 0
        """How many elements of its name are open, itself included."""
        self._level = 0
        """Of the tokens beside it: it ends with the block around them."""
        self._found: list[Token] = []
        """The blocks to empty when it ends."""
        self._children: list[Token] = []
        """And the parts of paragraphs."""

    def read(self, tokens: Sequence[Token], *, is_page: bool) -> None:
        for at, token in enumerate(tokens):
            if token.level < self._level:
                self._end()
            if token.type == "tag":
                self._take(token.meta["tag"], token.level)
            elif token.type == "inline":
                self._read_inline(tokens[at - 1], token)
            elif self._element:
                self._found.append(token)
                if self._element == "p" and token.type == "paragraph_close":
                    self._end()
        if is_page:
            self._end()

    def _read_inline(self, before: Token, token: Token) -> None:
        children = token.children or []
        in_paragraph = before.type == "paragraph_open"
        if before.type == "heading_open":
            before.meta = {**before.meta, "whole": [copy(child) for child in children]}
        if self._element:
            self._found.append(token)
        began = None
        for child in children:
            outside = not self._element
            if not outside:
                self._children.append(child)
            if child.type == "tag":
                tag: Tag = child.meta["tag"]
                self._take(tag, token.level - in_paragraph)
                if outside and tag.is_hidden:
                    self._found.append(token)
                    self._children.append(child)
                    began = child
        if began is not None and in_paragraph and not self._goes_on(began, children):
            self._end()

    def _goes_on(self, began: Token, children: Sequence[Token]) -> bool:
        """Return whether an element goes on behind the paragraph that begins it: blocks do, and what opens a line of
        its own.
        """
        alone = began is children[0] and (len(children) == 1 or children[1].type.endswith("break"))
        return alone or self._element in KNOWN - INLINE

    def _take(self, tag: Tag, level: int) -> None:
        is_open = tag.element not in VOID | RAW and not (tag.self_closing and (self._mdx or tag.element not in KNOWN))
        if not self._element and tag.is_hidden and is_open and not tag.closing:
            self._element, self._depth, self._level = tag.element, 1, level
        elif self._element == tag.element and (is_open or tag.closing):
            self._depth += -1 if tag.closing else 1
            if self._depth == 0:
                self._end()

    def _end(self) -> None:
        for token in self._found:
            token.content = ""
            token.meta = {} if token.type == "blockquote_open" else token.meta  # the title of an alert
        for child in self._children:
            child.type = "hidden"
        self._element, self._depth, self._level = "", 0, 0
        self._found.clear()
        self._children.clear()
