"""Chooses the reader of a document by its name, or by its text."""

from __future__ import annotations

import re
from collections.abc import Callable

from services.search.text import markdown, plain, rest, sections

_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+\S", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_UNDERLINED = re.compile(
    r"^\S[^\n]{0,200}\n(?:={3,}|-{3,}|~{3,}|\^{3,}|\*{3,}|\"{3,}|`{3,}|#{3,}|\+{3,})[ \t]*$", re.MULTILINE
)
_DIRECTIVE = re.compile(r"^[ \t]*\.\. (?:[\w:-]+::|_[^\n:]+:)", re.MULTILINE)
_WEB = ("https://", "http://")


def read(name: str, text: str) -> sections.Article:
    """A document as sections. `name`: its path or address, which says in which language it is written. Never raises.

    Where the name does not say it, the text does: Markdown has headings or fences, reST underlined titles and
    directives; else it is plain text.
    """
    ending = name.rpartition("/")[2].lower().rpartition(".")[2]
    reader = plain.read_web_text if name.startswith(_WEB) else _BY_ENDING.get(ending) or _by_looks(text)
    return reader(text)


def _by_looks(text: str) -> Callable[[str], sections.Article]:
    if len(_UNDERLINED.findall(text)) > 1 and _DIRECTIVE.search(text):
        return rest.read_rest
    return markdown.read_markdown if _HEADING.search(text) or _FENCE.search(text) else plain.read_plain


def _read_markdown(text: str) -> sections.Article:
    return markdown.read_mdx(text) if markdown.is_mdx(text) else markdown.read_markdown(text)


def _read_html(text: str) -> sections.Article:
    # With trafilatura this takes a tenth of a second: only who has saved pages pays for it.
    from services.search.text.html import read_html  # noqa: PLC0415 (as above)

    return read_html(text)


_BY_ENDING = {
    "md": _read_markdown,
    "markdown": _read_markdown,
    "mdx": markdown.read_mdx,
    "rst": rest.read_rest,
    "rest": rest.read_rest,
    "html": _read_html,
    "htm": _read_html,
    "xhtml": _read_html,
}
