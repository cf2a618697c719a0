"""The bot itself, its guild, its members, and its commands."""

from __future__ import annotations

import re

from tests.loopback import payloads
from tests.loopback.interactions import OptionKind
from tests.loopback.payloads import Payload
from tests.loopback.refusals import invalid_form, unknown
from tests.loopback.rest import Answer, Call, Routes
from tests.loopback.state import State

routes = Routes()


@routes.on("GET", "/users/@me")
def me(state: State, call: Call) -> Answer:
    return payloads.user(state.bot) | {"verified": True, "mfa_enabled": False, "email": None, "locale": "en-US"}


@routes.on("GET", "/applications/@me")
@routes.on("GET", "/oauth2/applications/@me")
def application(state: State, call: Call) -> Answer:
    return {
        "id": str(state.bot.id),
        "name": state.bot.name,
        "description": "",
        "icon": None,
        "bot_public": True,
        "bot_require_code_grant": False,
        "verify_key": "0" * 64,
        "owner": payloads.user(state.guild.owner),
        "team": None,
        "flags": state.application_flags,
    }


@routes.on("GET", "/gateway")
def gateway(state: State, call: Call) -> Answer:
    return {"url": state.gateway_url}


@routes.on("GET", "/gateway/bot")
def gateway_bot(state: State, call: Call) -> Answer:
    limit = {"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 1}
    return {"url": state.gateway_url, "shards": 1, "session_start_limit": limit}


@routes.on("GET", "/users/@me/guilds")
def guilds(state: State, call: Call) -> Answer:
    if not state.joined:
        return []
    return [{"id": str(state.guild.id), "name": state.guild.name, "icon": None, "owner": False, "permissions": "0"}]


@routes.on("GET", "/users/{user}")
def user(state: State, call: Call) -> Answer:
    found = state.guild.members.get(call.id("user"))
    if found is None:
        raise unknown("User")
    return payloads.user(found.user)


@routes.on("GET", "/guilds/{guild}/roles")
def roles(state: State, call: Call) -> Answer:
    _check_guild(state, call)
    return [payloads.role(each, position) for position, each in enumerate(state.guild.roles.values())]


@routes.on("GET", "/guilds/{guild}")
def guild(state: State, call: Call) -> Answer:
    _check_guild(state, call)
    return payloads.guild(state.guild, state.channels(), [], state.bot)


@routes.on("GET", "/guilds/{guild}/channels")
def channels(state: State, call: Call) -> Answer:
    _check_guild(state, call)
    return [payloads.channel(channel, state.guild) for channel in state.channels()]


@routes.on("GET", "/guilds/{guild}/members/{user}")
def member(state: State, call: Call) -> Answer:
    _check_guild(state, call)
    found = state.guild.members.get(call.id("user"))
    if found is None:
        raise unknown("Member")
    return payloads.member(found)


def _check_guild(state: State, call: Call) -> None:
    if call.id("guild") != state.guild.id:
        raise unknown("Guild")


@routes.on("GET", "/applications/{application}/commands")
@routes.on("GET", "/applications/{application}/guilds/{guild}/commands")
def commands(state: State, call: Call) -> Answer:
    return state.commands.get(call.path, [])


@routes.on("PUT", "/applications/{application}/commands")
@routes.on("PUT", "/applications/{application}/guilds/{guild}/commands")
def register_commands(state: State, call: Call) -> Answer:
    """All commands at once, in place of those before. Each comes back with an id."""
    sent: list[Payload] = call.body if isinstance(call.body, list) else []  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] (JSON from outside)
    for each in sent:
        _check_command(each)
    given: Payload = {"application_id": call.names["application"], "version": "1"}
    if "guild" in call.names:
        given["guild_id"] = call.names["guild"]
    state.commands[call.path] = [
        {"type": 1, "description": "", **each, **given, "id": str(state.snowflake())} for each in sent
    ]
    return state.commands[call.path]


def _check_command(command: Payload) -> None:
    """A chat-input command or an option of one, as far as forms go ("Application Command Naming")."""
    name, description = str(command.get("name")), str(command.get("description") or "")
    if re.fullmatch(r"[-_'\w]{1,32}", name) is None or name != name.lower():
        raise invalid_form("name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
    if not 1 <= len(description) <= 100:
        raise invalid_form("description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
    options: list[Payload] = command.get("options") or []
    plain = [each for each in options if each["type"] > OptionKind.SUB_COMMAND_GROUP]
    if [each for each in plain if each.get("required")] != plain[: sum(bool(each.get("required")) for each in plain)]:
        raise invalid_form("options", "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", "Required options come first")
    for each in options:
        _check_command(each)
