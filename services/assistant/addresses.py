"""The published addresses of sources, so that an answer can link to the section that it is from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urljoin

from model.source_ids import bare_name, document_id, is_topic, owner_of, without_owner
from services.assistant.quoting import section_name
from services.knowledge import hosted_address, web_address
from services.search.text import SiteGenerator, anchor_by

if TYPE_CHECKING:
    from services.conversations import Phrases
    from services.search import StoredPassage

_ENDING = re.compile(r"\.(?:mdx?|markdown|rst|rest|html?|txt)$", re.IGNORECASE)
_FOLDER_PAGE = re.compile(r"(?:^|/)(?:index|readme)$", re.IGNORECASE)
_IN_REPOSITORY = ("/blob/", "/tree/", "/src/", "/raw/")
_LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>(?>(?:[^\[\]\\\n]++|\\.|\[[^\[\]\n]*+\]){0,100}))\]"
    r"\((?P<target>(?>(?:[^()\s]++|\([^()\s]*+\)){0,100}))\)"
)
_ANGLE = re.compile("[<>]")
_REST = (".rst", ".rest")
_HTML = (*_REST, ".html", ".htm")
_FORMS: Mapping[SiteGenerator | None, str] = {
    None: "/",
    SiteGenerator.MKDOCS: "/",
    SiteGenerator.SPHINX: ".html",
    SiteGenerator.VITEPRESS: ".html",
    SiteGenerator.DOCUSAURUS: "",
    SiteGenerator.MDBOOK: ".html",
}
_WEB = ("https://", "http://")
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Turns the ids of sources into addresses.

    Attributes:
        bases: by folder of the sources (empty: all of them), the address below which its files are published. It may
            contain `{path}`, the path of the file, or `{page}`, the path without its ending. A folder may also be one
            of a repository (`git:github.com/example/project//docs`); without a base, its host shows the files.
        generators: by folder, the generator of its site; default: MkDocs for Markdown, Sphinx for reST.
        pair_address: gives the address of the team's message by the id of a pair; None: pairs have no addresses.
        server_addresses: for sources that belong to one server alone; None: these have no addresses.
    """

    bases: Mapping[str, str] = field(default_factory=dict[str, str])
    generators: Mapping[str, SiteGenerator] = field(default_factory=dict[str, SiteGenerator])
    pair_address: Callable[[str], str | None] | None = None
    server_addresses: Addresses | None = None

    def address_of(self, source_id: str, *, permalink: str = "", anchor: str = "") -> str | None:
        """Return the address of a source, or of its section `anchor`; None: it has no address. A section of a topic is
        a pair: its address is that of the team's message.
        """
        if owner_of(source_id) is not None:
            own = self.server_addresses
            return None if own is None else own.address_of(without_owner(source_id), permalink=permalink, anchor=anchor)
        if is_topic(source_id):
            return self.pair_address(anchor) if self.pair_address is not None and anchor else None
        absolute = permalink if permalink.startswith(_WEB) else None
        bare = bare_name(source_id)
        page = self._fetched(bare) or absolute or self._published(bare, permalink) or hosted_address(bare)
        return f"{page.partition('#')[0]}#{quote(anchor, safe='-._~:@!$&*()+,;=/?%')}" if page and anchor else page

    def section_address(self, passage: StoredPassage) -> str | None:
        """Return the address of the section that a passage is from, or of its page; None: it has no address."""
        if self.server_addresses is not None and owner_of(passage.source_id) is not None:
            return self.server_addresses.section_address(passage._replace(source_id=without_owner(passage.source_id)))
        anchor = "" if self._fetched(bare_name(passage.source_id)) else passage.anchor
        generator = self._generator(bare_name(passage.source_id))
        if anchor and passage.headings and generator is not None and not passage.source_id.endswith(_REST):
            anchor = anchor_by(generator, passage.headings[-1], anchor)
        return self.address_of(passage.source_id, permalink=passage.permalink, anchor=anchor)

    def link(self, passage: StoredPassage, name: str) -> str:
        """Return `name` as a link to the section that a passage is from; without an address, `name` itself."""
        address = self.section_address(passage)
        return f"[{name}](<{address}>)" if address else name

    def section_link(self, passage: StoredPassage, say: Phrases) -> str:
        """Return the name of a passage's section, as a link."""
        return self.link(passage, section_name(passage, say))

    def make_absolute(self, text: str, source_id: str, permalink: str = "") -> str:
        """Return `text`, from a source, with its relative links made absolute; one that leads nowhere becomes its
        label.
        """
        if self.server_addresses is not None and owner_of(source_id) is not None:
            return self.server_addresses.make_absolute(text, without_owner(source_id), permalink)
        page = self.address_of(source_id, permalink=permalink)

        def replaced(match: re.Match[str]) -> str:
            target = match["target"]
            if match["image"]:
                return match["text"]
            found = target if _ABSOLUTE.match(target) else self._resolve_link(page, source_id, target)
            if found is None:
                return match["text"]
            # The angle brackets keep Discord from showing a preview of each page.
            quiet = found.startswith(_WEB) and not _ANGLE.search(found)
            return f"[{match['text']}](<{found}>)" if quiet else f"[{match['text']}]({found})"

        return _LINK.sub(replaced, text)

    def _resolve_link(self, page: str | None, source_id: str, target: str) -> str | None:
        """Return the address that a relative link leads to; None: nowhere. `page`: the address of its source."""
        if page is None:
            return None
        path, _, anchor = target.partition("#")
        if not path:
            return f"{page.partition('#')[0]}#{anchor}" if anchor else None
        if self._fetched(bare_name(source_id)) or path.startswith("/") or not _ENDING.search(path):
            return urljoin(page, target)
        repository, inside, own = bare_name(source_id).rpartition("//")
        beside = unquote(urljoin(f"https://x/{quote(own)}", path).removeprefix("https://x/"))
        return self.address_of(document_id(f"{repository}{inside}{beside}"), anchor=anchor)

    def _fetched(self, bare: str) -> str | None:
        """Return the address of a fetched page; None for files. The headings of fetched pages have no anchors."""
        return None if hosted_address(bare) else web_address(bare)

    def _published(self, path: str, permalink: str) -> str | None:
        folder = _folder_of(path, self.bases)
        if folder is None:
            return None
        base = self.bases[folder]
        if permalink and not _ABSOLUTE.match(permalink):
            return urljoin(base.partition("{")[0], permalink)
        rest = path[len(folder) :].lstrip("/") if folder else path
        page = _ENDING.sub("", rest)
        if "{" in base:
            return base.replace("{path}", quote(rest)).replace("{page}", quote(page))
        home = base.rstrip("/")
        generator = self._generator(path)
        if generator is SiteGenerator.REPOSITORY:
            return f"{home}/{quote(rest)}"
        form = _FORMS[generator]
        if rest.lower().endswith(_HTML):
            form = ".html"
        if generator is not SiteGenerator.SPHINX and not rest.lower().endswith(_HTML):
            folder_page = _FOLDER_PAGE.sub("", page)
            page, form = (folder_page, "/" if folder_page else "") if folder_page != page else (page, form)
        return f"{home}/{quote(page)}{form}"

    def _generator(self, path: str) -> SiteGenerator | None:
        """Return the generator of the page of a source; None: unknown."""
        folder = _folder_of(path, self.bases)
        if folder is None:
            return SiteGenerator.REPOSITORY if hosted_address(path) else None
        if any(mark in f"{self.bases[folder]}/" for mark in _IN_REPOSITORY):
            return SiteGenerator.REPOSITORY
        return self.generators.get(folder)


def _folder_of(path: str, folders: Iterable[str]) -> str | None:
    return max((folder for folder in folders if _is_below(path, folder)), key=len, default=None)


def _is_below(path: str, folder: str) -> bool:
    """Return True if a path lies in a folder. In the empty one lie all documents, and no other kind of source."""
    if not folder:
        return not _ABSOLUTE.match(path)
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
