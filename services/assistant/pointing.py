"""Pointers for a question without an answer: up to three sections, each with a line that shows why it may help."""

from __future__ import annotations

from services.assistant.addresses import Addresses
from services.assistant.quoting import asked_earlier, by_team, in_known_languages, named, without_names
from services.assistant.telling import best_line
from services.conversations import Phrases
from services.search import NEAREST, Found, Hit, Level, pages_of

MOST = 3


def is_worth_showing(found: Found) -> bool:
    """True if the result is good enough to show a few places to somebody who addressed the bot."""
    return found.level is not Level.SILENCE or (found.confidence >= NEAREST and found.is_near)


def pointers(found: Found, query: str, say: Phrases, addresses: Addresses) -> tuple[str, list[str]]:
    """A few lines that name the best pages, and their ids."""
    chosen = _chosen(found, query)
    lines = [f"• {_linked(hit, addresses, say)}{_why(hit, query)}" for hit in chosen]
    return "\n".join([say.may_help, *lines]), [hit.source_id for hit in chosen]


def _chosen(found: Found, query: str) -> list[Hit]:
    """The surest answers of the team, and the best pages: what is surer comes first, and the other has a place too."""
    pages = list(in_known_languages(pages_of(found.documents), query) or pages_of(found.documents))
    answers = [each for each in found.taught if each.confidence >= NEAREST and each.hit.kept.quotable]
    best = max((each.confidence for each in answers), default=0.0)
    if best < found.of_pages:
        return [*pages[: MOST - 1], *(each.hit for each in answers[:1]), *pages[MOST - 1 :]][:MOST]
    kept = answers[: MOST - 1] if found.of_pages >= NEAREST else answers
    return [*(each.hit for each in kept), *(pages if found.of_pages >= NEAREST or not kept else [])][:MOST]


def nothing_found(found: Found, say: Phrases, addresses: Addresses, hint: str = "") -> tuple[str, list[str]]:
    """One friendly sentence, and the id of the nearest page or of the nearest question of the team's, if there is one;
    `hint`: where else to ask.
    """
    page = next(iter(pages_of(found.documents)), None) if found.is_near else None
    answers = (each for each in found.taught if each.hit.kept.quotable and each.confidence >= NEAREST)
    answer = next((each.hit for each in answers if each.confidence > found.of_pages), None)
    asked = asked_earlier(answer.kept) if answer is not None else ""
    if answer is not None and asked:
        address = addresses.section(answer.kept)
        question = f"[“{asked}”](<{address}>)" if address else f"“{asked}”"
        text = f"{say.found_nothing_at_all} {say.nearest_question(question)}"
    else:
        answer = None
        text = say.found_nothing(_linked(page, addresses, say)) if page is not None else say.found_nothing_at_all
    nearest = answer or page
    return (f"{text} {hint}" if hint else text), [] if nearest is None else [nearest.source_id]


def _linked(hit: Hit, addresses: Addresses, say: Phrases) -> str:
    name = say.answered_on(hit.kept.day) if by_team(hit.kept) and hit.kept.day else named(hit.kept, say)
    address = addresses.section(hit.kept)
    return f"[{name}](<{address}>)" if address else name


def _why(hit: Hit, query: str) -> str:
    line = best_line(hit.kept, query)
    if by_team(hit.kept):
        asked = asked_earlier(hit.kept)
        return f": “{asked}” {without_names(line)}".rstrip() if asked else f": {without_names(line)}"
    return f": {line}" if line else ""
