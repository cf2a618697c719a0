"""Where the bot keeps its data, and what it answers from."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from assembly.running import run_async
from assembly.sources import SourceSetup, documents_in, pages, repositories, web_for
from clock import now
from commands.findings import unwritable_because
from commands.setting_up.answers import NONE, Answers, Question, WizardOutput, WrongAnswer
from commands.setting_up.keeping import OperatorFiles, text_of
from services.knowledge import CannotList, Page, WebError, parse_links, site_generator_of
from services.telemetry import number_of
from settings import KnowledgeSettings

_WEB = re.compile(r"https?://\S+$", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://|(?:sitemap|llms|git):\s*\S", re.IGNORECASE)
"""What a line of the list of pages begins with; anything else is a folder."""

WHAT_COUNTS = "documents are text files, such as .md, .mdx, .rst, .txt or .html"


def ask_for_data_folder(answers: Answers, own: OperatorFiles, tell: WizardOutput) -> None:
    tell.head("Data: the bot's own files")
    present = own.settings.app.data_dir

    def checked(text: str) -> Path:
        folder = placed(text)
        trouble = unwritable_because(folder)
        if trouble is not None:
            raise WrongAnswer(f"{folder} {trouble}")
        return folder

    folder = answers.ask(Question("data_dir", "Folder kept by the bot, not your documents"), checked, shown(present))
    if folder != present:
        own.keep({"app.data_dir": kept_as(folder, own.config)})
    tell.good(str(folder) if folder.is_dir() else f"{folder} will be made")


def ask_for_documents(answers: Answers, own: OperatorFiles, tell: WizardOutput) -> None:
    tell.head("Documentation: what the bot answers from")
    kb = own.settings.kb
    chosen: list[Path] = []
    if answers.interactive:
        tell.say("A folder of text files (Markdown, reStructuredText, …), or addresses on the web; one a line.")
        tell.say("  https://…  one page      sitemap: https://…/sitemap.xml  a whole site")
        tell.say("  llms: https://…/llms.txt  what that lists      git: https://…  a repository")
        there = [words for words in (in_folder(kb)[1], in_list(kb)) if words]
        tell.say(f"There is now: {', '.join(there)}." if there else "There is nothing yet.")

    def checked(text: str) -> str | Path:
        if _ADDRESS.match(text):
            tell.good(f"{text}: {reached(kb, text)}")
            return text
        folder = placed(text)
        if chosen and folder not in chosen:
            raise WrongAnswer(f"the folder is {chosen[0]} already, and there is only one: put the others below it")
        count, words = in_folder(kb.model_copy(update={"sources_dir": folder}))
        if not count:
            raise WrongAnswer(words or f"there is no folder {folder}; an address begins with https://")
        chosen.append(folder)
        tell.good(words)
        return folder

    question = Question("documentation", "Folder or address; Enter when that is all")
    own.list_pages([each for each in answers.ask_for_all(question, checked) if isinstance(each, str)])
    if chosen and chosen[0] != kb.sources_dir:
        own.keep({"kb.sources_dir": kept_as(chosen[0], own.config)})
    if chosen and isinstance(kb.source_base_url, str):
        ask_where_it_is_published(answers, own, tell, chosen[0])


def ask_where_it_is_published(answers: Answers, own: OperatorFiles, tell: WizardOutput, folder: Path) -> None:
    """Ask for the web address of the folder, so that answers can link to sections."""
    kb = own.settings.kb
    present = str(kb.source_base_url)

    def checked(text: str) -> str:
        if text in {"", NONE, present}:
            return "" if text == NONE else text
        if not _WEB.match(text):
            raise WrongAnswer(f"{text}: an address begins with https://; Enter where it is not published")
        said = reached(kb, text)
        form = site_generator_of(folder)
        tell.good(f"{text}: {said}" + (f"; links take the form of {form}" if form is not None else ""))
        return text.rstrip("/")

    question = Question("published_at", "Address where this folder is published, for links; Enter: nowhere")
    address = answers.ask(question, checked, present)
    if address != present:
        own.keep({"kb.source_base_url": address})


def placed(text: str) -> Path:
    """A path as it is meant where the command was given."""
    return Path(os.path.normpath(Path.cwd() / Path(text or ".").expanduser()))


def shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def kept_as(path: Path, config: Path) -> str:
    """Write a path for the configuration: relative where it lies beside the file."""
    home = config.absolute().parent
    return path.relative_to(home).as_posix() if path.is_relative_to(home) else str(path)


def in_folder(kb: KnowledgeSettings) -> tuple[int, str]:
    """Count the documents in the folder and describe them; empty where there is no folder."""
    folder = kb.sources_dir
    if not folder.exists():
        return 0, ""
    try:
        count, says = documents_in(kb)
    except CannotList as error:
        return 0, f"{folder}: {error}"
    none = "" if count else f"; {WHAT_COUNTS}"
    return count, f"{folder}: {says}{none}"


def in_list(kb: KnowledgeSettings) -> str:
    """Describe the list of pages; empty where there is none."""
    links = parse_links(text_of(kb.links_file_path).encode())
    count = len(links.pages) + len(links.sites) + len(links.repositories)
    return f"{kb.links_file_path}: {number_of(count, 'address', 'addresses')}" if count else ""


def reached(kb: KnowledgeSettings, line: str) -> str:
    """Try a line of the list of pages and describe what it brings. Raises WrongAnswer: nothing readable."""
    links = parse_links(line.encode())
    trouble = next(iter(links.left_out.values()), None)
    if trouble is None:
        try:
            return run_async(_page(kb, line) if links.pages else _brought(kb, line))
        except WebError as error:
            trouble = str(error)
    raise WrongAnswer(f"{line}: {trouble}")


async def _brought(kb: KnowledgeSettings, line: str) -> str:
    """Count the documents of a site or repository as an update would, in a temporary folder. Raises WebError."""
    with tempfile.TemporaryDirectory(prefix="millrace-init-") as folder:
        alone = {"links_file_path": Path(folder, "links.txt"), "web_fetch_cache_dir": Path(folder, "cache")}
        alone["links_file_path"].write_text(f"{line}\n")
        count = 0
        async with web_for(kb) as web:
            setup = SourceSetup(kb.model_copy(update=alone), web, by_hand=True)
            for kind in (repositories(setup), pages(setup)):
                for trouble in await kind.survey(now()):
                    raise WebError(trouble.message)
                count += len(kind.list_sources({}, now()).due)
    if not count:
        raise WebError("it lists no pages; is this the right address?")
    return number_of(count, "document")


async def _page(kb: KnowledgeSettings, url: str) -> str:
    async with web_for(kb) as webs:
        page = await webs.pages.fetch(url, etag=None, last_modified=None)
    if not isinstance(page, Page):
        return "1 page"
    title = f", “{page.title}”" if page.title else ""
    return f"1 page{title}, {number_of(len(page.text.split()), 'word')}"
