"""Inline rules for tags, expressions, attribute lists and other markup within a line."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline

from services.search.text.elements import closing_tag
from services.search.text.tags import KNOWN, RAW, Tag, braces_end, literal_text, read_tag

MAX_INLINE_CHARS = 20_000
"""Of one paragraph. A longer one is no text that a person has written; it stays as it is, without markup."""

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
_SAYS_SO = {"warning": "Warning", "caution": "Caution", "danger": "Danger"}


def add_spans(md: MarkdownIt, *, mdx: bool) -> None:
    """Adds the rules to a parser. `mdx`: braces hold expressions."""
    md.disable(["html_inline", "text_join"])
    md.inline.ruler.before("autolink", "braces", _expression if mdx else _braces)
    md.inline.ruler.after("autolink", "tag", _tag)
    md.inline.ruler.after("link", "cross_reference", _cross_reference)
    md.core.ruler.before("inline", "prepare", _prepare)


def _prepare(state: StateCore) -> None:
    """Between blocks and their text: explicit anchors, alerts, and text that is too long to be read."""
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
            quote.meta = {"alert": alert["title"] or _SAYS_SO.get(alert["kind"].lower(), "")}
            token.content = token.content[alert.end() :]
        if len(token.content) > MAX_INLINE_CHARS:
            token.type = "verbatim"


def _tag(state: StateInline, silent: bool) -> bool:
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
    if tag.element in RAW and not (tag.closing or tag.alone):
        closing = closing_tag(tag.element, state.src, tag.end, state.posMax, state.env)
        end = closing.end() if closing else end
    if not silent:
        state.push("tag", "", 0).meta = {"tag": tag}
    state.pos = end
    return True


def _is_placeholder(state: StateInline, tag: Tag) -> bool:
    """`<file>` in a text without code marks: a name that no HTML knows, without attributes, that nothing closes."""
    if tag.element in KNOWN or tag.attributes or tag.alone or not tag.name or tag.name[:1].isupper():
        return False
    if tag.closing:
        return f"<{tag.name}" not in state.src
    return closing_tag(re.escape(tag.element), state.src, tag.end, state.posMax, state.env) is None


def _braces(state: StateInline, silent: bool) -> bool:
    """Templates, attribute lists and roles. Other braces are text."""
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


def _expression(state: StateInline, silent: bool) -> bool:
    """In MDX: nothing but a string says something on the page that can be known here."""
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
    """`[text][module.name]` and `[text][]` whose target the generator knows: the text stays."""
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
