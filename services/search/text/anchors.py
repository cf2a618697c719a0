"""Makes anchors of headings as site generators make them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from enum import StrEnum

Slugs = Callable[[str], str]
"""Makes the anchor of a title."""

_NOT_MKDOCS = re.compile(r"[^\w\s-]")
_NOT_GITHUB = re.compile(r"[^\w\- ]")
_MKDOCS_BREAKS = re.compile(r"[-\s]+")
_VITEPRESS_BREAKS = re.compile(r"[\s~`!@#$%^&*()\-_+=\[\]{}|\\;:\"'“”‘’<>,.?/]+")
_DOCUTILS_BREAKS = re.compile(r"[^a-z0-9]+")
_DOCUTILS_START = re.compile(r"^[-0-9]+")
_NUMBERED = re.compile(r"[-_]([1-9][0-9]?)")


class SiteGenerator(StrEnum):
    """The program that makes a site of documents; `repository`: a host of repositories that shows files as they are."""

    MKDOCS = "mkdocs"
    SPHINX = "sphinx"
    VITEPRESS = "vitepress"
    DOCUSAURUS = "docusaurus"
    MDBOOK = "mdbook"
    REPOSITORY = "repository"


class _UniqueSlugs:
    """Makes the anchors of one page; a repeated title gets a number behind `separator`."""

    def __init__(self, make_slug: Slugs, separator: str) -> None:
        self._make_slug = make_slug
        self._separator = separator
        self._used: set[str] = set()
        self._repeats: dict[str, int] = {}

    def __call__(self, title: str) -> str:
        name = slug = self._make_slug(title)
        while name in self._used:
            self._repeats[slug] = self._repeats.get(slug, 0) + 1
            name = f"{slug}{self._separator}{self._repeats[slug]}"
        self._used.add(name)
        return name


def mkdocs_slugs() -> Slugs:
    """Return the maker of anchors of Python-Markdown's `toc`, which MkDocs uses: `_1` is the second with a name."""
    return _UniqueSlugs(_mkdocs, "_")


def github_slugs() -> Slugs:
    """Return the maker of anchors of github-slugger, which Docusaurus, Astro and GitHub use: `-1` is the second."""
    return _UniqueSlugs(_github, "-")


def anchor_by(generator: SiteGenerator, title: str, anchor: str) -> str:
    """Return the anchor that a generator gives to a heading. `anchor`: the one that our reader gave it; it is returned
    unchanged if the author chose it.
    """
    for made in dict.fromkeys((_mkdocs(title), _github(title))):
        rest = anchor.removeprefix(made) if made and anchor.startswith(made) else None
        number = _NUMBERED.fullmatch(rest) if rest else None
        if rest == "" or number is not None:
            slug, mark = _SLUGS_OF[generator](title), "_" if generator is SiteGenerator.MKDOCS else "-"
            return f"{slug}{mark}{number[1]}" if number is not None else slug
    return anchor


def _mkdocs(title: str) -> str:
    """Where nothing is left of a title (in Chinese), return GitHub's anchor, as the other generators give it."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    slug = _MKDOCS_BREAKS.sub("-", _NOT_MKDOCS.sub("", plain).strip().lower())
    return slug if slug.strip("-") else _github(title)


def _github(title: str) -> str:
    return _NOT_GITHUB.sub("", title.strip().lower()).replace(" ", "-")


def _vitepress(title: str) -> str:
    """As @mdit-vue's `slugify`: punctuation parts words, and a leading digit gets `_` before it."""
    letters = unicodedata.normalize("NFKD", title)
    plain = "".join(each for each in letters if unicodedata.category(each)[0] not in {"M", "C"} or each in "\t\n")
    slug = _VITEPRESS_BREAKS.sub("-", plain).strip("-").lower()
    return f"_{slug}" if slug[:1].isdigit() else slug


def _docutils(title: str) -> str:
    """As docutils' `make_id`, by which Sphinx names the sections of Markdown too."""
    plain = unicodedata.normalize("NFKD", title.lower()).encode("ascii", "ignore").decode()
    return _DOCUTILS_START.sub("", _DOCUTILS_BREAKS.sub("-", plain)).strip("-") or _github(title)


def _mdbook(title: str) -> str:
    """Letters, digits, `_` and `-` stay; a space is a hyphen."""
    return "".join("-" if each.isspace() else each for each in title.lower() if each.isalnum() or each in "_- \t")


_SLUGS_OF: dict[SiteGenerator, Callable[[str], str]] = {
    SiteGenerator.MKDOCS: _mkdocs,
    SiteGenerator.SPHINX: _docutils,
    SiteGenerator.VITEPRESS: _vitepress,
    SiteGenerator.DOCUSAURUS: _github,
    SiteGenerator.MDBOOK: _mdbook,
    SiteGenerator.REPOSITORY: _github,
}
