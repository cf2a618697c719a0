"""Discord's refusals: HTTP status and JSON error code (Discord: "Opcodes and Status Codes", "JSON")."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """A request that Discord answers with an error."""

    def __init__(self, status: int, code: int, message: str, errors: dict[str, Any] | None = None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.body: dict[str, Any] = {"message": message, "code": code}
        if errors is not None:
            self.body["errors"] = errors


def unauthorized() -> Refused:
    return Refused(401, 0, "401: Unauthorized")


def not_found() -> Refused:
    return Refused(404, 0, "404: Not Found")


def unknown(what: str) -> Refused:
    codes = {
        "Webhook": 10015,
        "interaction": 10062,
        "Channel": 10003,
        "Guild": 10004,
        "Member": 10007,
        "Message": 10008,
        "User": 10013,
        "Emoji": 10014,
    }
    return Refused(404, codes[what], f"Unknown {what}")


def missing_access() -> Refused:
    """The place cannot be seen."""
    return Refused(403, 50001, "Missing Access")


def missing_permissions() -> Refused:
    """The place can be seen, but this is not allowed there."""
    return Refused(403, 50013, "Missing Permissions")


def not_the_author() -> Refused:
    return Refused(403, 50005, "Cannot edit a message authored by another user")


def empty_message() -> Refused:
    return Refused(400, 50006, "Cannot send an empty message")


def not_a_text_channel() -> Refused:
    return Refused(400, 50008, "Cannot send messages in a non-text channel")


def already_acknowledged() -> Refused:
    return Refused(400, 40060, "Interaction has already been acknowledged.")


def not_on_system_messages() -> Refused:
    return Refused(403, 50021, "Cannot execute action on a system message")


def not_in_this_channel_type() -> Refused:
    return Refused(400, 50024, "Cannot execute action on this channel type")


def thread_is_archived() -> Refused:
    return Refused(400, 50083, "Thread is archived")


def thread_exists() -> Refused:
    return Refused(400, 160004, "A thread has already been created for this message")


def thread_is_locked() -> Refused:
    return Refused(403, 160005, "This thread is locked")


def invalid_form(field: str, code: str, message: str) -> Refused:
    errors = {field: {"_errors": [{"code": code, "message": message}]}}
    return Refused(400, 50035, "Invalid Form Body", errors)
