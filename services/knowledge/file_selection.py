"""Decides which files of a folder or a repository are pages of documentation: by the operator's globs, by names and
endings, and by what the generator of the site leaves out. Puts parts that pages include in their place.
"""

from __future__ import annotations

import ast
import itertools
import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from services.search.text import SiteGenerator

NOT_CHOSEN = "kb.include or kb.exclude leaves it out"
BEYOND = "beyond kb.max_pages_per_site"
NO_TEXT = "it is no text to read: a picture, a style sheet, an archive or the like"
SOURCE_CODE = "it is source code"
BUILD_FILE = "it is a file for building or publishing"
PEOPLE = "it is a list of people"
LICENCE = "it is a licence"
PRIVATE = "it is a key, a configuration of this program or a record"
NOT_DOCUMENTATION = frozenset({NO_TEXT, SOURCE_CODE, BUILD_FILE, PEOPLE, LICENCE, PRIVATE})
"""Why a file is no documentation, by its name."""

_ENDINGS = {
    NO_TEXT: """png jpg jpeg gif webp avif bmp ico icns tif tiff svg psd drawio excalidraw puml
        css scss sass less map wasm woff woff2 ttf otf eot mp3 mp4 webm ogg wav mov
        zip gz tgz bz2 xz zst 7z tar rar jar whl exe dll so dylib bin dat db sqlite pyc class o a
        pdf doc docx xls xlsx ppt pptx odt ods po pot mo bib""",
    SOURCE_CODE: """js mjs cjs jsx ts tsx mts cts vue svelte py pyi pyx go rs java kt kts scala c cc cpp cxx h hh hpp
        cs fs vb rb php pl pm lua r jl swift m mm dart ex exs erl hs clj sh bash zsh fish ps1 bat cmd awk tcl sql
        gradle groovy proto thrift ipynb""",
    BUILD_FILE: "lock sum mod cmake mk bazel bzl nix in am m4 tmpl j2 jinja cast exp",
    PRIVATE: "pem key ppk p12 pfx jks kdbx jsonl env envrc htpasswd tfstate tfvars asc gpg pgp",
}
_NAMES = {
    BUILD_FILE: """package.json package-lock.json npm-shrinkwrap.json pnpm-lock.yaml pnpm-workspace.yaml composer.json
        composer.lock tsconfig.json jsconfig.json deno.json turbo.json nx.json lerna.json vercel.json netlify.toml
        cargo.toml pyproject.toml setup.cfg tox.ini pipfile gemfile rakefile procfile dockerfile containerfile makefile
        make.bat cmakelists.txt conf.py mkdocs.yml mkdocs.yaml book.toml _config.yml _redirects _headers
        robots.txt cname
        doxyfile justfile requirements.txt constraints.txt versions.json sidebars.json _category_.json""",
    PEOPLE: """authors contributors maintainers codeowners owners credits thanks sponsors backers humans
        acknowledgements acknowledgments""",
    LICENCE: "license licence copying notice patents unlicense",
    PRIVATE: "id_rsa id_dsa id_ecdsa id_ed25519 config.local.yaml",
}
_MADE_OF_TEMPLATES = frozenset({"_templates", "_static", "_theme", "_themes", "_layouts"})
"""Folders of which generators of sites make the frame of pages: Sphinx, Jekyll."""
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
        """Return the reason why a file is no source, or None if it is one. `name`: its path, with `/` between
        folders.
        """
        if self.excludes(name):
            return NOT_CHOSEN
        if self._included is not None:
            return None if self._included.fullmatch(name) else NOT_CHOSEN
        folders, _, own = name.lower().rpartition("/")
        if not _MADE_OF_TEMPLATES.isdisjoint(folders.split("/")):
            return BUILD_FILE
        stem, _, ending = own.rpartition(".") if "." in own else (own, "", "")
        if ending.isdecimal() and folders.rpartition("/")[2].startswith("man"):
            return BUILD_FILE  # man/borg-create.1: made of the pages beside it, in troff
        if (why := _OF_NAME.get(own) or _OF_ENDING.get(ending)) is not None:
            return why
        known = _OF_NAME.get(stem.partition("-")[0], "")  # LICENSE-MIT
        return known if ending in _PLAIN.get(known, ()) else None

    def excludes(self, name: str) -> bool:
        """Return whether a glob of `exclude` names a file."""
        return self._excluded is not None and self._excluded.fullmatch(name) is not None

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


PART = "it is a part that pages include"
DRAFT = "it is a draft, or not to be indexed"
LEFT_OUT_BY_SPHINX = "exclude_patterns of conf.py leaves it out"

_ANY_SCRIPT = ("ts", "mts", "js", "mjs", "cjs")
_CONFIGURED_BY = {
    SiteGenerator.VITEPRESS: tuple(f".vitepress/config.{ending}" for ending in _ANY_SCRIPT),
    SiteGenerator.MKDOCS: ("mkdocs.yml", "mkdocs.yaml", "zensical.toml"),
    SiteGenerator.DOCUSAURUS: tuple(f"docusaurus.config.{ending}" for ending in _ANY_SCRIPT),
    SiteGenerator.MDBOOK: ("book.toml",),
    SiteGenerator.SPHINX: ("conf.py",),
}
_FOLDERS = frozenset({"_include", "_includes", "_partials", "_snippets", "_parts", "_shared"})
_PAGES = (".md", ".mdx", ".markdown", ".rst", ".rest", ".txt")
_DEEPEST = 4
_MOST_CHARS = 500_000
_MOST_INCLUDES = 1_000
_CODE_INDENT = 4
_LINE_CHARS = 500
_FRONT_LINES = 200
_INCLUDES = re.compile(
    r"""(?P<indent>[ \t]*+)(?:
        \.\.[ ]include::[ ]++(?P<rest>\S++)
      | \.\.[ ]literalinclude::[ ]++(?P<code>\S++)
      | ```\{include\}[ ]++(?P<myst>\S++)
      | (?:-{1,2}8<-{1,2}|;--8<--)[ ]++["'](?P<snippet>[^"']++)["']
      | \{![ ]*+(?P<markdown>[^\s!]++)[ ]*+!\}
      | \{\{[ ]*+\#include[ ]++(?P<mdbook>[^\s:}]++)[^}]*+\}\}
      | <!--[ ]*+@include:[ ]*+(?P<vitepress>(?>(?:[^\s{\#>-]|-(?!-)){1,300}))[^>]*+>
    )[ \t]*+""",
    re.VERBOSE,
)
_MAYBE = ("include", "8<", "{!")
_UNPUBLISHED = re.compile(
    r"""[ ]{0,8}["']?(?:
        (?:draft|noindex|no_index|unlisted|nosearch)["']?[ ]{0,8}[:=][ ]{0,8}["']?(?:true|yes)\b
      | published["']?[ ]{0,8}[:=][ ]{0,8}["']?(?:false|no)\b
      | robots["']?[ ]{0,8}[:=][^\n]{0,100}\bnoindex\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def is_part(name: str) -> bool:
    """Return whether a file is, by its name, a part that pages include: `usage/create.rst.inc`,
    `_includes/ports.md`.
    """
    *folders, own = name.split("/")
    inc = own.endswith(".inc") or ".inc." in own
    return inc or not _FOLDERS.isdisjoint(folders) or (own.startswith("_") and own.lower().endswith(_PAGES))


def is_unpublished(text: str) -> bool:
    """Return whether the front matter marks a page as a draft, or excludes it from indexes."""
    first = text.removeprefix("\ufeff").split("\n", _FRONT_LINES)[:_FRONT_LINES]
    lines = [line[:_LINE_CHARS].rstrip() for line in first]
    if lines[0] in {"---", "+++"}:
        ends = (at for at, line in enumerate(lines[1:], 1) if line in {lines[0], "..."})
        return any(_UNPUBLISHED.match(line) for line in lines[1 : next(ends, 0)])
    fields = itertools.takewhile(lambda line: not line or line.startswith(":"), lines)
    return ":nosearch:" in fields


def with_parts(name: str, text: str, read: Callable[[str], str | None]) -> tuple[str, bool]:
    """Return a page with its includes inserted, and whether it has any. `read`: returns the text of a part by its path
    below the folder of documents, or None if that is no part; the directive then stays.
    """
    if not any(mark in text for mark in _MAYBE):
        return text, False
    found = _Parts(read)
    whole = found.expanded(name, text, ())
    return (whole, True) if found.any else (text, False)


class _Parts:
    def __init__(self, read: Callable[[str], str | None]) -> None:
        self._read = read
        self._room = _MOST_CHARS
        self._left = _MOST_INCLUDES
        self.any = False

    def expanded(self, name: str, text: str, above: tuple[str, ...]) -> str:
        lines = text.split("\n")
        for at, line in enumerate(lines):
            directive = _INCLUDES.fullmatch(line) if len(line) <= _LINE_CHARS else None
            if directive is not None:
                lines[at] = self._part(name, directive, above)
        return "\n".join(lines)

    def _part(self, name: str, directive: re.Match[str], above: tuple[str, ...]) -> str:
        target = next(value for key, value in directive.groupdict().items() if key != "indent" and value)
        self._left -= 1
        for path in _paths(name, target) if self._left >= 0 else ():
            part = None if path in above or len(above) >= _DEEPEST else self._read(path)
            if part is not None and len(part) <= self._room:
                self._room -= len(part)
                whole = self.expanded(path, part, (*above, path)).strip("\n")
                # An indented part is indented line by line, and again where the part that includes it is.
                self._room -= (whole.count("\n") + 1) * (len(directive["indent"]) + _CODE_INDENT)
                if self._room >= 0:
                    self.any = True
                    return _put(whole, directive)
        return directive[0]


def _put(part: str, directive: re.Match[str]) -> str:
    indent = directive["indent"]
    if directive["code"]:
        return f"{indent}::\n\n" + "\n".join(f"{indent}{' ' * _CODE_INDENT}{line}" for line in part.split("\n"))
    return "\n".join(indent + line if line else line for line in part.split("\n"))


def _paths(name: str, target: str) -> list[str]:
    """Where the target of a directive may be: beside the page, or below the folder of documents."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(name), target.lstrip("/")))
    top = posixpath.normpath(target.lstrip("/"))
    found = [top, beside] if target.startswith("/") else [beside, top]
    return [path for path in dict.fromkeys(found) if not path.startswith("../")]


def site_generator_of(folder: Path) -> SiteGenerator | None:
    """Detect the site generator of a documentation folder, by its configuration file beside or above the documents;
    None if there is none. Blocking.
    """
    for place in (folder, folder.parent):
        for generator, names in _CONFIGURED_BY.items():
            if any((place / name).is_file() for name in names):
                return generator
    return None


def sphinx_excludes(conf: str) -> list[str]:
    """Return the globs of `exclude_patterns` that are written literally in a `conf.py`. The file is not executed."""
    try:
        tree = ast.parse(conf)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [
        each.value
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AugAssign)) and _sets(node, "exclude_patterns")
        for each in getattr(node.value, "elts", ())
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]


def _sets(node: ast.Assign | ast.AugAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)
