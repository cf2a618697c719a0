"""Who may do what where, by Discord's published algorithm ("Permissions", "Permission hierarchy")."""

from __future__ import annotations

from enum import IntFlag


class Permission(IntFlag):
    MANAGE_CHANNELS = 1 << 4
    ADMINISTRATOR = 1 << 3
    ADD_REACTIONS = 1 << 6
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    MANAGE_MESSAGES = 1 << 13
    EMBED_LINKS = 1 << 14
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    MENTION_EVERYONE = 1 << 17
    MANAGE_THREADS = 1 << 34
    CREATE_PUBLIC_THREADS = 1 << 35
    CREATE_PRIVATE_THREADS = 1 << 36
    SEND_MESSAGES_IN_THREADS = 1 << 38


NOTHING = Permission(0)
EVERYTHING = ~NOTHING

READ = Permission.VIEW_CHANNEL | Permission.READ_MESSAGE_HISTORY
TALK = READ | Permission.SEND_MESSAGES | Permission.SEND_MESSAGES_IN_THREADS | Permission.ADD_REACTIONS
"""What `@everyone` may do in a new guild here."""
ANSWER = READ | Permission.CREATE_PUBLIC_THREADS | Permission.SEND_MESSAGES_IN_THREADS | Permission.ADD_REACTIONS
"""What a support bot is invited with: threads, and posts in them only."""


def resolve(base: Permission, *layers: tuple[Permission, Permission]) -> Permission:
    """`base` after each (deny, allow) of a channel: `@everyone`, then the roles together, then the member."""
    if base & Permission.ADMINISTRATOR:
        return EVERYTHING
    for deny, allow in layers:
        base = base & ~deny | allow
    # Without View Channel, nothing else in the channel counts.
    return base if base & Permission.VIEW_CHANNEL else NOTHING
