"""Reads the links file: pages, and lines that bring many sources at once.

# comment
https://example.org/faq
sitemap: https://docs.example.org/sitemap.xml guides/** !guides/old/**
llms: https://docs.example.org/llms.txt
git: https://github.com/example/project@main docs
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import urljoin, urlsplit, urlunsplit

from services.knowledge.source_kinds import CannotList, LinksLine

T = TypeVar("T")

SiteKind = Literal["sitemap", "llms"]

PAGES = ("http://", "https://")
"""The prefixes of the ids of web pages."""
REPOSITORY_FILES = "git:"
"""The prefix of the ids of files of repositories, and of the lines that bring them."""
LONGEST_URL = 2048
"""The characters that the address of a page in a list may have."""


@dataclass(frozen=True, slots=True)
class SiteLine:
    """A `sitemap:` or `llms:` line. `position`: file and line; `include`, `exclude`: globs for the paths of pages."""

    position: str = field(compare=False)
    kind: SiteKind
    url: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"{self.kind}: {self.url}"

    @property
    def host(self) -> str:
        return site_host(self.url)


@dataclass(frozen=True, slots=True)
class RepositoryLine:
    """A `git:` line. `branch` (or tag): empty for the repository's default; `folder`: without slashes at its ends,
    empty for the whole repository.
    """

    position: str = field(compare=False)
    url: str
    branch: str = ""
    folder: str = ""

    @property
    def text(self) -> str:
        branch, folder = f"@{self.branch}" if self.branch else "", f" {self.folder}" if self.folder else ""
        return f"{REPOSITORY_FILES} {self.url}{branch}{folder}"

    @property
    def prefix(self) -> str:
        """The prefix of the ids of its files: `git:github.com/example/project@main//`."""
        parts = urlsplit(self.url)
        branch = f"@{self.branch}" if self.branch else ""
        return f"{REPOSITORY_FILES}{parts.netloc.lower()}{parts.path.rstrip('/').removesuffix('.git')}{branch}//"


@dataclass(slots=True)
class Links:
    """The parsed links file; each entry once, in order: addresses of pages, and lines that begin with a word.
    `left_out`: why a line was ignored, by file and line.
    """

    pages: list[str] = field(default_factory=list[str])
    lines: list[LinksLine] = field(default_factory=list[LinksLine])
    left_out: dict[str, str] = field(default_factory=dict[str, str])

    def of(self, kind: type[T]) -> list[T]:
        """Return the lines of one kind."""
        return [line for line in self.lines if isinstance(line, kind)]


def site_host(url: str) -> str:
    """Return the host of an address without `www.`, which identifies a site."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".").removeprefix("www.")
    except ValueError:
        return ""


def read_links(path: Path) -> Links | None:
    """Read a links file; None if there is none. Blocking. Raises CannotList: it cannot be read."""
    try:
        return parse_links(path.read_bytes(), path.name)
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"{error.strerror}; what it names stays as it is"
        raise CannotList(str(path), message, "kb.links_file_path") from error


def listed_links(path: Path, records: Collection[str]) -> Links:
    """Read a links file for a listing; a missing one has no links. `records`: the ids of the known sources from it.
    Blocking. Raises CannotList: it cannot be read, or is missing although there are such sources.
    """
    links = read_links(path)
    if links is None and records:
        remedy = "what it named stays as it is; to have none, leave an empty file"
        raise CannotList(str(path), f"there is no such file any more; {remedy}", "kb.links_file_path")
    return links or Links()


_WORD = re.compile(r"([a-z][a-z0-9+-]*:)(?!//)\s*(.*)", re.IGNORECASE)


def parse_links(data: bytes, file: str = "links") -> Links:
    """Parse the lines of a links file, but for blanks and comments. URLs are http or https, without credentials."""
    links = Links()
    seen: set[object] = set()
    for number, raw in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
        line, position = raw.strip(), f"{file}, line {number}"
        if not line or line.startswith("#"):
            continue
        try:
            found = _parse_line(line, position)
        except ValueError as error:
            links.left_out[position] = str(error)
            continue
        if found in seen:
            continue
        seen.add(found)
        if isinstance(found, str):
            links.pages.append(found)
        else:
            links.lines.append(found)
    return links


def begins_line(text: str) -> bool:
    """Return True if a text begins like a line of the links file: with an address, or with a known word and more."""
    return _BEGINS.match(text) is not None


def _parse_line(line: str, position: str) -> str | LinksLine:
    """Parse one line. Raises ValueError: why the line is wrong; the message repeats nothing that may be secret."""
    found = _WORD.fullmatch(line)
    if found is None:
        return _require_page_url(line)
    form = _BY_WORD.get(found[1].lower())
    if form is None:
        known = ", ".join(f"`{each.word}`" for each in LINE_FORMS)
        raise ValueError(f"it is no http or https URL, and begins with none of {known}")
    url, *rest = found[2].split() or [""]
    return form.read(position, url, rest)


def _site(kind: SiteKind) -> Callable[[str, str, list[str]], SiteLine]:
    def read(position: str, url: str, globs: list[str]) -> SiteLine:
        checked = _require_page_url(url)
        if "" in (cleaned := [glob.removeprefix("!").lstrip("/") for glob in globs]):
            raise ValueError("a glob is empty; globs are paths such as guides/** and !guides/old/**")
        if kind == "llms" and globs:
            raise ValueError("after the address of an llms.txt nothing follows; globs are for `sitemap:`")
        pairs = list(zip(globs, cleaned, strict=True))
        include = tuple(glob for raw, glob in pairs if not raw.startswith("!"))
        exclude = tuple(glob for raw, glob in pairs if raw.startswith("!"))
        return SiteLine(position, kind, checked, include, exclude)

    return read


_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]*")
_FOLDER = re.compile(r"[^\\\x00-\x1f\x7f]+")


def _repository(position: str, url: str, rest: list[str]) -> RepositoryLine:
    if url and not url.startswith(PAGES):
        raise ValueError("repositories are fetched over http and https only")
    scheme, _, tail = url.partition("://")
    host, slash, path = tail.partition("/")
    path, at, branch = path.partition("@")
    checked = _require_page_url(f"{scheme}://{host}{slash}{path}" if url else url)
    if urlsplit(checked).query or urlsplit(checked).fragment or not path.strip("/"):
        raise ValueError("it is no address of a repository, such as https://github.com/example/project")
    if at and (not _BRANCH.fullmatch(branch) or ".." in branch or "//" in branch or branch.endswith(("/", ".lock"))):
        raise ValueError("what follows the @ is no name of a branch or tag")
    if len(rest) > 1:
        raise ValueError("after the address of a repository one folder may follow, and nothing else")
    folder = "".join(rest).strip("/")
    if folder and (not _FOLDER.fullmatch(folder) or any(step in {"", ".", ".."} for step in folder.split("/"))):
        raise ValueError("what follows the address is no folder of a repository, such as docs/guides")
    return RepositoryLine(position, checked.rstrip("/"), branch, folder)


@dataclass(frozen=True, slots=True)
class LineForm:
    """A form of lines of the links file.

    Attributes:
        word: the first word of such a line, with its colon.
        read: makes the line from its position, its address and the words that follow. Raises ValueError: it is wrong.
        example: the form of the address.
        noun: the sources that the line brings.
    """

    word: str
    read: Callable[[str, str, list[str]], LinksLine]
    example: str
    noun: str


LINE_FORMS = (
    LineForm("sitemap:", _site("sitemap"), "https://…/sitemap.xml", "a whole site"),
    LineForm("llms:", _site("llms"), "https://…/llms.txt", "what that lists"),
    LineForm(REPOSITORY_FILES, _repository, "https://…", "a repository"),
)
"""All forms of lines that begin with a word. Add a new one here."""
_BY_WORD = {form.word: form for form in LINE_FORMS}
_BEGINS = re.compile(rf"https?://|(?:{'|'.join(map(re.escape, _BY_WORD))})\s*\S", re.IGNORECASE)


def _require_page_url(url: str) -> str:
    """Return `url` if it can be the id of a page. Raises ValueError: why it cannot."""
    reason = url_flaw(url)
    if reason:
        raise ValueError(reason)
    return url


def url_flaw(url: str) -> str:
    """Return why a URL cannot be the id of a page; empty if it can."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return "it is no URL"
    if not url.startswith(PAGES) or not host:
        return "it is no http or https URL, such as https://docs.example.org/faq"
    if parts.username is not None:
        # The password would show in the index, in prompts and under answers.
        return "it holds a user name or password"
    if not url.isprintable() or any(letter.isspace() for letter in url):
        return "it holds blanks or invisible characters"
    return ""


def page_address(page_url: str, raw: str) -> str:
    """Resolve the address `raw` on the page `page_url`, without a fragment; empty if it cannot be the id of a page.
    The pages of a site that is read over https become https too: many such sites list their pages as http.
    """
    try:
        parts = urlsplit(urljoin(page_url, raw.strip()))
        base = urlsplit(page_url)
        same = parts.netloc == base.netloc and base.scheme == "https" and parts.scheme == "http"
    except ValueError:
        return ""
    url = urlunsplit(("https" if same else parts.scheme, parts.netloc, parts.path or "/", parts.query, ""))
    return "" if url_flaw(url) or len(url) > LONGEST_URL else url
