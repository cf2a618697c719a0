"""Where to look, when there is no answer: up to three sections, each with a line that tells why."""

from __future__ import annotations

from collections.abc import Sequence

from services.assistant.addresses import Addresses
from services.assistant.quoting import by_team, in_known_languages, named, without_names
from services.assistant.telling import telling_line
from services.conversations import Phrases
from services.search import Found, Hit

MOST = 3


def pointers(found: Found, query: str, say: Phrases, addresses: Addresses) -> tuple[str, list[str]]:
    """A few lines that name the best pages, and their ids."""
    chosen = (in_known_languages(found.pages, query) or found.pages)[:MOST]
    lines = [f"• {_linked(hit, addresses, say)}{_why(hit, query)}" for hit in chosen]
    return "\n".join([say.may_help, *lines]), [hit.source_id for hit in chosen]


def nothing_found(found: Found, say: Phrases, addresses: Addresses, hint: str = "") -> tuple[str, list[str]]:
    """One friendly sentence, and the nearest page's id if there is one; `hint`: where else to ask."""
    nearest: Sequence[Hit] = [hit for hit in found.pages if not by_team(hit.kept)][:1]
    text = say.found_nothing(_linked(nearest[0], addresses, say)) if nearest else say.found_nothing_at_all
    return (f"{text} {hint}" if hint else text), [hit.source_id for hit in nearest]


def _linked(hit: Hit, addresses: Addresses, say: Phrases) -> str:
    name = named(hit.kept, say)
    address = addresses.section(hit.kept)
    return f"[{name}](<{address}>)" if address else name


def _why(hit: Hit, query: str) -> str:
    line = telling_line(hit.kept, query)
    line = without_names(line) if by_team(hit.kept) else line
    return f": {line}" if line else ""
