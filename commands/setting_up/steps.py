"""The questions of `--init` in their order (Discord, team, data folder, documentation, model), the checks of their
answers, and the first use afterwards.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rich.console import Console

from assembly import Unusable
from assembly.answering import endpoint_settings
from assembly.running import run_async, terminated_as_interrupted
from commands.arguments import FAILED
from commands.ask import ask
from commands.check import Finding, Verdict, token_row, try_model, why_unwritable
from commands.init_kb import init_kb
from commands.setting_up.answers import (
    LATER,
    NONE,
    WORDS,
    Answers,
    FileAnswers,
    OperatorFiles,
    Question,
    TerminalAnswers,
    WizardOutput,
    WrongAnswer,
)
from commands.setting_up.documents import ask_for_documents, path_for_config, resolve_path, shown_path, site_address
from model.messages import is_snowflake
from services.discord.live import Identity, Server, identity, invitation, name_of, servers_of
from services.llm import NOT_THIS_KEY, why_unreachable
from services.storage import FolderBusy
from services.telemetry import number_of
from settings import LLMSettings, Settings, load

PORTAL = "https://discord.com/developers/applications"
WHERE_IDS_ARE = "Ids: User Settings › Advanced › Developer Mode; then right-click a role or person › Copy ID."
LLM = "ai_response.llm"
MAX_SHOWN = 40
"""The most roles that are listed; the others can be chosen as well."""
MIN_ID = 10**15
"""No id of Discord is smaller: a smaller number is that of a line in a list."""


def ask_for_discord(answers: Answers, own: OperatorFiles, output: WizardOutput) -> None:
    output.head("Discord")
    if answers.interactive:
        output.say(f"{PORTAL} › New Application › Bot › Reset Token; there, switch on Message Content Intent.")
    present = own.settings.discord.token.get_secret_value()
    question = Question("discord_token", "The bot's token (not shown), or `later` to try without Discord", secret=True)
    checked = answers.ask(question, lambda text: _check_token(text, own), present or LATER)
    if checked is None:
        without = "no token: the bot cannot start without one, everything else works"
        output.warn("the token stays as it is, unchecked" if present else without)
        return
    token, bot = checked
    if not answers.interactive and bot.refused is not None:
        answers.ask(question, refusing(bot.refused))
    if token != present:
        own.keep({"discord.token": token})
    if bot.unknown is not None:
        output.warn(f"not checked: {bot.unknown}")
        return
    output.good(f"Discord knows the bot as {bot.name} ({bot.user_id})")
    if bot.refused is not None:
        output.bad(bot.refused)
        again = Question("discord_token", "Enter when it is switched on, or `later`")
        bot = answers.ask(again, lambda text: bot if text == LATER else _check_intent(token)) or bot
    if bot.refused is None:
        output.good("it is shown what people write")
    if bot.application_id:
        output.say("Invite it, as somebody who may manage the server:")
        output.say(f"  {invitation(bot.application_id, feedback=own.settings.discord.feedback)}")


def refusing(why: str) -> Callable[[str], None]:
    def refuse(_text: str) -> None:
        raise WrongAnswer(why)

    return refuse


_ASKED = {
    " (discord.token)": "",
    " and set it as APP__DISCORD__TOKEN in .env": " and give the new one",
    ": copy the bot's token from Discord's developer portal into .env as APP__DISCORD__TOKEN=…": (
        f"; copy it anew ({PORTAL}, Bot › Reset Token)"
    ),
    f"{LLM}.base_url must be a URL that begins with": "an address begins with",
    ", step check: ": ": ",
    "LLM: no usable CheckResult": "no usable answer",
    "try another structured_output_method or model": "try another model",
    "check model and structured_output_method": "try another model",
    "check api_key and model": "give another key, or another model",
    "check base_url and model": "check the address and the name",
    "check base_url": "check the address",
    "set base_url to the right one": "give that one",
    "check api_key": "give another",
}
"""Phrases of errors for an operator who edits files, each with its form for one who is being asked."""


def refuse_answer(trouble: str) -> WrongAnswer:
    """Make the error about an answer from a trouble with the setting that it is for."""
    for there, here in _ASKED.items():
        trouble = trouble.replace(there, here)
    return WrongAnswer(trouble)


def _check_token(text: str, own: OperatorFiles) -> tuple[str, Identity] | None:
    """Return the token and its bot; None: later."""
    if text.lower() == LATER:
        return None
    form = token_row(own.try_values({"discord.token": text}))
    if form.verdict is not Verdict.OK:
        raise refuse_answer(f"{'this' if form.says.startswith('is not a ') else 'it'} {form.says}")
    bot = run_async(identity(text))
    if bot.refused is not None and not bot.name:
        raise refuse_answer(bot.refused)
    return text, bot


def _check_intent(token: str) -> Identity:
    bot = run_async(identity(token))
    if bot.refused is not None:
        raise WrongAnswer(bot.refused)
    return bot


def ask_for_team(answers: Answers, own: OperatorFiles, output: WizardOutput) -> None:
    output.head("The team: from whose answers the bot learns, and over whom it does not talk")
    discord = own.settings.discord
    token = discord.token.get_secret_value()
    servers = _servers(answers, output, token) if token else ()
    listed = [(role.id, role.name, server.name) for server in servers for role in server.roles]
    if answers.interactive:
        output.say(WHERE_IDS_ARE)
        for number, (role_id, name, server) in enumerate(listed[:MAX_SHOWN], 1):
            output.say(f"{number:>4}  {name} ({role_id}, {server})")
    choice = "numbers, names or ids" if listed else "ids"
    roles = answers.ask(
        Question("team_roles", f"Roles of the team, {choice}, with commas between; or `{NONE}`"),
        lambda text: chosen_roles(text, servers),
        _join_ids(discord.team_role_ids),
    )
    people = answers.ask(
        Question("team_people", f"Single people of the team, user ids, with commas between; or `{NONE}`"),
        lambda text: _check_people(text, token),
        _join_ids(discord.team_member_ids),
    )
    for key, chosen, present in (
        ("discord.team_role_ids", roles, discord.team_role_ids),
        ("discord.team_member_ids", people, discord.team_member_ids),
    ):
        if frozenset(chosen) != present:
            own.keep({key: sorted(chosen)})
    named = {role_id: name for role_id, name, _ in listed}
    if roles or people:
        names = ", ".join([*(named.get(each, str(each)) for each in roles), *people.values()])
        output.good(f"{number_of(len(roles), 'role')}, {number_of(len(people), 'person', 'people')}: {names}")
    else:
        output.warn("nobody is in the team, so nothing is learned")


def _servers(answers: Answers, output: WizardOutput, token: str) -> Sequence[Server]:
    """Return the servers of the bot; a person at the terminal may invite it first."""
    found = run_async(servers_of(token))
    while not found and answers.interactive:
        output.warn("the bot is in no server yet: open the address above")
        question = Question("team_roles", "Enter to look again, or `later` to give ids without a list")
        if answers.ask(question, str.lower) == LATER:
            break
        found = run_async(servers_of(token))
    if isinstance(found, Identity):
        output.warn(f"its servers are not known: {found.refused or found.unknown}")
        return ()
    return found


def chosen_roles(text: str, servers: Sequence[Server]) -> list[int]:
    """Return the ids of the roles in `text`, which has numbers of the list, names, or ids. Raises WrongAnswer."""
    listed = [role for server in servers for role in server.roles]
    ids: list[int] = []
    for word in _words(text):
        if word.isascii() and word.isdigit() and 0 < int(word[:21]) <= len(listed):
            ids.append(listed[int(word) - 1].id)
            continue
        named = [role.id for role in listed if role.name.casefold() == word.removeprefix("@").casefold()]
        if len(named) > 1:
            raise WrongAnswer(f"several roles are called {word}: give the number or the id")
        if not named and not servers and not word[:1].isdigit():
            raise WrongAnswer(
                f"{word[:40]} is a name: names of roles need a token that works, and the bot in a server; give the id"
            )
        if not named and (close := _role_like(word, [role.name for role in listed])):
            raise WrongAnswer(f"there is no role {word[:40]}; did you mean {close}?")
        ids.append(named[0] if named else _id(word, "role"))
    for each in ids:
        if any(each == server.id for server in servers):
            raise WrongAnswer(f"{each} is @everyone: then everybody would be the team")
        if servers and each not in {role.id for role in listed}:
            raise WrongAnswer(f"no server that the bot is in has a role {each}, or it belongs to a bot")
    return list(dict.fromkeys(ids))


def _role_like(word: str, names: Sequence[str]) -> str | None:
    """Return the name that a mistyped one is closest to; None: none is close."""
    by_folded = {name.casefold(): name for name in names}
    close = get_close_matches(word.removeprefix("@").casefold()[:100], by_folded, n=1)
    return by_folded[close[0]] if close else None


def _check_people(text: str, token: str) -> dict[int, str]:
    """Return the ids with names, as far as these are known. Raises WrongAnswer."""
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
    if not is_snowflake(word) or int(word) < MIN_ID:
        raise WrongAnswer(f"{word[:40]} is not the id of a {of}, such as 1458745245675032710")
    return int(word)


def _join_ids(ids: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(ids))) or NONE


def ask_for_data_folder(answers: Answers, own: OperatorFiles, output: WizardOutput) -> None:
    output.head("Data: the bot's own files")
    present = own.settings.app.data_dir

    def check(text: str) -> Path:
        if text.lower() in WORDS:
            raise WrongAnswer("the bot needs a folder for its own files; for one of that name write its whole path")
        folder = resolve_path(text)
        trouble = why_unwritable(folder)
        if trouble is not None:
            raise WrongAnswer(f"{folder} {trouble}")
        return folder

    folder = answers.ask(Question("data_dir", "Folder kept by the bot, not your documents"), check, shown_path(present))
    if folder != present:
        own.keep({"app.data_dir": path_for_config(folder, own.config)})
    output.good(str(folder) if folder.is_dir() else f"{folder} will be made")


BACK = "back"
METHODS = ("function_calling", "json_schema")


class _KeyRefused(Exception):
    """A model was asked, and the endpoint does not accept the key: a wrong answer to the question before."""


def ask_for_model(answers: Answers, own: OperatorFiles, output: WizardOutput) -> None:
    output.head("Language model: without one, answers are quotes from the documentation")
    present = own.settings.ai_response.llm
    others = own.partial_models
    begun = others.pop(LLM, {})
    saved: Mapping[str, Any] = begun
    if present is not None:
        saved = {**present.model_dump(), "api_key": present.api_key.get_secret_value()}
    offered = saved.get("base_url", "" if begun else NONE)
    if begun:
        output.warn(f"{LLM} lacks something still; there is {', '.join(begun)}")
    for key, there in others.items():
        output.warn(f"{key} has {', '.join(there)} and no more: complete or remove it, other commands refuse it")
    while True:
        base_url = answers.ask(
            Question("model_base_url", f"Address of an OpenAI-compatible endpoint (usually ends in /v1), or `{NONE}`"),
            lambda text: _check_address(own, text, present) if text or answers.interactive else "",
            offered,
        )
        if base_url is None:
            if present is not None or begun:
                own.keep({LLM: None})
            output.good("no model is asked")
            return
        if not base_url:
            output.warn(f"it stays so, and other commands refuse it; with model_base_url `{NONE}` it is taken away")
            return
        found = _ask_for_key_and_name(answers, own, output, base_url, saved)
        if found is not None:
            key, llm, finding = found
            _keep_model(own, llm, key, saved)
            (output.good if finding.verdict is Verdict.OK else output.warn)(finding.says)
            return
        offered = base_url


def _keep_model(own: OperatorFiles, llm: LLMSettings, key: str, saved: Mapping[str, Any]) -> None:
    """Keep the values of a model that differ from the saved ones."""
    new = {
        "base_url": llm.base_url,
        "api_key": key,
        "model": llm.model,
        "structured_output_method": llm.structured_output_method,
    }
    old = {"structured_output_method": METHODS[0], **saved}
    own.keep({f"{LLM}.{name}": value for name, value in new.items() if old.get(name) != value})


def _ask_for_key_and_name(
    answers: Answers, own: OperatorFiles, output: WizardOutput, base_url: str, saved: Mapping[str, Any]
) -> tuple[str, LLMSettings, Finding] | None:
    """Return the key, the model, and the finding of a question to it; None: back to the address."""
    key, name = _saved_key(base_url, saved), saved.get("model", "")
    of_key = Question("model_api_key", f"Its key (not shown), or `{NONE}`", secret=True)
    of_name = Question("model_name", "Name of the model" + (f", or `{BACK}`" if answers.interactive else ""))
    while True:
        given = answers.ask(of_key, lambda text: _check_key(own, base_url, text), key)
        try:
            found = answers.ask(
                of_name,
                lambda text, given=given: None if text == BACK else _check_model_name(own, base_url, given, text),
                name,
            )
        except _KeyRefused as refused:
            if not answers.interactive:
                answers.ask(of_key, refusing(str(refused)), key)
            output.bad(str(refused))
        else:
            return None if found is None else (given, *found)


def _saved_key(base_url: str, saved: Mapping[str, Any]) -> str:
    """Return the saved key for this address. A key belongs to one address, and is sent to no other."""
    mine = saved.get("base_url", base_url).rstrip("/") == base_url.rstrip("/")
    return saved.get("api_key", NONE) if mine else NONE


def _model_settings(own: OperatorFiles, base_url: str, key: str, model: str, method: str | None = None) -> LLMSettings:
    values = {"base_url": base_url, "api_key": key, "model": model}
    if method is not None:
        values["structured_output_method"] = method
    llm = own.try_values({f"{LLM}.{name}": value for name, value in values.items()}).ai_response.llm
    if llm is None:
        raise WrongAnswer("the environment says that there is no model (APP__AI_RESPONSE__LLM)")
    return llm


def _check_address(own: OperatorFiles, text: str, present: LLMSettings | None) -> str | None:
    if text.lower() == NONE:
        return None
    key = NONE if present is None else present.api_key.get_secret_value()
    text = site_address(text) or text
    # A key belongs to one address, and is sent to no other.
    try:
        llm = _model_settings(own, text, NONE, "model")
    except WrongAnswer as error:
        raise refuse_answer(str(error)) from None
    if present is not None and llm.base_url == present.base_url:
        llm = _model_settings(own, text, key, "model")
    trouble = run_async(why_unreachable(endpoint_settings(llm)))
    if trouble is not None and NOT_THIS_KEY not in trouble:
        raise refuse_answer(trouble.removeprefix("LLM model at "))
    return llm.base_url


def _check_key(own: OperatorFiles, base_url: str, text: str) -> str:
    llm = _model_settings(own, base_url, text or NONE, "model")
    trouble = run_async(why_unreachable(endpoint_settings(llm)))
    if trouble is not None:
        raise refuse_answer(trouble.removeprefix("LLM model at "))
    return llm.api_key.get_secret_value()


def _check_model_name(own: OperatorFiles, base_url: str, key: str, name: str) -> tuple[LLMSettings, Finding]:
    """Try a model with one question, as a function call or else by a schema: endpoints differ in what they support."""
    if not name:
        raise WrongAnswer("a name is needed, as the endpoint lists it")
    first: Finding | None = None
    configured = _model_settings(own, base_url, key, name).structured_output_method
    for method in dict.fromkeys((configured, *METHODS)):
        llm = _model_settings(own, base_url, key, name, method)
        finding = run_async(try_model(own.settings, LLM, llm))
        if finding.verdict is not Verdict.MISSING:
            return llm, finding
        first = first or finding
    trouble = refuse_answer("" if first is None else first.says.removeprefix("LLM "))
    if first is not None and NOT_THIS_KEY in first.says:
        raise _KeyRefused(str(trouble))
    raise trouble


STEPS = (
    ("Discord", ask_for_discord),
    ("the team", ask_for_team),
    ("the data folder", ask_for_data_folder),
    ("the documentation", ask_for_documents),
    ("the model", ask_for_model),
)


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--init`. Returns the exit code."""
    _ = settings  # read anew, file by file
    return set_up(options.config, None if options.init is True else options.init)


def set_up(config: Path, file: Path | None) -> int:
    """Ask, check and write. `file`: of answers, in place of a person at the terminal. Returns the exit code.

    Raises:
        Unusable: there is no terminal, or an answer in `file` is wrong; nothing was written.
        SettingsError: the present configuration cannot be read.
        KeyboardInterrupt: the person has stopped; a line about what is kept was printed.
        OSError: a file cannot be written.
    """
    output = WizardOutput(Console())
    if file is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Unusable("--init asks questions and there is no terminal: answer them in a file, with --init FILE")
    answers = TerminalAnswers(output) if file is None else FileAnswers(file)
    own = OperatorFiles(config)
    with terminated_as_interrupted():
        _ask_everything(answers, own, output)
        # Updates look into the folder of documents even if there are only pages.
        load(config, setting_up=True).kb.sources_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        output.head("Done" if own.written else "Done: nothing has changed")
        for path in own.written:
            output.good(f"{path} is written")
        code = _first_use(answers, config, output)
    command = f"{shown_path(Path(sys.executable))} app.py" + (
        "" if config == Path("config.yaml") else f" --config {config}"
    )
    output.head("Next")
    output.say(f"{command} --check     whether everything is in place")
    output.say(f"{command} --dry-run   reads in Discord, posts nothing")
    output.say(f"{command}             runs the bot; restart it where it runs already")
    return code


def _ask_everything(answers: Answers, own: OperatorFiles, output: WizardOutput) -> None:
    done: list[str] = []
    try:
        for name, step in STEPS:
            step(answers, own, output)
            done.append(name)
            # A file of answers is used as a whole or not at all.
            if answers.interactive or name == STEPS[-1][0]:
                for variable in own.write():
                    output.warn(f"the environment variable {variable} wins over what was written: unset it")
    except KeyboardInterrupt:
        output.console.print()
        output.warn(describe_stop(done if answers.interactive else [], own.written))
        raise


def describe_stop(done: Sequence[str], written: Sequence[Path]) -> str:
    if not written:
        return "nothing was written; everything is as it was"
    return f"kept: {', '.join(done)} (in {', '.join(map(str, written))}); the rest is as it was, and --init goes on"


def _first_use(answers: Answers, config: Path, output: WizardOutput) -> int:
    """Build the index and answer a question, if the answers say so. Returns the exit code."""
    code = 0
    if answers.ask_yes_no(Question("build_index", "Build the index now?"), default=True):
        try:
            code = init_kb(load(config, setting_up=True))
        except (Unusable, FolderBusy) as error:
            output.bad(str(error))
            code = FAILED
    question = answers.ask(Question("first_question", "A first question to the bot; Enter for none"), str)
    if question:
        code = max(code, ask(load(config, setting_up=True), question))
    return code
