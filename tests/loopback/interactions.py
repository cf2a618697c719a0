"""Slash commands as people call them, and what they are answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from tests.loopback import payloads
from tests.loopback.model import File, Guild, Message, Place, User
from tests.loopback.payloads import Payload

EPHEMERAL = 1 << 6
"""The flag of a message that only one person sees."""
CHAT_INPUT = 1
APPLICATION_COMMAND = 2
MESSAGE_COMPONENT = 3
MODAL_SUBMIT = 5
BUTTON = 2


class OptionKind(IntEnum):
    """Discord's "Application Command Option Type"."""

    SUB_COMMAND = 1
    SUB_COMMAND_GROUP = 2
    STRING = 3
    INTEGER = 4
    BOOLEAN = 5
    ATTACHMENT = 11


Upload = tuple[str, bytes, str | None]
"""A file to give to a command: name, content, media type."""


@dataclass(eq=False)
class Said:
    """One message that answers a command."""

    message: Message
    payload: Payload
    ephemeral: bool

    @property
    def content(self) -> str:
        return self.message.content

    @property
    def allowed_mentions(self) -> Payload | None:
        return self.payload.get("allowed_mentions")


@dataclass(eq=False)
class Interaction:
    """One call of a command."""

    id: int
    token: str
    user: User
    place: Place
    at: float
    deferred: bool = False
    """It was answered with "thinking", and what it says is to come."""
    ephemeral: bool = False
    """Said with the first answer; an edit of it cannot change that."""
    answered: bool = False
    form: Payload | None = None
    """The form that it was answered with."""
    said: list[Said] = field(default_factory=list[Said])
    """What the caller sees, in order."""

    @property
    def texts(self) -> list[str]:
        return [said.content for said in self.said]


def find(commands: Sequence[Payload], name: str) -> list[Payload]:
    """The path of definitions that `name`, such as `kb add`, leads to.

    Raises:
        LookupError: there is no such command: Discord would not offer it.
    """
    found: list[Payload] = []
    for word in name.split():
        known: Sequence[Payload] = found[-1].get("options", []) if found else commands
        found += [each for each in known if each["name"] == word][:1]
        if not found or found[-1]["name"] != word:
            raise LookupError(f"there is no command {name!r}")
    return found


def data(
    path: Sequence[Payload], given: Mapping[str, Any], files: Mapping[str, File], attach: Callable[[File], Payload]
) -> Payload:
    """The `data` of an interaction: options as the definition has them, attachments by id and `resolved`.

    Raises:
        LookupError: an option does not exist, or a required one is missing.
    """
    definitions = {each["name"]: each for each in path[-1].get("options", [])}
    if unknown := given.keys() - definitions.keys():
        raise LookupError(f"no such options: {sorted(unknown)}")
    if missing := {name for name, each in definitions.items() if each.get("required")} - given.keys():
        raise LookupError(f"Discord wants {sorted(missing)} filled in")
    options: list[Payload] = [
        {"name": name, "type": definitions[name]["type"], "value": str(files[name].id) if name in files else value}
        for name, value in given.items()
    ]
    for step in reversed(path[1:]):
        options = [{"name": step["name"], "type": int(OptionKind.SUB_COMMAND), "options": options}]
    resolved = {"attachments": {str(file.id): attach(file) for file in files.values()}} if files else {}
    return {
        "id": path[0]["id"],
        "name": path[0]["name"],
        "type": CHAT_INPUT,
        "guild_id": path[0]["guild_id"],
        "options": options,
        "resolved": resolved,
    }


def button_of(message: Message, label: str) -> Payload:
    """The button of a message with this label.

    Raises:
        LookupError: Discord shows no such button.
    """
    rows: list[Any] = [each for each in message.components if isinstance(each, dict)]
    shown = [button for row in rows for button in row.get("components", ()) if button["type"] == BUTTON]
    found = [button for button in shown if button["label"] == label]
    if not found:
        raise LookupError(f"there is no button {label!r} among {[button['label'] for button in shown]}")
    return found[0]


def filled_in(form: Payload, *texts: str) -> Payload:
    """The `data` of a form with a text input for each of these, as Discord sends it.

    Raises:
        LookupError: Discord takes no text of this length.
    """
    rows: list[Payload] = []
    for label, text in zip(form["components"], texts, strict=True):
        field = label["component"]
        if len(text) > field.get("max_length", 4000):
            raise LookupError(f"the form takes {field['max_length']} characters")
        entered = {"type": field["type"], "custom_id": field["custom_id"], "id": 2, "value": text}
        rows.append({"type": label["type"], "id": 1, "component": entered})
    return {"custom_id": form["custom_id"], "components": rows}


def payload(
    one: Interaction,
    data: Payload,
    guild: Guild,
    bot: User,
    kind: int = APPLICATION_COMMAND,
    message: Payload | None = None,
) -> Payload:
    """INTERACTION_CREATE. `message`: with the button that was pressed."""
    member = guild.members[one.user.id]
    granted = str(int(guild.permissions(one.user, one.place)) & (1 << 53) - 1)
    return {
        "id": str(one.id),
        "application_id": str(bot.id),
        "type": kind,
        "data": data,
        **({} if message is None else {"message": message}),
        "guild_id": str(guild.id),
        "guild": {"id": str(guild.id), "locale": "en-US", "features": []},
        "channel_id": str(one.place.id),
        "channel": payloads.place(one.place, guild, bot),
        "member": {**payloads.member(member), "permissions": granted},
        "token": one.token,
        "version": 1,
        "app_permissions": str(int(guild.permissions(bot, one.place)) & (1 << 53) - 1),
        "locale": "en-US",
        "guild_locale": "en-US",
        "entitlements": [],
        "authorizing_integration_owners": {"0": str(guild.id)},
        "context": 0,
        "attachment_size_limit": 10 * 1024 * 1024,
    }
