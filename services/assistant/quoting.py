"""Answers in the words of the sources: the section that fits best, and lines that tell where else to look."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from model.source_ids import bare_name, folders_of, is_topic
from model.words import clean
from services.assistant.citations import remove_addresses
from services.search import (
    ENGLISH,
    asking_sentences,
    language_of,
    version_folder,
    without_greeting,
)

if TYPE_CHECKING:
    from services.conversations import Phrases
    from services.search import (
        Hit,
        StoredPassage,
    )

_QUOTE_CHARS = 1_200
_SECOND_CHARS = 700
_MIN_QUOTE_CHARS = 40
_TITLE_CHARS = 120
_FEWEST_HEADS = 2
_SECOND = 0.9
"""Another section is quoted too if it has this share of the best one's score."""
_NEAR = 0.7
"""Another page is named if it has this share of the best one's score."""
_MAX_OTHERS = 2
_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+)", re.DOTALL)
_NAMES = re.compile(r"(?<!\w)@(?![a-z0-9][a-z0-9._-]*/[a-z0-9])[\w.-]*\w")  # not "@scope/package"
_SPAN = re.compile(r"!?\[[^\[\]\n]*\]\([^()\n]*\)|`[^`\n]+`|\*\*[^*\n]+\*\*")
"""Markup that must not be cut in two."""
_MARKUP = {ord("*"): "", ord("`"): "", ord("["): "(", ord("]"): ")"}
_MENTION = re.compile(r"<@[!&]?(?:[0-9]+|…)>")
_ENDS = ("\n\n", "\n", ". ", " ")
_CUT_OFF = "\n…"
_LATER_STEP = re.compile(r"(?!1\D)[0-9]{1,3}[.)]\s")
_FENCE = "```\n"
_TABLE_HEAD = re.compile(r"```\n(?P<head>[^\n]*\n-+\+[-+]*\n)")
"""As `services.search.text` lays out a table."""
_TITLE_LINE = re.compile(r"\*\*[^*\n]+\*\*")


class Quote(NamedTuple):
    """A text to quote.

    Attributes:
        hit: the passage that it is from.
        text: Markdown, its links absolute.
        warnings: sentences of its section that warn. Those that the text has not are shown behind it.
    """

    hit: Hit
    text: str
    warnings: Sequence[str] = ()


def choose_hits(hits: Sequence[Hit]) -> list[Hit]:
    """Choose the passages to quote: the best one, and one of another section that fits nearly as well."""
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
    """Replace each mention of a person in a text (`@name`) with `@…`. Code and addresses stay as they are. The names
    are not just removed, since the sentence might then say something else.
    """
    pieces = _CODE.split(text)  # every second one is code, where an @ has a meaning of its own
    return "".join(piece if at % 2 else _NAMES.sub("@…", piece) for at, piece in enumerate(pieces)).strip()


def extend(passage: StoredPassage, section: Sequence[StoredPassage], max_chars: int) -> str:
    """Extend a passage within its section, as much as fits. An ellipsis stands for text that is left out. Rows of a
    table have its header above them; steps without those before them are no quote: the result is empty.
    """
    texts = [each.text for each in section]
    if passage.text not in texts:
        return shorten(passage.text, max_chars)
    first = last = texts.index(passage.text)
    room = max_chars - 2 * len(_CUT_OFF)
    size = len(passage.text)
    grown = True
    while grown:
        grown = False
        for at in (first - 1, last + 1) if _LATER_STEP.match(texts[first]) else (last + 1, first - 1):
            if 0 <= at < len(texts) and size + len(texts[at]) + 2 <= room:
                size += len(texts[at]) + 2
                first, last, grown = min(first, at), max(last, at), True
    if _LATER_STEP.match(texts[first]):
        return ""
    text = "\n\n".join(texts[first : last + 1])
    if head := _table_head(text, texts[:first]):
        text = text.replace(_FENCE, f"{_FENCE}{head}…\n", 1)
    before = texts[first - 1].rpartition("\n\n")[2] if first and text.startswith("```") else ""
    if before and "```" not in before and len(before) + 2 + size <= room:
        text = f"{before}\n\n{text}"
    whole = _without_announcement(text)
    end = _CUT_OFF if last + 1 < len(texts) or whole != text else ""
    return shorten(f"{_CUT_OFF.strip()}\n{whole}{end}" if first else f"{whole}{end}", max_chars)


def _table_head(text: str, earlier: Sequence[str]) -> str:
    """Return the header of the table in the middle of which a text begins, by the passages before it; else nothing."""
    if not text.startswith(_FENCE) or _TABLE_HEAD.match(text):
        return ""
    for each in reversed(earlier):
        found = _TABLE_HEAD.match(each, max(each.rfind(_FENCE), 0))
        if found is not None:
            return found["head"]
        if not each.startswith(_FENCE):
            break
    return ""


def compose(quotes: Sequence[Quote], also: Sequence[Hit], say: Phrases, max_chars: int) -> tuple[str, list[str]]:
    """Return the answer, at most `max_chars` characters long, and the ids of its sources; both empty if nothing fits.
    `also`: the passages of other pages, which are only named.
    """
    room = max_chars - len(say.no_model_notice) - 2
    paragraphs: list[str] = []
    cited: list[str] = []
    for quote, limit in zip(quotes, (_QUOTE_CHARS, _SECOND_CHARS), strict=False):
        origin = say.quoted_from(section_name(quote.hit.passage, say))
        text = _with_warnings(quote, min(limit, room - len(origin) - 4))
        if not text:
            break
        paragraphs.append(f"{origin}\n\n{text}")
        cited.append(quote.hit.source_id)
        room -= len(paragraphs[-1]) + 2
    if not paragraphs:
        return "", []
    listed = list(dict.fromkeys(section_name(hit.passage, say) for hit in also))
    line = f"{say.also} {', '.join(listed)}"
    if listed and len(line) + 2 <= room:
        paragraphs.append(line)
        cited += [hit.source_id for hit in also]
    return "\n\n".join([*paragraphs, say.no_model_notice]), list(dict.fromkeys(cited))


def _with_warnings(quote: Quote, max_chars: int) -> str:
    """Cut a quote, and keep what its section warns of; empty if hardly anything is left beside that."""
    text = shorten(quote.text, max_chars)
    missing = [each for each in quote.warnings if each not in text]
    if not text or not missing:
        return text
    warned = "".join(f"\n{each}\n…" for each in missing)
    text = shorten(quote.text, max_chars - len(warned) - len(_CUT_OFF))
    return f"{text.removesuffix(_CUT_OFF)}{_CUT_OFF}{warned}" if text else ""


def quote_team(passage: StoredPassage, answer: str, say: Phrases, max_chars: int) -> str:
    """Quote an earlier answer of the team below its day and question; empty if it does not fit in, or is empty."""
    origin = say.from_the_team_on(passage.day) if passage.day else say.from_the_team
    asked = earlier_question(passage)
    head = f"{origin}\n> {say.somebody_asked(asked)}" if asked else origin
    said = without_names(answer)
    fits = len(said) <= max_chars - len(head) - len(say.no_model_notice) - 6
    return f"{head}\n\n{said}\n\n{say.no_model_notice}" if said and fits else ""


def earlier_question(passage: StoredPassage) -> str:
    """Return the question that an answer of the team was given to, in one line. If the answer is quotable
    (`read_topic`), the question is whole. Names, addresses and invisible characters are left out, and so are statements
    beside the question that could be taken for instructions: anybody may have written it.
    """
    said = _what_asks(remove_addresses(" ".join(clean(passage.headings[-1]).split()))) if passage.headings else ""
    # Once more, as signs that are left out may have stood within an address.
    return _escaped(remove_addresses(_MENTION.sub("@…", without_names(said).translate(_MARKUP))))


_DOES = re.compile(
    r"`|(?<!\S)~|[/\\]\w|(?<!\S)--?\w|[|;&<>${}]|\b(?:sudo|curl|wget|rm|chmod|chown|eval|exec|iex)\b"
    r"|\b(?:pip3?|npm|npx|apt|brew|docker|git|winget|choco) (?:i|install|run|pull|clone|exec|add|remove)\b"
    r"|\w\.(?:sh|exe|bat|ps1|py|js)\b"
)
"""Code, paths and commands."""


def _what_asks(question: str) -> str:
    """Return a question without the statements beside it that hold code, paths or commands, for each of which stands an
    ellipsis. A text in which nothing asks, such as an error message, stays as it is.
    """
    asking, others = asking_sentences(question)
    for each in others if asking else ():
        if _DOES.search(each):
            question = question.replace(each.strip(), "…")
    return question


def other_pages(hits: Sequence[Hit], quoted: Collection[str]) -> list[Hit]:
    """Return the hits of pages that fit nearly as well as the best one and are not `quoted` (ids of sources)."""
    return [hit for hit in hits[1:] if hit.source_id not in quoted and hit.score >= _NEAR * hits[0].score][:_MAX_OTHERS]


def in_known_languages(hits: Sequence[Hit], query: str) -> list[Hit]:
    """Return the hits in English or in the language of the query, and those with too little prose to tell."""
    known = {ENGLISH, language_of(query)}
    return [hit for hit in hits if language_of(f"{' '.join(hit.passage.headings)}\n{hit.passage.text}") in known]


def is_team_answer(passage: StoredPassage) -> bool:
    """Return True if a passage is from a topic of the team: an answer, with its question as the heading."""
    return is_topic(passage.source_id)


def section_name(passage: StoredPassage, say: Phrases) -> str:
    """Return the name of a section for people: the title of its page and the headings down to its own, as many as fit,
    else the name of the file; before it a folder that names a version.

    An answer of the team is named after its day: the question may name people.
    """
    if is_team_answer(passage):
        return say.answered_on(passage.day) if passage.day else say.team_answer
    heads = [head for head in dict.fromkeys((passage.title, *passage.headings)) if head]
    while len(heads) > _FEWEST_HEADS and len(" › ".join(heads)) > _TITLE_CHARS:
        del heads[1]
    version = version_folder(folders_of(passage.source_id))
    shown = " › ".join(filter(None, [version, *heads])) if heads else bare_name(passage.source_id)
    return f"*{_plain(' '.join(shown.split())[:_TITLE_CHARS].strip())}*"


def shorten(text: str, max_chars: int) -> str:
    """Cut `text` after a paragraph, a line or else a word, but not within a link, code or bold text, and close its code
    fence; empty if hardly anything is left.
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
    """Return where to cut: after the last paragraph, else line, sentence or word that fills half of the room."""
    for mark in _ENDS:
        at = cut.rfind(mark)
        if at >= room // 2:
            return at + len(mark.rstrip())
    return room


def _without_announcement(cut: str) -> str:
    """Remove a last paragraph that is a title, or that only announces the text that was cut off."""
    before, _, last = cut.rpartition("\n\n")
    announces = last.endswith((":", "：")) or _TITLE_LINE.fullmatch(last)
    return before.rstrip() if announces and len(before) >= _MIN_QUOTE_CHARS and not before.count("```") % 2 else cut


def _start_of_span(text: str, at: int) -> int:
    """Return the beginning of the link, code or bold text that a cut at `at` would split; else `at`."""
    spans = (match.span() for match in _SPAN.finditer(text, 0, 2 * at))
    at = next((start for start, end in spans if start < at < end), at)
    # A link that begins near the cut may end far behind it.
    opened = text.rfind("[", 0, at)
    return opened if opened >= 0 and "]" not in text[opened:at] else at


def first_quote(answer: str) -> str:
    """Return an answer without the line that `compose` puts above it."""
    head, _, rest = answer.partition("\n\n")
    return rest if rest and head.endswith((":", "：")) else answer


def _plain(text: str) -> str:
    """Remove characters that would end the slanted text or the link around `text`."""
    return _escaped(text.translate(_MARKUP))


def _escaped(text: str) -> str:
    return text.replace("_", r"\_")


_NAMED_AFTER_CHARS = 4_000  # the longest message of Discord


def line_that_asks(asked: str) -> str:
    """Return the first line of `asked` that contains a question, or all of it if none does, without greeting, and
    without addresses, which everybody would read under the bot's name: threads are named after it. Reads no more than
    one message can hold.
    """
    text = remove_addresses(without_greeting(asked[:_NAMED_AFTER_CHARS]))
    named = next((line for line in text.splitlines() if asking_sentences(line)[0]), text)
    # Markup and signs that nobody sees may stand within an address.
    seen = clean(named).translate(_MARKUP)
    shown = remove_addresses(seen)
    return named if shown == seen else shown
