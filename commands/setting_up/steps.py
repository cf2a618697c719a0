"""The questions of `--init` in their order (Discord, team, data folder, documentation, model), what is checked about
each answer, and the first use after the last one.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from assembly import Unusable
from assembly.answering import endpoint_settings
from assembly.running import run_async, terminated_as_interrupted
from assembly.sources import documents_in, source_kinds, web_for
from clock import now
from commands.arguments import FAILED
from commands.ask import ask
from commands.check import Finding, Verdict, token_row, try_model, unwritable_because
from commands.init_kb import init_kb
from commands.setting_up.answers import (
    LATER,
    NONE,
    Answers,
    FileAnswers,
    OperatorFiles,
    Question,
    TerminalAnswers,
    WizardOutput,
    WrongAnswer,
    text_of,
)
from services.discord.live import Identity, Server, identity, invitation, name_of, servers_of
from services.knowledge import LINE_FORMS, CannotList, Page, WebError, begins_line, parse_links, site_generator_of
from services.llm import NOT_THIS_KEY, why_unreachable
from services.storage import FolderBusy
from services.telemetry import number_of
from settings import KnowledgeSettings, LLMSettings, Settings, load

PORTAL = "https://discord.com/developers/applications"
WHERE_IDS_ARE = "Ids: User Settings › Advanced › Developer Mode; then right-click a role or person › Copy ID."
MOST_SHOWN = 40
"""Roles that are listed; the others can be named, too."""
SMALLEST_ID = 10**15
"""No id of Discord is smaller; what is, is a number in a list."""


def ask_for_discord(answers: Answers, own: OperatorFiles, tell: WizardOutput) -> None:
    tell.head("Discord")
    if answers.interactive:
        tell.say(f"{PORTAL} › New Application › Bot › Reset Token; there, switch on Message Content Intent.")
    present = own.settings.discord.token.get_secret_value()
    question = Question("discord_token", "The bot's token (not shown), or `later` to try without Discord", secret=True)
    checked = answers.ask(question, lambda text: _identified(text, own), present or LATER)
    if checked is None:
        without = "no token: the bot cannot start without one, everything else works"
        tell.warn("the token stays as it is, unchecked" if present else without)
        return
    token, bot = checked
    if not answers.interactive and bot.refused is not None:
        answers.ask(question, refusing(bot.refused))
    if token != present:
        own.keep({"discord.token": token})
    if bot.unknown is not None:
        tell.warn(f"not checked: {bot.unknown}")
        return
    tell.good(f"Discord knows the bot as {bot.name} ({bot.user_id})")
    if bot.refused is not None:
        tell.bad(bot.refused)
        again = Question("discord_token", "Enter when it is switched on, or `later`")
        bot = answers.ask(again, lambda text: bot if text == LATER else _allowed(token)) or bot
    if bot.refused is None:
        tell.good("it is shown what people write")
    if bot.application_id:
        tell.say("Invite it, as somebody who may manage the server:")
        tell.say(f"  {invitation(bot.application_id, feedback=own.settings.discord.feedback)}")


def refusing(why: str) -> Callable[[str], None]:
    def refuse(_text: str) -> None:
        raise WrongAnswer(why)

    return refuse


def _identified(text: str, own: OperatorFiles) -> tuple[str, Identity] | None:
    """The token and whose it is; None for later."""
    if text.lower() == LATER:
        return None
    form = token_row(own.tried({"discord.token": text}))
    if form.verdict is not Verdict.OK:
        raise WrongAnswer(f"{'this' if form.says.startswith('is not a ') else 'it'} {form.says}")
    bot = run_async(identity(text))
    if bot.refused is not None and not bot.name:
        raise WrongAnswer(bot.refused)
    return text, bot


def _allowed(token: str) -> Identity:
    bot = run_async(identity(token))
    if bot.refused is not None:
        raise WrongAnswer(bot.refused)
    return bot


def ask_for_team(answers: Answers, own: OperatorFiles, tell: WizardOutput) -> None:
    tell.head("The team: from whose answers the bot learns, and over whom it does not talk")
    discord = own.settings.discord
    token = discord.token.get_secret_value()
    servers = _servers(answers, tell, token) if token else ()
    listed = [(role.id, role.name, server.name) for server in servers for role in server.roles]
    if answers.interactive:
        tell.say(WHERE_IDS_ARE)
        for number, (role_id, name, server) in enumerate(listed[:MOST_SHOWN], 1):
            tell.say(f"{number:>4}  {name} ({role_id}, {server})")
    choice = "numbers, names or ids" if listed else "ids"
    roles = answers.ask(
        Question("team_roles", f"Roles of the team, {choice}, with commas between; or `{NONE}`"),
        lambda text: chosen_roles(text, servers),
        _joined(discord.team_role_ids),
    )
    people = answers.ask(
        Question("team_people", f"Single people of the team, user ids, with commas between; or `{NONE}`"),
        lambda text: _checked_people(text, token),
        _joined(discord.team_member_ids),
    )
    for key, chosen, present in (
        ("discord.team_role_ids", roles, discord.team_role_ids),
        ("discord.team_member_ids", people, discord.team_member_ids),
    ):
        if frozenset(chosen) != present:
            own.keep({key: sorted(chosen)})
    named = {role_id: name for role_id, name, _ in listed}
    if roles or people:
        names = [*(named.get(each, str(each)) for each in roles), *people.values()]
        tell.good(f"{number_of(len(roles), 'role')}, {number_of(len(people), 'person', 'people')}: {', '.join(names)}")
    else:
        tell.warn("nobody is in the team, so nothing is learned")


def _servers(answers: Answers, tell: WizardOutput, token: str) -> Sequence[Server]:
    """Give the servers that the bot is in; a person at the terminal may invite it first."""
    found = run_async(servers_of(token))
    while not found and answers.interactive:
        tell.warn("the bot is in no server yet: open the address above")
        question = Question("team_roles", "Enter to look again, or `later` to give ids without a list")
        if answers.ask(question, str.lower) == LATER:
            break
        found = run_async(servers_of(token))
    if isinstance(found, Identity):
        tell.warn(f"its servers are not known: {found.refused or found.unknown}")
        return ()
    return found


def chosen_roles(text: str, servers: Sequence[Server]) -> list[int]:
    """The ids of the roles that `text` names: numbers of the list, names, or ids. Raises WrongAnswer."""
    listed = [role for server in servers for role in server.roles]
    ids: list[int] = []
    for word in _words(text):
        if word.isascii() and word.isdigit() and int(word[:21]) <= len(listed):
            ids.append(listed[int(word) - 1].id if int(word) else 0)
            continue
        named = [role.id for role in listed if role.name.casefold() == word.removeprefix("@").casefold()]
        if len(named) > 1:
            raise WrongAnswer(f"several roles are called {word}: give the number or the id")
        if not named and not servers and not word[:1].isdigit():
            raise WrongAnswer(
                f"{word[:40]} is a name: names of roles need a token that works, and the bot in a server; give the id"
            )
        ids.append(named[0] if named else _id(word, "role"))
    for each in ids:
        if any(each == server.id for server in servers):
            raise WrongAnswer(f"{each} is @everyone: then everybody would be the team")
        if servers and each not in {role.id for role in listed}:
            raise WrongAnswer(f"no server that the bot is in has a role {each}, or it belongs to a bot")
    return list(dict.fromkeys(ids))


def _checked_people(text: str, token: str) -> dict[int, str]:
    """Ids with names, as far as those are known. Raises WrongAnswer."""
    found: dict[int, str] = {}
    for word in _words(text):
        user_id = _id(word, "user")
        name = run_async(name_of(token, user_id)) if token else str(user_id)
        if name is None:
            raise WrongAnswer(f"Discord knows no user {user_id}: copy the id with Developer Mode (user › Copy User ID)")
        found[user_id] = str(user_id) if isinstance(name, Identity) else name
    return found


def _words(text: str) -> list[str]:
    return [] if text.lower() == NONE else [word.strip() for word in text.split(",") if word.strip()]


def _id(word: str, of: str) -> int:
    if not (word.isascii() and word.isdigit() and SMALLEST_ID <= int(word[:21]) < 1 << 64):
        raise WrongAnswer(f"{word[:40]} is not the id of a {of}, such as 1458745245675032710")
    return int(word)


def _joined(ids: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(ids))) or NONE


_WEB = re.compile(r"https?://\S+$", re.IGNORECASE)

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

    folder = answers.ask(
        Question("data_dir", "Folder kept by the bot, not your documents"), checked, shown_path(present)
    )
    if folder != present:
        own.keep({"app.data_dir": kept_as(folder, own.config)})
    tell.good(str(folder) if folder.is_dir() else f"{folder} will be made")


def ask_for_documents(answers: Answers, own: OperatorFiles, tell: WizardOutput) -> None:
    tell.head("Documentation: what the bot answers from")
    kb = own.settings.kb
    chosen: list[Path] = []
    if answers.interactive:
        tell.say("A folder of text files (Markdown, reStructuredText, …), or addresses on the web; one a line.")
        forms = ["https://…  one page", *(f"{form.word} {form.example}  {form.noun}" for form in LINE_FORMS)]
        for at in range(0, len(forms), 2):
            tell.say(f"  {'      '.join(forms[at : at + 2])}")
        there = [words for words in (in_folder(kb)[1], in_list(kb)) if words]
        tell.say(f"There is now: {', '.join(there)}." if there else "There is nothing yet.")

    def checked(text: str) -> str | Path:
        if begins_line(text):  # anything else is a folder
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


def shown_path(path: Path) -> str:
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
    count = len(links.pages) + len(links.lines)
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
    """Count the documents that a line brings as an update would, in a temporary folder. Raises WebError."""
    with tempfile.TemporaryDirectory(prefix="millrace-init-") as folder:
        names = {"sources_dir": "sources", "links_file_path": "links.txt", "web_fetch_cache_dir": "cache"}
        alone = {key: Path(folder, name) for key, name in names.items()}
        alone["sources_dir"].mkdir()
        alone["links_file_path"].write_text(f"{line}\n")
        count = 0
        async with web_for(kb) as web:
            for kind in source_kinds(kb.model_copy(update=alone), web, by_hand=True):
                for trouble in await kind.survey(now()):
                    raise WebError(trouble.message)
                count += len(kind.list_sources({}, now()).due)
    if not count:
        raise WebError("it brings no documents; is this the right address?")
    return number_of(count, "document")


async def _page(kb: KnowledgeSettings, url: str) -> str:
    async with web_for(kb) as webs:
        page = await webs.pages.fetch(url, etag=None, last_modified=None)
    if not isinstance(page, Page):
        return "1 page"
    title = f", “{page.title}”" if page.title else ""
    return f"1 page{title}, {number_of(len(page.text.split()), 'word')}"


BACK = "back"
LLM = "ai_response.llm"
METHODS = ("function_calling", "json_schema")


def ask_for_model(answers: Answers, own: OperatorFiles, tell: WizardOutput) -> None:
    tell.head("Language model: without one, answers are quotes from the documentation")
    present = own.settings.ai_response.llm
    begun = own.partial_model
    offered = begun.get("base_url", "") if begun else NONE if present is None else present.base_url
    if begun:
        tell.warn(f"{LLM} lacks something still; there is {', '.join(begun)}")
    while True:
        base_url = answers.ask(
            Question("model_base_url", f"Address of an OpenAI-compatible endpoint (usually ends in /v1), or `{NONE}`"),
            lambda text: _checked_address(own, text, present) if text or answers.interactive else "",
            offered,
        )
        if base_url is None:
            if present is not None or begun:
                own.keep({LLM: None})
            tell.good("no model is asked")
            return
        if not base_url:
            tell.warn(f"it stays so, and other commands refuse it; with model_base_url `{NONE}` it is taken away")
            return
        offered = base_url
        key = answers.ask(
            Question("model_api_key", f"Its key (not shown), or `{NONE}`", secret=True),
            lambda text, url=base_url: _checked_key(own, url, text),
            _saved_key(base_url, present, begun),
        )
        found = answers.ask(
            Question("model_name", "Name of the model" + (f", or `{BACK}`" if answers.interactive else "")),
            lambda text, url=base_url, key=key: None if text == BACK else _answering(own, url, key, text),
            present.model if present else begun.get("model", ""),
        )
        if found is not None:
            break
    llm, says = found
    new = {
        "base_url": llm.base_url,
        "api_key": key,
        "model": llm.model,
        "structured_output_method": llm.structured_output_method,
    }
    old = begun if present is None else present.model_dump() | {"api_key": present.api_key.get_secret_value()}
    default = {"structured_output_method": METHODS[0]} if present is None else {}
    own.keep({f"{LLM}.{name}": value for name, value in new.items() if (old | default).get(name) != value})
    (tell.good if says.verdict is Verdict.OK else tell.warn)(says.says)


def _saved_key(base_url: str, present: LLMSettings | None, begun: Mapping[str, str]) -> str:
    """The key that is there for this address. A key belongs to one address, and is shown to no other."""
    if present is not None:
        return present.api_key.get_secret_value() if base_url == present.base_url else NONE
    mine = begun.get("base_url", base_url).rstrip("/") == base_url.rstrip("/")
    return begun.get("api_key", NONE) if mine else NONE


def _tried(own: OperatorFiles, base_url: str, key: str, model: str, method: str | None = None) -> LLMSettings:
    values = {"base_url": base_url, "api_key": key, "model": model}
    if method is not None:
        values["structured_output_method"] = method
    llm = own.tried({f"{LLM}.{name}": value for name, value in values.items()}).ai_response.llm
    if llm is None:
        raise WrongAnswer("the environment says that there is no model (APP__AI_RESPONSE__LLM)")
    return llm


def _checked_address(own: OperatorFiles, text: str, present: LLMSettings | None) -> str | None:
    if text.lower() == NONE:
        return None
    key = NONE if present is None else present.api_key.get_secret_value()
    # A key belongs to one address, and is shown to no other.
    llm = _tried(own, text, NONE, "model")
    if present is not None and llm.base_url == present.base_url:
        llm = _tried(own, text, key, "model")
    trouble = run_async(why_unreachable(endpoint_settings(llm)))
    if trouble is not None and NOT_THIS_KEY not in trouble:
        raise WrongAnswer(trouble.removeprefix("LLM model at "))
    return llm.base_url


def _checked_key(own: OperatorFiles, base_url: str, text: str) -> str:
    llm = _tried(own, base_url, text or NONE, "model")
    trouble = run_async(why_unreachable(endpoint_settings(llm)))
    if trouble is not None:
        raise WrongAnswer(trouble.removeprefix("LLM model at "))
    return llm.api_key.get_secret_value()


def _answering(own: OperatorFiles, base_url: str, key: str, name: str) -> tuple[LLMSettings, Finding]:
    """Ask it one question, as a function call and else by a schema: servers differ in what they know."""
    if not name:
        raise WrongAnswer("a name is needed, as the endpoint lists it")
    first: Finding | None = None
    configured = _tried(own, base_url, key, name).structured_output_method
    for method in dict.fromkeys((configured, *METHODS)):
        llm = _tried(own, base_url, key, name, method)
        finding = run_async(try_model(own.settings, LLM, llm))
        if finding.verdict is not Verdict.MISSING:
            return llm, finding
        first = first or finding
    raise WrongAnswer("" if first is None else first.says)


STEPS = (
    ("Discord", ask_for_discord),
    ("the team", ask_for_team),
    ("the data folder", ask_for_data_folder),
    ("the documentation", ask_for_documents),
    ("the model", ask_for_model),
)


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--init`. Gives the exit code."""
    _ = settings  # read anew, file by file
    return set_up(options.config, None if options.init is True else options.init)


def set_up(config: Path, file: Path | None) -> int:
    """Ask, check and write. `file`: of answers, in place of somebody at the terminal. Gives the exit code.

    Raises:
        Unusable: there is no terminal, or an answer in `file` is wrong; nothing was written then.
        SettingsError: the configuration as it is cannot be read.
        KeyboardInterrupt: somebody has stopped; it has been said what is kept.
        OSError: a file cannot be written.
    """
    tell = WizardOutput(Console())
    if file is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Unusable("--init asks questions and there is no terminal: answer them in a file, with --init FILE")
    answers = TerminalAnswers(tell) if file is None else FileAnswers(file)
    own = OperatorFiles(config)
    with terminated_as_interrupted():
        _ask_everything(answers, own, tell)
        make_folder(load(config, setting_up=True).kb.sources_dir)
        tell.head("Done" if own.written else "Done: nothing has changed")
        for path in own.written:
            tell.good(f"{path} is written")
        code = _first_use(answers, config, tell)
    command = f"{shown_path(Path(sys.executable))} app.py" + (
        "" if config == Path("config.yaml") else f" --config {config}"
    )
    tell.head("Next")
    tell.say(f"{command} --check     whether everything is in place")
    tell.say(f"{command} --dry-run   reads in Discord, posts nothing")
    tell.say(f"{command}             runs the bot; restart it where it runs already")
    return code


def _ask_everything(answers: Answers, own: OperatorFiles, tell: WizardOutput) -> None:
    done: list[str] = []
    try:
        for name, step in STEPS:
            step(answers, own, tell)
            done.append(name)
            # A file is taken as a whole or not at all.
            if answers.interactive or name == STEPS[-1][0]:
                for variable in own.write():
                    tell.warn(f"the environment variable {variable} wins over what was written: unset it")
    except KeyboardInterrupt:
        tell.console.print()
        tell.warn(stopped(done if answers.interactive else [], own.written))
        raise


def stopped(done: Sequence[str], written: Sequence[Path]) -> str:
    if not written:
        return "nothing was written; everything is as it was"
    return f"kept: {', '.join(done)} (in {', '.join(map(str, written))}); the rest is as it was, and --init goes on"


def make_folder(folder: Path) -> None:
    """Documents are looked for there, also where there are only pages."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _first_use(answers: Answers, config: Path, tell: WizardOutput) -> int:
    """Build the index and answer a question, where that is wanted. Gives the exit code."""
    code = 0
    if answers.agrees(Question("build_index", "Build the index now?"), default=True):
        try:
            code = init_kb(load(config, setting_up=True))
        except (Unusable, FolderBusy) as error:
            tell.bad(str(error))
            code = FAILED
    question = answers.ask(Question("first_question", "A first question to the bot; Enter for none"), str)
    if question:
        code = max(code, ask(load(config, setting_up=True), question))
    return code
