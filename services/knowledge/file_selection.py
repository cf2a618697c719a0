"""Selects the files of a folder or a repository that are pages of documentation: by the operator's globs, by names and
endings, and by what the generator of the site leaves out. Expands the includes of pages.
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
BEYOND_LIMIT = "beyond kb.max_pages_per_site"
NO_TEXT = "it is no text to read: a picture, a style sheet, an archive or the like"
SOURCE_CODE = "it is source code"
BUILD_FILE = "it is a file for building or publishing"
PEOPLE = "it is a list of people"
LICENCE = "it is a licence"
PRIVATE = "it is a key, a configuration of this program or a record"
CREDENTIALS = "its name says that it holds secrets"
LEFTOVER = "it is a log, or a copy that a program left"
NOT_DOCUMENTATION = frozenset({NO_TEXT, SOURCE_CODE, BUILD_FILE, PEOPLE, LICENCE, PRIVATE, CREDENTIALS, LEFTOVER})
"""The reasons for which the name of a file shows that it is no documentation."""

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
    LEFTOVER: "log bak backup old orig rej save swo swp tmp temp",
}
_NAMES = {
    BUILD_FILE: """package.json package-lock.json npm-shrinkwrap.json pnpm-lock.yaml pnpm-workspace.yaml composer.json
        composer.lock tsconfig.json jsconfig.json deno.json turbo.json nx.json lerna.json vercel.json netlify.toml
        cargo.toml pyproject.toml setup.cfg tox.ini pipfile gemfile rakefile procfile dockerfile containerfile makefile
        make.bat cmakelists.txt conf.py mkdocs.yml mkdocs.yaml book.toml _config.yml _redirects _headers
        robots.txt cname
        docker-compose.yml docker-compose.yaml docker-compose.override.yml docker-compose.override.yaml
        compose.yml compose.yaml compose.override.yml compose.override.yaml
        doxyfile justfile requirements.txt constraints.txt versions.json sidebars.json _category_.json""",
    PEOPLE: """authors contributors maintainers codeowners owners credits thanks sponsors backers humans
        acknowledgements acknowledgments""",
    LICENCE: "license licence copying notice patents unlicense",
    PRIVATE: "id_rsa id_dsa id_ecdsa id_ed25519 config.local.yaml",
}
_TEMPLATE_FOLDERS = frozenset({"_templates", "_static", "_theme", "_themes", "_layouts"})
"""Folders with the frame of pages, for site generators such as Sphinx and Jekyll."""
_LIST_ENDINGS = {PEOPLE: frozenset({"", "txt", "md", "rst"}), LICENCE: frozenset({"", "txt"})}
"""The endings with which a file is such a list or text: `licence.html` is a page about licences."""
_PAGE_ENDINGS = (".md", ".mdx", ".markdown", ".rst", ".rest", ".txt")
_PROSE_ENDINGS = frozenset(each[1:] for each in _PAGE_ENDINGS) | {"html", "htm", "xhtml", "adoc", "asciidoc"}
"""The endings of pages for readers: `secrets.md` tells how to keep secrets, `secrets.yml` holds some."""
_CREDENTIALS = re.compile(
    r"(?:^|\.)env(?:\.|$)|secret|credential|kubeconfig|service[_-]?account"
    r"|(?:^|[._-])(?:htpasswd|passw(?:or)?ds?)(?:\.|$)"
)
_LEFTOVER = re.compile(r"~$|^#.*#$|\.log[.-]\d[\d.-]*$")
_REASON_OF_ENDING = {ending: why for why, endings in _ENDINGS.items() for ending in endings.split()}
_REASON_OF_NAME = {name: why for why, names in _NAMES.items() for name in names.split()}


def _reason_of_form(own: str, stem: str, ending: str) -> str | None:
    if ending not in _PROSE_ENDINGS and _CREDENTIALS.search(own):
        return CREDENTIALS
    if _LEFTOVER.search(own):
        return LEFTOVER
    known = _REASON_OF_NAME.get(stem.partition("-")[0], "")  # LICENSE-MIT
    return known if ending in _LIST_ENDINGS.get(known, ()) else None


@dataclass(frozen=True)
class PathFilter:
    """Selects the files of a folder that become sources. `include`: globs below it (`guides/**`, `*.md`); empty: all
    documentation. `exclude`: globs of files to leave out; these win.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def refusal(self, name: str) -> str | None:
        """Return why a file is no source, or None if it is one. `name`: its path, with `/` between folders."""
        if self.excludes(name):
            return NOT_CHOSEN
        if self._included is not None:
            return None if self._included.fullmatch(name) else NOT_CHOSEN
        folders, _, own = name.lower().rpartition("/")
        if not _TEMPLATE_FOLDERS.isdisjoint(folders.split("/")):
            return BUILD_FILE
        stem, _, ending = own.rpartition(".") if "." in own else (own, "", "")
        if ending.isdecimal() and folders.rpartition("/")[2].startswith("man"):
            return BUILD_FILE  # man/borg-create.1: made of the pages beside it, in troff
        return _REASON_OF_NAME.get(own) or _REASON_OF_ENDING.get(ending) or _reason_of_form(own, stem, ending)

    def excludes(self, name: str) -> bool:
        """Return True if a glob of `exclude` matches a file."""
        return self._excluded is not None and self._excluded.fullmatch(name) is not None

    @cached_property
    def _included(self) -> re.Pattern[str] | None:
        return _compile(self.include)

    @cached_property
    def _excluded(self) -> re.Pattern[str] | None:
        return _compile(self.exclude)


_PIECE = re.compile(r"\*\*/|\*\*|[*?]|[^*?]+")
_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _compile(globs: Sequence[str]) -> re.Pattern[str] | None:
    """Compile globs: `*` stays within a folder, `**` does not; one without a slash matches names in any folder."""
    if not globs:
        return None
    return re.compile("|".join(f"(?:{_pattern(glob)})" for glob in globs), re.IGNORECASE)


def _pattern(glob: str) -> str:
    parts = (_WILD.get(piece) or re.escape(piece) for piece in _PIECE.findall(glob))
    return ("" if "/" in glob else "(?:.*/)?") + "".join(parts)


PARTIAL = "it is a part that pages include"
DRAFT = "it is a draft, or not to be indexed"
EXCLUDED_BY_SPHINX = "exclude_patterns of conf.py leaves it out"

_ANY_SCRIPT = ("ts", "mts", "js", "mjs", "cjs")
_CONFIGURED_BY = {
    SiteGenerator.VITEPRESS: tuple(f".vitepress/config.{ending}" for ending in _ANY_SCRIPT),
    SiteGenerator.MKDOCS: ("mkdocs.yml", "mkdocs.yaml", "zensical.toml"),
    SiteGenerator.DOCUSAURUS: tuple(f"docusaurus.config.{ending}" for ending in _ANY_SCRIPT),
    SiteGenerator.MDBOOK: ("book.toml",),
    SiteGenerator.SPHINX: ("conf.py",),
}
_PARTIAL_FOLDERS = frozenset({"_include", "_includes", "_partials", "_snippets", "_parts", "_shared"})
_MAX_DEPTH = 4
_MAX_CHARS = 500_000
_MAX_INCLUDES = 1_000
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
_INCLUDE_HINTS = ("include", "8<", "{!")
_UNPUBLISHED = re.compile(
    r"""[ ]{0,8}["']?(?:
        (?:draft|noindex|no_index|unlisted|nosearch)["']?[ ]{0,8}[:=][ ]{0,8}["']?(?:true|yes)\b
      | published["']?[ ]{0,8}[:=][ ]{0,8}["']?(?:false|no)\b
      | robots["']?[ ]{0,8}[:=][^\n]{0,100}\bnoindex\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def is_partial(name: str) -> bool:
    """Return True if a file is, by its name, a partial that pages include: `usage/create.rst.inc`, `_includes/a.md`."""
    *folders, own = name.split("/")
    inc = own.endswith(".inc") or ".inc." in own
    return (
        inc or not _PARTIAL_FOLDERS.isdisjoint(folders) or (own.startswith("_") and own.lower().endswith(_PAGE_ENDINGS))
    )


def is_unpublished(text: str) -> bool:
    """Return True if the front matter marks a page as a draft, or excludes it from indexes."""
    first = text.removeprefix("\ufeff").split("\n", _FRONT_LINES)[:_FRONT_LINES]
    lines = [line[:_LINE_CHARS].rstrip() for line in first]
    if lines[0] in {"---", "+++"}:
        ends = (at for at, line in enumerate(lines[1:], 1) if line in {lines[0], "..."})
        return any(_UNPUBLISHED.match(line) for line in lines[1 : next(ends, 0)])
    fields = itertools.takewhile(lambda line: not line or line.startswith(":"), lines)
    return ":nosearch:" in fields


def expand_includes(name: str, text: str, read: Callable[[str], str | None]) -> tuple[str, bool]:
    """Return a page with its includes inserted, and whether it has any. `read`: returns the text of a partial by its
    path below the folder of documents; None if there is no such partial, so that the directive stays.
    """
    if not any(hint in text for hint in _INCLUDE_HINTS):
        return text, False
    expander = _IncludeExpander(read)
    whole = expander.expand(name, text, ())
    return (whole, True) if expander.has_expanded else (text, False)


class _IncludeExpander:
    def __init__(self, read: Callable[[str], str | None]) -> None:
        self._read = read
        self._chars_left = _MAX_CHARS
        self._includes_left = _MAX_INCLUDES
        self.has_expanded = False

    def expand(self, name: str, text: str, above: tuple[str, ...]) -> str:
        lines = text.split("\n")
        for at, line in enumerate(lines):
            directive = _INCLUDES.fullmatch(line) if len(line) <= _LINE_CHARS else None
            if directive is not None:
                lines[at] = self._expand_directive(name, directive, above)
        return "\n".join(lines)

    def _expand_directive(self, name: str, directive: re.Match[str], above: tuple[str, ...]) -> str:
        target = next(value for key, value in directive.groupdict().items() if key != "indent" and value)
        self._includes_left -= 1
        for path in _candidate_paths(name, target) if self._includes_left >= 0 else ():
            part = None if path in above or len(above) >= _MAX_DEPTH else self._read(path)
            if part is not None and len(part) <= self._chars_left:
                self._chars_left -= len(part)
                whole = self.expand(path, part, (*above, path)).strip("\n")
                # Nested partials are indented once for each level.
                self._chars_left -= (whole.count("\n") + 1) * (len(directive["indent"]) + _CODE_INDENT)
                if self._chars_left >= 0:
                    self.has_expanded = True
                    return _indent_text(whole, directive)
        return directive[0]


def _indent_text(part: str, directive: re.Match[str]) -> str:
    indent = directive["indent"]
    if directive["code"]:
        return f"{indent}::\n\n" + "\n".join(f"{indent}{' ' * _CODE_INDENT}{line}" for line in part.split("\n"))
    return "\n".join(indent + line if line else line for line in part.split("\n"))


def _candidate_paths(name: str, target: str) -> list[str]:
    """Return the paths that the target of a directive may mean: beside the page, or below the folder of documents."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(name), target.lstrip("/")))
    top = posixpath.normpath(target.lstrip("/"))
    found = [top, beside] if target.startswith("/") else [beside, top]
    return [path for path in dict.fromkeys(found) if not path.startswith("../")]


def site_generator_of(folder: Path) -> SiteGenerator | None:
    """Detect the site generator of a folder by its configuration file, there or one above; None: none. Blocking."""
    for parent in (folder, folder.parent):
        for generator, names in _CONFIGURED_BY.items():
            if any((parent / name).is_file() for name in names):
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
        if isinstance(node, (ast.Assign, ast.AugAssign)) and _assigns(node, "exclude_patterns")
        for each in getattr(node.value, "elts", ())
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]


def _assigns(node: ast.Assign | ast.AugAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)
