"""Worked example of docs/extending.md: a message of the team that is filed by itself, at once.

!tip The relay listens on port 7070.
"""

from __future__ import annotations

from model.conversations import ConversationKind

TIP = ConversationKind(prefix="tip_", opening="!tip ", needs_question=False, settles=False)
"""Its row of `model/conversations.py: KINDS`."""
