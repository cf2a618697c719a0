"""Reads single HTML tags and JSX components, and what they show to people."""

from __future__ import annotations

import re
from typing import NamedTuple

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
"""Elements of running text. All others stand on their own."""
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

_WITHOUT_TITLE = frozenset("badge icon image img link since version code youtube video".split())  # noqa: SIM905 (shorter so)
_TITLES = ("title", "label", "header", "heading", "summary", "question")


class Tag(NamedTuple):
    """One tag.

    Attributes:
        name: as written; empty for a fragment.
        attributes: those with a text for value, their names in small letters.
        alone: whether nothing closes it.
        end: the index after it.
    """

    name: str
    attributes: dict[str, str]
    closing: bool
    alone: bool
    end: int

    @property
    def element(self) -> str:
        """The name of an HTML element; of a component, what it is called in small letters."""
        return self.name.lower()

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
    """The tag at `start`, where it ends before `limit`; attributes may be HTML's, Vue's and JSX's."""
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
            return _tag(opening, attributes, alone=text[at] == "/", end=text.index(">", at) + 1)
        # Attributes are set apart by space, except after a quote.
        after_quote = bool(attributes) and text[began - 1 : began] in {'"', "'", "}"}
        if (not opening["name"] or began == at) and not after_quote:
            return None
        after = _attribute(text, at, limit, attributes)
        if after is None:
            return None
        at = after


def _tag(opening: re.Match[str], attributes: dict[str, str], *, alone: bool, end: int) -> Tag:
    name = opening["name"] or ""
    return Tag(name, attributes, bool(opening["closing"]), alone or name.lower() in VOID, end)


def _attribute(text: str, at: int, limit: int, attributes: dict[str, str]) -> int | None:
    if text.startswith("{", at):
        return braces_end(text, at, limit)  # {...props}
    named = _ATTRIBUTE.match(text, at, limit)
    if named is None:
        return None
    if named["equals"] is None:
        return named.end()
    value, end = _value(text, named.end(), limit)
    if value:
        attributes[named["name"].lower()] = value
    return end


def _value(text: str, at: int, limit: int) -> tuple[str, int | None]:
    """The text of an attribute's value and the index after it; None where it has no end."""
    if text.startswith("{", at):
        end = braces_end(text, at, limit)
        return ("" if end is None else literal_text(text[at + 1 : end - 1])), end
    if text.startswith(('"', "'"), at):
        end = text.find(text[at], at + 1, limit)
        return " ".join(text[at + 1 : max(end, at)].split()), end + 1 if end >= 0 else None
    value = _UNQUOTED.match(text, at, limit)
    return (value.group(), value.end()) if value else ("", None)


def braces_end(text: str, start: int, limit: int, most: int = _MAX_BRACES) -> int | None:
    """The index after the brace that closes the one at `start`, within `most` characters.

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
