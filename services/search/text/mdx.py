"""MDX: Markdown with statements, components and expressions of JavaScript, which vanish around their text."""

from __future__ import annotations

import re

from services.search.text.markdown import read_components
from services.search.text.sections import Article

_IMPORT = re.compile(r"^import\s[^\"'\n]*(?:from\s+)?[\"'][^\"'\n]+[\"'];?[ \t]*$", re.MULTILINE)
_FENCED = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_BEGINNING = 5000


def read_mdx(text: str) -> Article:
    """The text of a page in MDX. Titles of components stay as bold lines; code is not touched; never raises."""
    return read_components(text)


def is_mdx(text: str) -> bool:
    """Whether Markdown is MDX by another name: it imports something before its first listing."""
    beginning = text[:_BEGINNING]
    listing = _FENCED.search(beginning)
    return bool(_IMPORT.search(beginning, 0, listing.start() if listing else len(beginning)))
