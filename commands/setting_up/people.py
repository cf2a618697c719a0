"""Who the bot is, and who the team."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assembly.running import run_async
from commands.check import token as judged_token
from commands.findings import Verdict
from commands.setting_up.answers import LATER, NONE, Answers, Question, WizardOutput, WrongAnswer
from commands.setting_up.keeping import OperatorFiles
from services.discord.live import Identity, Server, identity, invitation, name_of, servers_of
from services.telemetry import number_of

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
    form = judged_token(own.tried({"discord.token": text}))
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
        lambda text: _people(text, token),
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


def _people(text: str, token: str) -> dict[int, str]:
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
