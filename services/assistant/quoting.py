"""Answers in the words of the sources: the section that fits best, and lines that tell where else to look."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from services.assistant.citations import remove_foreign_links
from services.conversations import Phrases
from services.knowledge import bare_name
from services.search import ENGLISH, Hit, StoredPassage, language_of, without_addressee

_QUOTE_CHARS = 1_200
_SECOND_CHARS = 700
_MIN_QUOTE_CHARS = 40
_TITLE_CHARS = 120
_ASKED_CHARS = 200
_SECOND = 0.9
"""Another section is quoted too if it has this share of the best one's score."""
_NEAR = 0.7
"""So much of it makes another page worth naming."""
_MOST_ALSO = 2
_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)
_NAMES = re.compile(r"(?<![\w/])@[\w.-]*\w,?:?[ \t]*")
_SPAN = re.compile(r"!?\[[^\[\]\n]*\]\([^()\n]*\)|`[^`\n]+`|\*\*[^*\n]+\*\*")
"""What is no use when it is cut in two."""
_ENDS = ("\n\n", "\n", ". ", " ")
_CUT_OFF = "\n…"
_TITLE_LINE = re.compile(r"\*\*[^*\n]+\*\*")


class Quote(NamedTuple):
    """`text`: Markdown, its links absolute; `hit`: where it is from."""

    hit: Hit
    text: str


def to_quote(hits: Sequence[Hit]) -> list[Hit]:
    """The passages whose sections are quoted: the best one, and one of another section that fits nearly as well."""
    if not hits:
        return []
    first = hits[0]
    for other in hits[1:]:
        if other.score < _SECOND * first.score:
            break
        if (other.source_id, other.passage.section) != (first.source_id, first.passage.section):
            return [first, other]
    return [first]


def without_names(text: str) -> str:
    """A text of the team without @names of people; code is left as it is."""
    parts = _CODE.split(text)  # every second one is code, where an @ has a meaning of its own
    return "".join(part if at % 2 else _NAMES.sub("", part) for at, part in enumerate(parts)).strip()


def around(kept: StoredPassage, section: Sequence[StoredPassage], max_chars: int) -> str:
    """The passage with as much of its section as fits, which is all of it, or what follows and precedes the passage.

    Code has the paragraph before it, if that fits. Where something is left out there is an ellipsis.
    """
    texts = [each.text for each in section]
    if kept.text not in texts:
        return shortened(kept.text, max_chars)
    first = last = texts.index(kept.text)
    room = max_chars - 2 * len(_CUT_OFF)
    size = len(kept.text)
    grown = True
    while grown:
        grown = False
        for at in (last + 1, first - 1):
            if 0 <= at < len(texts) and size + len(texts[at]) + 2 <= room:
                size += len(texts[at]) + 2
                first, last, grown = min(first, at), max(last, at), True
    text = "\n\n".join(texts[first : last + 1])
    before = texts[first - 1].rpartition("\n\n")[2] if first and text.startswith("```") else ""
    if before and "```" not in before and len(before) + 2 + size <= room:
        text = f"{before}\n\n{text}"
    whole = _without_announcement(text)
    end = _CUT_OFF if last + 1 < len(texts) or whole != text else ""
    return shortened(f"{_CUT_OFF.strip()}\n{whole}{end}" if first else f"{whole}{end}", max_chars)


def compose(quotes: Sequence[Quote], also: Sequence[Hit], say: Phrases, max_chars: int) -> tuple[str, list[str]]:
    """The answer, at most `max_chars` characters long, and the ids it is from; empty if nothing fits in."""
    room = max_chars - len(say.no_model_notice) - 2
    parts: list[str] = []
    cited: list[str] = []
    for quote, limit in zip(quotes, (_QUOTE_CHARS, _SECOND_CHARS), strict=False):
        origin = say.quoted_from(section_name(quote.hit.passage, say))
        text = shortened(quote.text, min(limit, room - len(origin) - 4))
        if not text:
            break
        parts.append(f"{origin}\n\n{text}")
        cited.append(quote.hit.source_id)
        room -= len(parts[-1]) + 2
    if not parts:
        return "", []
    listed = list(dict.fromkeys(section_name(hit.passage, say) for hit in also))
    line = f"{say.also} {', '.join(listed)}"
    if listed and len(line) + 2 <= room:
        parts.append(line)
        cited += [hit.source_id for hit in also]
    return "\n\n".join([*parts, say.no_model_notice]), list(dict.fromkeys(cited))


def from_the_team(kept: StoredPassage, text: str, say: Phrases, max_chars: int) -> str:
    """An earlier answer of the team, below the question that it answered and its day; empty if it does not fit in."""
    origin = say.from_the_team_on(kept.day) if kept.day else say.from_the_team
    asked = asked_earlier(kept)
    head = f"{origin}\n> {asked}" if asked else origin
    said = shortened(without_names(text), min(_QUOTE_CHARS, max_chars - len(head) - len(say.no_model_notice) - 6))
    return f"{head}\n\n{said}\n\n{say.no_model_notice}" if said else ""


def asked_earlier(kept: StoredPassage) -> str:
    """The question that an answer of the team was given to, in a line, without addresses: anybody may have asked it."""
    said = remove_foreign_links(" ".join(kept.headings[-1].split()), ()) if kept.headings else ""
    asked = _plain(without_addressee(without_names(said)))
    return asked if len(asked) <= _ASKED_CHARS else f"{asked[:_ASKED_CHARS].rpartition(' ')[0]} …"


def others(hits: Sequence[Hit], quoted: Collection[str]) -> list[Hit]:
    """Pages besides those quoted that fit nearly as well."""
    return [hit for hit in hits[1:] if hit.source_id not in quoted and hit.score >= _NEAR * hits[0].score][:_MOST_ALSO]


def in_known_languages(hits: Sequence[Hit], query: str) -> list[Hit]:
    """Without translations into languages that the query is not in.

    What is in English stays, as does what has too little prose to tell.
    """
    known = {ENGLISH, language_of(query)}
    return [hit for hit in hits if language_of(f"{' '.join(hit.passage.headings)}\n{hit.passage.text}") in known]


def by_team(kept: StoredPassage) -> bool:
    """True if a passage is from a topic of the team: an answer below the question as its heading."""
    return kept.source_id.startswith("team:")


def section_name(kept: StoredPassage, say: Phrases) -> str:
    """A section as people are shown it: the title of its page and its heading; the name of the file without either.

    What the team answered is called by its day: the question may name people.
    """
    if by_team(kept):
        return say.answered_on(kept.day) if kept.day else say.team_answer
    heads = [head for head in dict.fromkeys((kept.title, *kept.headings)) if head]
    shown = " › ".join([heads[0], heads[-1]] if len(heads) > 1 else heads) or bare_name(kept.source_id)
    return f"*{_plain(' '.join(shown.split())[:_TITLE_CHARS].strip())}*"


def shortened(text: str, max_chars: int) -> str:
    """`text`, cut after a paragraph, a line or else a word, its code fence closed and no link, code or bold text cut
    in two; empty if hardly anything is left.
    """
    if len(text) <= max_chars:
        return text
    room = max_chars - len("\n```\n…")
    if room < _MIN_QUOTE_CHARS:
        return ""
    cut = text[: _start_of_span(text, _place_to_cut(text[: room + 1], room))].rstrip()
    if not cut:
        return ""
    if cut.count("```") % 2:
        return f"{cut}\n```\n…"
    cut = _without_announcement(cut)
    return f"{cut}\n…"


def _place_to_cut(cut: str, room: int) -> int:
    """After a paragraph, a line, a sentence or a word, of which the first comes with at least half of the room."""
    for mark in _ENDS:
        at = cut.rfind(mark)
        if at >= room // 2:
            return at + len(mark.rstrip())
    return room


def _without_announcement(cut: str) -> str:
    """Without a last paragraph that is a title, or that only says what comes next, which was cut off."""
    before, _, last = cut.rpartition("\n\n")
    announces = last.endswith((":", "：")) or _TITLE_LINE.fullmatch(last)
    return before.rstrip() if announces and len(before) >= _MIN_QUOTE_CHARS and not before.count("```") % 2 else cut


def _start_of_span(text: str, at: int) -> int:
    """Where the link, the code or the bold text begins that `at` would cut in two, else `at`."""
    spans = (match.span() for match in _SPAN.finditer(text, 0, 2 * at))
    at = next((start for start, end in spans if start < at < end), at)
    # A link that begins near the cut may end far behind it.
    opened = text.rfind("[", 0, at)
    return opened if opened >= 0 and "]" not in text[opened:at] else at


def first_quote(answer: str) -> str:
    """An answer without the line that `compose` puts above it."""
    head, _, rest = answer.partition("\n\n")
    return rest if rest and head.endswith((":", "：")) else answer


def _plain(text: str) -> str:
    """Without marks that would end the slanted text or the link that it stands in."""
    return text.translate({ord("*"): "", ord("`"): "", ord("["): "(", ord("]"): ")", ord("_"): r"\_"})
