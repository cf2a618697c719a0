"""Anchors of headings as site generators make them; one object for each page, called heading after heading."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from enum import StrEnum

Slugs = Callable[[str], str]

_NOT_IN_WORDS = re.compile(r"[^\w\s-]")
_NOT_GITHUB = re.compile(r"[^\w\- ]")
_BETWEEN = re.compile(r"[-\s]+")
_VITEPRESS_BREAKS = re.compile(r"[\s~`!@#$%^&*()\-_+=\[\]{}|\\;:\"'“”‘’<>,.?/]+")
_DOCUTILS_BREAKS = re.compile(r"[^a-z0-9]+")
_NOT_FIRST = re.compile(r"^[-0-9]+")
_NUMBERED = re.compile(r"[-_]([1-9][0-9]?)")


class SiteGenerator(StrEnum):
    """The program that makes a site of documents; `repository`: a host of repositories that shows files as they are."""

    MKDOCS = "mkdocs"
    SPHINX = "sphinx"
    VITEPRESS = "vitepress"
    DOCUSAURUS = "docusaurus"
    MDBOOK = "mdbook"
    REPOSITORY = "repository"


class MkDocsSlugs:
    """The anchors of Python-Markdown's `toc`, which MkDocs uses: `_1` is the second with a name.

    What it makes nothing of (a title in Chinese) gets GitHub's anchor, which is what the other generators give.
    """

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def __call__(self, title: str) -> str:
        return _unique(_mkdocs(title), "_", self._used, self._next)


class GitHubSlugs:
    """The anchors of github-slugger, which Docusaurus, Astro and GitHub use: `-1` is the second with a name."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def __call__(self, title: str) -> str:
        return _unique(_github(title), "-", self._used, self._next)


def anchor_by(generator: SiteGenerator, title: str, anchor: str) -> str:
    """Return the anchor that a generator gives to a heading. `anchor`: the one that our reader made; one that the
    author chose is returned unchanged.
    """
    for made in dict.fromkeys((_mkdocs(title), _github(title))):
        rest = anchor.removeprefix(made) if made and anchor.startswith(made) else None
        number = _NUMBERED.fullmatch(rest) if rest else None
        if rest == "" or number is not None:
            slug, mark = _MADE_BY[generator](title), "_" if generator is SiteGenerator.MKDOCS else "-"
            return f"{slug}{mark}{number[1]}" if number is not None else slug
    return anchor


def _mkdocs(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    slug = _BETWEEN.sub("-", _NOT_IN_WORDS.sub("", plain).strip().lower())
    return slug if slug.strip("-") else _github(title)


def _github(title: str) -> str:
    return _NOT_GITHUB.sub("", title.strip().lower()).replace(" ", "-")


def _vitepress(title: str) -> str:
    """As @mdit-vue's `slugify`: marks part words, and what begins with a digit gets `_`."""
    letters = unicodedata.normalize("NFKD", title)
    plain = "".join(each for each in letters if unicodedata.category(each)[0] not in {"M", "C"} or each in "\t\n")
    slug = _VITEPRESS_BREAKS.sub("-", plain).strip("-").lower()
    return f"_{slug}" if slug[:1].isdigit() else slug


def _docutils(title: str) -> str:
    """As docutils' `make_id`, by which Sphinx names the sections of Markdown too."""
    plain = unicodedata.normalize("NFKD", title.lower()).encode("ascii", "ignore").decode()
    return _NOT_FIRST.sub("", _DOCUTILS_BREAKS.sub("-", plain)).strip("-") or _github(title)


def _mdbook(title: str) -> str:
    """Letters, digits, `_` and `-` stay; a space is a hyphen."""
    return "".join("-" if each.isspace() else each for each in title.lower() if each.isalnum() or each in "_- \t")


_MADE_BY: dict[SiteGenerator, Callable[[str], str]] = {
    SiteGenerator.MKDOCS: _mkdocs,
    SiteGenerator.SPHINX: _docutils,
    SiteGenerator.VITEPRESS: _vitepress,
    SiteGenerator.DOCUSAURUS: _github,
    SiteGenerator.MDBOOK: _mdbook,
    SiteGenerator.REPOSITORY: _github,
}


def _unique(slug: str, mark: str, used: set[str], following: dict[str, int]) -> str:
    name = slug
    while name in used:
        following[slug] = following.get(slug, 0) + 1
        name = f"{slug}{mark}{following[slug]}"
    used.add(name)
    return name
