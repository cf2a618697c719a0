"""Reads Markdown and MDX, with the extensions of documentation generators, by markdown-it.

MDX is Markdown with statements, components and expressions of JavaScript, which vanish around their text.
"""

from __future__ import annotations

import re
from functools import cache

from markdown_it import MarkdownIt
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin

from services.search.text.blocks import pieces
from services.search.text.elements import add_elements
from services.search.text.front_matter import read_front_matter
from services.search.text.marks import add_marks
from services.search.text.outline import Piece, article
from services.search.text.sections import Article
from services.search.text.slugs import GitHubSlugs, MkDocsSlugs
from services.search.text.spans import add_spans

_DEEPEST = 30
"""Levels of lists and quotes in each other. What is nested deeper is one paragraph."""
_IMPORT = re.compile(r"^import\s[^\"'\n]*(?:from\s+)?[\"'][^\"'\n]+[\"'];?[ \t]*$", re.MULTILINE)
_FENCED = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_BEGINNING = 5000
"""Characters, in which imports are looked for."""
_OWN_SIGNS = str.maketrans("\x00\x01\x02", "\N{REPLACEMENT CHARACTER}" * 3)


def read_markdown(text: str) -> Article:
    """Markdown with front matter, tables, tabs, admonitions, containers, HTML and a few components; never raises.

    Anchors are those that the document gives, else MkDocs' (`_1` is the second with a name).
    """
    front = read_front_matter(clean(text))
    return article(markdown_pieces(front.rest), MkDocsSlugs(), front.title, front.permalink)


def read_mdx(text: str) -> Article:
    """The text of a page in MDX. Titles of components stay as bold lines; code is not touched; never raises.

    Anchors are github-slugger's, which the generators of such pages use.
    """
    front = read_front_matter(clean(text))
    tokens = _parser(mdx=True).parse(front.rest)
    return article(pieces(tokens), GitHubSlugs(), front.title, front.permalink)


def is_mdx(text: str) -> bool:
    """Return whether a Markdown file is in fact MDX: it imports something before its first listing."""
    beginning = text[:_BEGINNING]
    listing = _FENCED.search(beginning)
    return bool(_IMPORT.search(beginning, 0, listing.start() if listing else len(beginning)))


def markdown_pieces(text: str, *, keep_lines: bool = False) -> list[Piece]:
    """Return the headings and blocks of Markdown without front matter. `keep_lines`: keep the line breaks of
    paragraphs.
    """
    tokens = _parser(mdx=False).parse(clean(text))
    if keep_lines:
        for child in (child for token in tokens for child in token.children or () if child.type == "softbreak"):
            child.type = "hardbreak"
    return pieces(tokens)


def clean(text: str) -> str:
    """Normalise line ends, and replace the control characters that the reader uses itself."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_OWN_SIGNS)


@cache
def _parser(*, mdx: bool) -> MarkdownIt:
    md = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable(["table", "strikethrough"])
    md.use(footnote_plugin, inline=False, move_to_end=False)
    md.use(deflist_plugin)
    add_marks(md, mdx=mdx)
    add_elements(md, mdx=mdx)
    add_spans(md, mdx=mdx)
    # Targets stay as they are written.
    md.normalizeLink = lambda url: url
    return md
