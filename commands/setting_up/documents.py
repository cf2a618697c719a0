"""The question of `--init` for the documentation: folders, addresses of pages, and lines that bring many pages."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assembly.running import run_async
from assembly.sources import documents_in, source_kinds, web_for
from clock import now
from commands.setting_up.answers import NONE, Answers, OperatorFiles, Question, WizardOutput, WrongAnswer, read_text
from services.knowledge import (
    LINE_FORMS,
    CannotList,
    LineResult,
    Page,
    WebError,
    begins_line,
    parse_links,
    site_generator_of,
)
from services.telemetry import number_of
from settings import KnowledgeSettings

_WEB = re.compile(r"https?://\S+$", re.IGNORECASE)

WHAT_COUNTS = "documents are text files, such as .md, .mdx, .rst, .txt or .html"


@dataclass(frozen=True, slots=True)
class DocumentationCheck:
    """Checks answers about the documentation. `folders`: those that were taken so far."""

    answers: Answers
    own: OperatorFiles
    output: WizardOutput
    folders: list[Path] = field(default_factory=list[Path])

    def check(self, text: str) -> list[str]:
        """Check an answer with any number of folders and addresses. Returns lines for the list of pages; a wrong one of
        several is told, and the others count. Raises WrongAnswer.
        """
        if text.lower() == NONE:
            return []
        given, lines = split_documentation(text), list[str]()
        for each in given:
            try:
                lines += self._check_one(each)
            except WrongAnswer as error:
                if not self.answers.interactive or len(given) == 1:
                    raise
                self.output.bad(str(error))
        return lines

    def _check_one(self, text: str) -> list[str]:
        kb, folder = self.own.settings.kb, resolve_path(text)
        if begins_line(text):
            self.output.good(f"{text}: {try_line(kb, text)}")
            return [text]
        if not folder.exists() and (address := site_address(text)):
            return [self._find_site(kb, address)]
        if "://" in text:
            raise WrongAnswer(f"{text}: an address begins with https:// or http://")
        count, words = describe_folders(kb.model_copy(update=folder_settings([folder])))
        if not count:
            raise WrongAnswer(words or f"there is no folder {folder}; an address begins with https://")
        if folder not in self.folders:
            self.own.try_values(changes_of(kb, [*self.folders, folder], self.own.config))
            self.folders.append(folder)
        self.output.good(words)
        return []

    def _find_site(self, kb: KnowledgeSettings, address: str) -> str:
        """Return the line of a site's list of pages, or else of its page. Raises WrongAnswer: there is nothing."""
        *lists, page = f"sitemap: {address}/sitemap.xml", f"llms: {address}/llms.txt", address
        for line in lists:
            with contextlib.suppress(WrongAnswer):
                self.output.good(f"{line}: {try_line(kb, line)}")
                return line
        self.output.good(f"{page}: {try_line(kb, page)}")
        return page


def ask_for_documents(answers: Answers, own: OperatorFiles, output: WizardOutput) -> None:
    output.head("Documentation: what the bot answers from")
    kb = own.settings.kb
    if answers.interactive:
        output.say(
            "Folders of text files (Markdown, reStructuredText, …), or addresses on the web; several at once, too."
        )
        forms = [(f"{form.word} {form.example}", form.noun) for form in LINE_FORMS]
        for words in (("docs.example.org", "a whole site"), ("https://…", "one page"), *forms):
            output.say(f"  {'  '.join(words)}")
        there = [words for words in (describe_folders(kb)[1], describe_links(kb)) if words]
        output.say(f"There is now: {', '.join(there)}." if there else "There is nothing yet.")
    check = DocumentationCheck(answers, own, output)
    question = Question("documentation", "Folders or addresses; Enter when that is all")
    own.add_to_links([line for lines in answers.ask_for_all(question, check.check) for line in lines])
    folders = check.folders
    if not folders:
        return
    own.keep(changes_of(kb, folders, own.config))
    if len(folders) > 1:
        output.say("Where each folder is published, for links, is set in kb.source_base_url: config.yaml")
    elif isinstance(kb.source_base_url, str):
        ask_where_it_is_published(answers, own, output, folders[0])


def split_documentation(text: str) -> list[str]:
    """Split an answer into folders, addresses and lines of the list of pages, with commas or blanks between them. What
    follows the address of a line (globs, a folder) belongs to it, and a folder may have blanks in its name.
    """
    found: list[str] = []
    for piece in re.split(r"[,;](?:\s+|$)", text):
        words = piece.split()
        while words:
            if begins_line(" ".join(words)):
                # A bare word, such as `sitemap:`, is followed by its address; the address of a page by nothing.
                least = 2 if words[0].endswith(":") else 1
                more = (at for at in range(least, len(words)) if begins_line(" ".join(words[at:])))
                end = 1 if words[0].lower().startswith("http") else next(more, len(words))
            else:
                folders = (at for at in range(len(words), 0, -1) if resolve_path(" ".join(words[:at])).is_dir())
                several = any(resolve_path(word).is_dir() or site_address(word) for word in words)
                end = next(folders, 1 if several else len(words))
            found.append(" ".join(words[:end]))
            words = words[end:]
    return found


_HOST = re.compile(r"([a-z0-9-][a-z0-9.-]*\.[a-z]{2,}|localhost|\d+(?:\.\d+){3})(:\d+)?(/\S*)?", re.IGNORECASE)
_FILE = re.compile(r"\.(?:md|mdx|rst|txt|html?|ya?ml|json|pdf)", re.IGNORECASE)


def site_address(text: str) -> str:
    """Return the address of a site that was given without `https://`; empty if the text is none."""
    found = _HOST.fullmatch(text)
    if found is None or ".." in found[1] or (found[3] is None and _FILE.search(found[1][-5:])):
        return ""
    own = found[1].lower() == "localhost" or found[1][-1].isdigit()
    return f"http{'' if own else 's'}://{text}".rstrip("/")


def folder_settings(folders: Sequence[Path]) -> dict[str, Any]:
    """Return the keys of `kb` for these folders of documents. Raises WrongAnswer: no folder is above all of them."""
    above = Path(os.path.commonpath(folders))
    if above in folders:
        return {"sources_dir": above, "source_folders": ()}
    if above == Path(above.anchor):
        raise WrongAnswer(f"{' and '.join(map(str, folders))} lie below no folder together: move one of them")
    return {"sources_dir": above, "source_folders": tuple(each.relative_to(above).as_posix() for each in folders)}


def changes_of(kb: KnowledgeSettings, folders: Sequence[Path], config: Path) -> dict[str, object]:
    """Return the keys of the configuration that change if the documents lie in these folders. Raises WrongAnswer."""
    new = folder_settings(folders)
    written = {
        "sources_dir": path_for_config(new["sources_dir"], config),
        "source_folders": list(new["source_folders"]),
    }
    return {f"kb.{name}": value for name, value in written.items() if getattr(kb, name) != new[name]}


def ask_where_it_is_published(answers: Answers, own: OperatorFiles, output: WizardOutput, folder: Path) -> None:
    """Ask for the web address of the folder, so that answers can link to sections."""
    kb = own.settings.kb
    present = str(kb.source_base_url)

    def check(text: str) -> str:
        if text in {"", NONE, present}:
            return "" if text == NONE else text
        text = site_address(text) or text
        if not _WEB.match(text):
            raise WrongAnswer(f"{text}: an address begins with https://; Enter where it is not published")
        said = try_line(kb, text)
        form = site_generator_of(folder)
        output.good(f"{text}: {said}" + (f"; links take the form of {form}" if form is not None else ""))
        return text.rstrip("/")

    question = Question("published_at", "Address where this folder is published, for links; Enter: nowhere")
    address = answers.ask(question, check, present)
    if address != present:
        own.keep({"kb.source_base_url": address})


def resolve_path(text: str) -> Path:
    """Resolve a path against the current folder."""
    return Path(os.path.normpath(Path.cwd() / Path(text or ".").expanduser()))


def shown_path(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def path_for_config(path: Path, config: Path) -> str:
    """Return a path as text for the configuration: relative to its folder, if the path lies below it."""
    folder = config.absolute().parent
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


def describe_folders(kb: KnowledgeSettings) -> tuple[int, str]:
    """Count and describe the documents in the folders; 0 and an empty text if they do not exist."""
    if not kb.sources_dir.exists():
        return 0, ""
    named = ", ".join(map(str, kb.document_folders))
    try:
        count, says = documents_in(kb)
    except CannotList as error:
        return 0, f"{named}: {error}"
    return count, f"{named}: {says}" + ("" if count else f"; {WHAT_COUNTS}")


def describe_links(kb: KnowledgeSettings) -> str:
    """Describe the list of pages; an empty text if it has no addresses."""
    links = parse_links(read_text(kb.links_file_path).encode())
    count = len(links.pages) + len(links.lines)
    return f"{kb.links_file_path}: {number_of(count, 'address', 'addresses')}" if count else ""


def try_line(kb: KnowledgeSettings, line: str) -> str:
    """Try a line of the list of pages and describe its documents. Raises WrongAnswer: it brings none."""
    links = parse_links(line.encode())
    trouble = next(iter(links.left_out.values()), None)
    if trouble is None:
        try:
            return run_async(_try_page(kb, line) if links.pages else _try_source_line(kb, line))
        except WebError as error:
            trouble = str(error)
    raise WrongAnswer(f"{line}: {trouble}")


async def _try_source_line(kb: KnowledgeSettings, line: str) -> str:
    """Count the documents of a line as an update would, in a temporary folder. Raises WebError."""
    with tempfile.TemporaryDirectory(prefix="millrace-init-") as folder:
        names = {"sources_dir": "sources", "links_file_path": "links.txt", "web_fetch_cache_dir": "cache"}
        alone = {key: Path(folder, name) for key, name in names.items()}
        alone["sources_dir"].mkdir()
        alone["links_file_path"].write_text(f"{line}\n")
        count, results = 0, list[LineResult | None]()
        async with web_for(kb) as web:
            for kind in source_kinds(kb.model_copy(update=alone), web, by_hand=True):
                for trouble in await kind.refresh(now()):
                    raise WebError(_trouble_with_line(trouble.message))
                count += len(kind.list_sources({}, now()).due)
                results += [kind.line_result(each) for each in parse_links(line.encode()).lines]
    if not count:
        raise WebError("it brings no documents; is this the right address?")
    notes = (f"; left out: {each.note}" for each in results if each is not None and each.note)
    return number_of(count, "document") + "".join(notes)


def _trouble_with_line(message: str) -> str:
    """Take out what an update says about the list of pages and about earlier pages: there are none yet."""
    reason = re.sub(r"^links\.txt, line \d+(?:: |, )|; its [a-z ]+ stay as they are$", "", message)
    gone = re.fullmatch(r"the server answered (HTTP (?:404|410))", reason)
    return reason if gone is None else f"there is nothing at that address ({gone[1]})"


async def _try_page(kb: KnowledgeSettings, url: str) -> str:
    async with web_for(kb) as webs:
        page = await webs.pages.fetch(url, etag=None, last_modified=None)
    if not isinstance(page, Page):
        return "1 page"
    title = f", “{page.title}”" if page.title else ""
    return f"1 page{title}, {number_of(len(page.text.split()), 'word')}"
