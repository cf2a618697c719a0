"""The table of the roles of operators, and what each may do at the dashboard. The access check, the pages and
docs/operating.md follow it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, NamedTuple, get_args

OperatorRole = Literal["looks_on", "corrects", "administers"]
"""Each may do what those before it may."""
ROLES: tuple[OperatorRole, ...] = get_args(OperatorRole)


class Act(StrEnum):
    """Something that an operator does at the dashboard."""

    LOOK = "look"
    DRAFTS = "drafts"
    GAPS = "gaps"
    CONVERSATIONS = "conversations"
    AUDIT = "audit"


class Permission(NamedTuple):
    """Who may do something. `role`: the first one that may; `what`: in words that follow "may"."""

    role: OperatorRole
    what: str


PERMISSIONS: Mapping[Act, Permission] = {
    Act.LOOK: Permission("looks_on", "see every page but *Audit*, and search"),
    Act.DRAFTS: Permission("corrects", "post, edit, discard and keep drafts"),
    Act.GAPS: Permission("corrects", "write answers to gaps, dismiss and restore gaps"),
    Act.CONVERSATIONS: Permission("corrects", "remove and restore conversations of the team's knowledge"),
    Act.AUDIT: Permission("administers", "see on *Audit* what was done by whom"),
}


class Operator(NamedTuple):
    """Somebody who looks after the bot at the dashboard."""

    name: str
    role: OperatorRole

    def may(self, act: Act) -> bool:
        return ROLES.index(self.role) >= ROLES.index(PERMISSIONS[act].role)

    def __str__(self) -> str:
        return f"{self.name} ({self.role.replace('_', ' ')})"


OWNER = Operator("operator", "administers")
"""The operator who has `dashboard.token`, or reaches a dashboard that asks for no token."""
TERMINAL = "terminal"
"""The name under which commands on the machine of the bot are noted."""


def refusal(operator: Operator, act: Act) -> str:
    """Return the sentence for an operator who may not do something."""
    role, what = PERMISSIONS[act]
    return f"{operator}: only an operator who {role} may {what.replace('*', '')}."
