"""Decides which files are documentation: by the operator's globs, and by names and endings that never are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

NOT_CHOSEN = "kb.include or kb.exclude leaves it out"
NO_TEXT = "it is no text to read: a picture, a style sheet, an archive or the like"
SOURCE_CODE = "it is source code"
BUILD_FILE = "it is a file for building or publishing"
PEOPLE = "it is a list of people"
LICENCE = "it is a licence"
NOT_DOCUMENTATION = frozenset({NO_TEXT, SOURCE_CODE, BUILD_FILE, PEOPLE, LICENCE})
"""Why a file is no documentation, by its name."""

_ENDINGS = {
    NO_TEXT: """png jpg jpeg gif webp avif bmp ico icns tif tiff svg psd drawio excalidraw puml
        css scss sass less map wasm woff woff2 ttf otf eot mp3 mp4 webm ogg wav mov
        zip gz tgz bz2 xz zst 7z tar rar jar whl exe dll so dylib bin dat db sqlite pyc class o a
        pdf doc docx xls xlsx ppt pptx odt ods po pot mo bib""",
    SOURCE_CODE: """js mjs cjs jsx ts tsx mts cts vue svelte py pyi pyx go rs java kt kts scala c cc cpp cxx h hh hpp
        cs fs vb rb php pl pm lua r jl swift m mm dart ex exs erl hs clj sh bash zsh fish ps1 bat cmd awk tcl sql
        gradle groovy proto thrift ipynb""",
    BUILD_FILE: "lock sum mod cmake mk bazel bzl nix in am m4 tmpl j2 jinja",
}
_NAMES = {
    BUILD_FILE: """package.json package-lock.json npm-shrinkwrap.json pnpm-lock.yaml pnpm-workspace.yaml composer.json
        composer.lock tsconfig.json jsconfig.json deno.json turbo.json nx.json lerna.json vercel.json netlify.toml
        cargo.toml pyproject.toml setup.cfg tox.ini pipfile gemfile rakefile procfile dockerfile makefile make.bat
        cmakelists.txt conf.py mkdocs.yml mkdocs.yaml book.toml _config.yml _redirects _headers robots.txt cname
        doxyfile justfile requirements.txt constraints.txt versions.json sidebars.json _category_.json""",
    PEOPLE: """authors contributors maintainers codeowners owners credits thanks sponsors backers humans
        acknowledgements acknowledgments""",
    LICENCE: "license licence copying notice patents unlicense",
}
_PLAIN = {PEOPLE: frozenset({"", "txt", "md", "rst"}), LICENCE: frozenset({"", "txt"})}
"""The endings of such lists and texts. A page about a licence is one."""
_OF_ENDING = {ending: why for why, endings in _ENDINGS.items() for ending in endings.split()}
_OF_NAME = {name: why for why, names in _NAMES.items() for name in names.split()}


@dataclass(frozen=True)
class PathFilter:
    """Include and exclude globs that select the files of a folder that become sources.

    Attributes:
        include: globs below the folder (`guides/**`, `*.md`); empty: everything that is documentation.
        exclude: globs of what is left out; they win.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def refusal(self, name: str) -> str | None:
        """Return the reason why a file is no source, or None if it is one. `name`: its path, with `/` between folders."""
        if self._excluded is not None and self._excluded.fullmatch(name):
            return NOT_CHOSEN
        if self._included is not None:
            return None if self._included.fullmatch(name) else NOT_CHOSEN
        own = name.rpartition("/")[2].lower()
        stem, _, ending = own.rpartition(".") if "." in own else (own, "", "")
        if (why := _OF_NAME.get(own) or _OF_ENDING.get(ending)) is not None:
            return why
        known = _OF_NAME.get(stem.partition("-")[0], "")  # LICENSE-MIT
        return known if ending in _PLAIN.get(known, ()) else None

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
