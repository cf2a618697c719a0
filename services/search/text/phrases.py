"""Writes the inline tokens of a paragraph as Discord's Markdown or as plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import unescape

from markdown_it.token import Token

from services.search.text.tags import INLINE, Tag

_KEPT_SPACE = "\x01"
"""Stands for a space in code while the others are put in order."""
_WORDS_OF_AN_ALT_TEXT = 5
"""What says something about a picture is a sentence; shorter ones name it."""

_ICON = re.compile(r":(?:material|fontawesome|octicons|simple|lucide|tabler|bi|fa)-[\w-]+:")
_MARKED = re.compile(r"(?<![=^+\w])(?:==(?=\S)([^=\n]+)==|\^\^(?=\S)([^^\n]+)\^\^|\+\+([\w+\"-]+)\+\+)(?![=^+\w])")
_SPACES = re.compile(r"[^\S\n\x01]+")
_LINES = re.compile(r" ?\n[ \n]*")
_ESCAPED = frozenset("*_`~|")
_WRAPPED = {"b": "**", "strong": "**", "i": "*", "em": "*", "cite": "*", "del": "~~", "s": "~~", "strike": "~~"}
_CODE = {"code", "tt", "samp"}
_BOLD_LINES = {"summary", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "legend"}
_WIDE = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")


def write(tokens: Sequence[Token] | None, *, plain: bool = False) -> str:
    """Return the text of inline tokens. `plain`: without marks and link targets, on one line."""
    writer = _Writer(plain=plain)
    for token in tokens or ():
        writer.add(token)
    return writer.text


def plain_text(tokens: Sequence[Token] | None) -> str:
    return write(tokens, plain=True)


class _Writer:
    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self._parts: list[str] = []
        self._open: list[tuple[str, int, Callable[[str], str]]] = []

    @property
    def text(self) -> str:
        text = _LINES.sub("\n", _SPACES.sub(" ", "".join(self._parts)))
        text = " ".join(text.split("\n")) if self._plain else text
        return text.strip().replace(_KEPT_SPACE, " ")

    def add(self, token: Token) -> None:
        kind = token.type
        if kind == "text":
            self._parts.append(_prose(token.content))
        elif kind == "text_special":
            self._parts.append(self._special(token))
        elif kind.endswith("break"):
            self._parts.append("\n" if kind == "hardbreak" else self._soft_break())
        elif kind == "code_inline":
            self._parts.append(self._code(token.content))
        elif kind == "image":
            self._parts.append(_alt(token.content))
        elif kind == "tag":
            self._tag(token.meta["tag"])
        elif kind in {"strong_open", "em_open", "s_open"}:
            mark = {"strong_open": "**", "em_open": "*", "s_open": "~~"}[kind]
            self._begin(kind.removesuffix("_open"), self._wrap(mark))
        elif kind == "link_open":
            self._begin("link", self._link(str(token.attrs.get("href", ""))))
        elif kind.endswith("_close"):
            self._finish(kind.removesuffix("_close"))

    def _begin(self, name: str, write_inside: Callable[[str], str]) -> None:
        self._open.append((name, len(self._parts), write_inside))

    def _finish(self, name: str) -> None:
        """Closes the innermost one with this name. What was opened in it and not closed has no marks."""
        at = next((at for at in range(len(self._open) - 1, -1, -1) if self._open[at][0] == name), None)
        if at is None:
            return
        _, start, write_inside = self._open[at]
        del self._open[at:]
        inside = "".join(self._parts[start:])
        del self._parts[start:]
        core = inside.strip()
        if not core:
            self._parts.append(" " if inside else "")
            return
        before, after = inside[: inside.find(core)], inside[inside.find(core) + len(core) :]
        self._parts += [before, write_inside(core), after]

    def _wrap(self, mark: str) -> Callable[[str], str]:
        return str if self._plain else lambda inside: f"{mark}{inside.replace(mark, '')}{mark}"

    def _link(self, target: str) -> Callable[[str], str]:
        if self._plain or not target:
            return str
        return lambda inside: _linked(inside, target)

    def _code(self, content: str) -> str:
        content = " ".join(content.split("\n")).replace(" ", _KEPT_SPACE)
        if self._plain or not content.strip(_KEPT_SPACE):
            return content
        fence = "`" * (max((len(run) for run in re.findall("`+", content)), default=0) + 1)
        pad = _KEPT_SPACE if content.startswith("`") or content.endswith("`") else ""
        return f"{fence}{pad}{content}{pad}{fence}"

    def _special(self, token: Token) -> str:
        escaped = token.info == "escape" and token.content in _ESCAPED and not self._plain
        return token.markup if escaped else token.content

    def _soft_break(self) -> str:
        last = self._parts[-1][-1:] if self._parts else ""
        return "" if _WIDE.match(last) else " "

    def _tag(self, tag: Tag) -> None:
        name = tag.element
        if tag.closing:
            self._finish(name)
            self._parts.append("" if name in INLINE or (tag.is_component and not tag.title) else "\n")
        elif name in _WRAPPED:
            self._begin(name, self._wrap(_WRAPPED[name]))
        elif name in _CODE:
            self._begin(name, lambda inside: self._code(inside.replace("`", "").replace("\\", "")))
        elif name == "a":
            # A link to itself is there for people to copy its address.
            target = "" if tag.target == f"#{tag.attributes.get('id')}" else tag.target
            self._begin(name, self._link(unescape(target)))
        elif name == "br":
            self._parts.append("\n")
        elif name in {"img", "image"}:
            self._parts.append(_alt(unescape(tag.attributes.get("alt", ""))))
        elif name == "li":
            self._parts.append("\n- ")
        elif name in _BOLD_LINES:
            self._parts.append("\n")
            self._begin(name, self._wrap("**"))
        else:
            self._component(tag)

    def _component(self, tag: Tag) -> None:
        if tag.title:
            title = self._link(tag.target)(tag.title)
            self._parts += ["\n", self._wrap("**")(title), "\n"]
        if tag.description:
            self._parts += [" ", tag.description, "\n"]
        if tag.element not in INLINE and not tag.is_component:
            self._parts.append("\n")


def _prose(text: str) -> str:
    text = text.replace(_KEPT_SPACE, " ")
    if "-" in text and ":" in text:
        text = _ICON.sub("", text)
    if "==" in text or "^^" in text or "++" in text:
        text = _MARKED.sub(lambda found: found[1] or found[2] or found[3], text)
    return text


def _alt(text: str) -> str:
    return text if len(text.split()) >= _WORDS_OF_AN_ALT_TEXT else ""


def _linked(inside: str, target: str) -> str:
    inside = " ".join(inside.split("\n"))
    if inside in {target, target.removeprefix("mailto:")}:
        return inside
    target = "".join(target.split("\n")).replace(" ", "%20")
    if target.count("(") != target.count(")"):
        target = target.replace("(", "%28").replace(")", "%29")
    return f"[{inside}]({target})"
