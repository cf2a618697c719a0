"""Which files are documentation: globs that the operator gave, and endings that never are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

NOT_DOCUMENTATION = "it is no documentation, by its name"
NOT_CHOSEN = "kb.include or kb.exclude leaves it out"

_ENDINGS = frozenset(
    """png jpg jpeg gif webp avif bmp ico icns tif tiff svg psd drawio excalidraw puml
    css scss sass less js mjs cjs jsx ts tsx map vue wasm
    lock sum woff woff2 ttf otf eot mp3 mp4 webm ogg wav mov
    zip gz tgz bz2 xz zst 7z tar rar jar whl exe dll so dylib bin dat db sqlite pyc class o a
    pdf doc docx xls xlsx ppt pptx odt ods po pot mo bib""".split()  # noqa: SIM905 - ten lines of quotes otherwise
)
_NAMES = frozenset(
    """package-lock.json npm-shrinkwrap.json pnpm-lock.yaml go.sum composer.lock
    makefile make.bat conf.py""".split()  # noqa: SIM905 - as above; the last three build Sphinx trees
)


@dataclass(frozen=True)
class Choice:
    """What of a folder is a source.

    Attributes:
        include: globs below the folder (`guides/**`, `*.md`); empty: everything that is documentation.
        exclude: globs of what is left out; they win.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def refusal(self, name: str) -> str | None:
        """Why a file is no source; None: it is one. `name`: with `/` between folders."""
        if self._excluded is not None and self._excluded.fullmatch(name):
            return NOT_CHOSEN
        if self._included is not None:
            return None if self._included.fullmatch(name) else NOT_CHOSEN
        own = name.rpartition("/")[2].lower()
        return NOT_DOCUMENTATION if own in _NAMES or (own.rpartition(".")[2] in _ENDINGS and "." in own) else None

    @cached_property
    def _included(self) -> re.Pattern[str] | None:
        return _compiled(self.include)

    @cached_property
    def _excluded(self) -> re.Pattern[str] | None:
        return _compiled(self.exclude)


_PIECE = re.compile(r"\*\*/|\*\*|[*?]|[^*?]+")
_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _compiled(globs: Sequence[str]) -> re.Pattern[str] | None:
    """`*` stays within a folder, `**` does not; a glob without a slash is for names in any folder."""
    if not globs:
        return None
    return re.compile("|".join(f"(?:{_pattern(glob)})" for glob in globs), re.IGNORECASE)


def _pattern(glob: str) -> str:
    parts = (_WILD.get(piece) or re.escape(piece) for piece in _PIECE.findall(glob))
    return ("" if "/" in glob else "(?:.*/)?") + "".join(parts)
