"""A look at a message costs in proportion to its length, and no multiple of plain English, whatever characters it has
(Pitfall 64).
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from assembly.data_folder import marker_pattern
from model.words import clean, one_line, without_invisible
from services.assistant import remove_foreign_links
from services.conversations.tracking import words_of
from services.discord.text import split, thread_name
from services.redaction import Redactor
from services.search import (
    asks_for_all,
    is_answer,
    is_question,
    language_of,
    may_ask,
    may_doubt,
    normalised,
    says_it_worked,
    statements,
    takes_back,
    terms,
    words_to_search,
)
from services.search.differences import asks_only_among_others, asks_something_else
from tests.patterns.growth import STEEP, cost, growth

CHARS = 4_000
"""The most that somebody with Nitro can write in a message."""
DEAR = 120
"""So many times what the terms of plain English of that length cost is too much."""


def _of(alphabet: str) -> Callable[[int], str]:
    """Return a maker of texts of random letters, always the same."""
    return lambda chars: "".join(random.Random(chars).choices(alphabet, k=chars))  # noqa: S311 (no secret)


def _repeated(part: str) -> Callable[[int], str]:
    return lambda chars: part * (chars // len(part))


HAN = "".join(map(chr, range(0x4E00, 0x9F00)))
MARKS = "\u0345\u0315\u0301\u0323\u0334"
ENGLISH = _repeated("how do I turn off the lamp in the hall? ")
TEXTS = {
    "Chinese": _of(HAN),
    "Chinese sentences": _repeated("怎么重置我的密码？"),
    "Hangul": _of("".join(map(chr, range(0xAC00, 0xD7A3)))),
    "Thai": _of("".join(map(chr, range(0x0E01, 0x0E2F)))),
    "one Russian word": _of("абвгдежзиклмнопрстуфхцчшщ"),
    "ligatures": _repeated("\ufdfa\ufdfb\u3316"),
    "marks": _repeated(MARKS),
    "letters with marks": _repeated(f"a{MARKS * 6}"),
    "invisible": _repeated("a\u200b\u00ad\u202e"),
    "emoji": _of("".join(map(chr, range(0x1F300, 0x1F640)))),
    "brackets": _repeated("[(<{"),
    "quotes": _repeated("\"'`“"),
    "one word": _of("abcdefghijklmnopqrstuvwxyz"),
    "short words": _repeated("a b c? "),
    "marker": _repeated("!n\u200bo"),
    "lines": _repeated("> a\n"),
}
LOOKS: dict[str, Callable[[str], object]] = {
    "terms": terms,
    "words_of": words_of,
    "language_of": language_of,
    "normalised": lambda text: normalised("NFKC", text),
    "is_question": is_question,
    "may_ask": may_ask,
    "asks_for_all": asks_for_all,
    "words_to_search": words_to_search,
    "statements": statements,
    "is_answer": is_answer,
    "may_doubt": may_doubt,
    "says_it_worked": says_it_worked,
    "takes_back": takes_back,
    "asks_something_else": lambda text: asks_something_else(text, f"{text} now", text),
    "clean": clean,
    "one_line": one_line,
    "without_invisible": without_invisible,
    "redact": Redactor(()).text,
    "thread_name": thread_name,
    "split": lambda text: split(2 * text),
    "asks_only_among_others": lambda text: asks_only_among_others(text, f"{text} now", text),
    "links": lambda text: remove_foreign_links(text, ()),
    "marker": marker_pattern("!nobot").search,
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("text", TEXTS)
def test_a_look_at_a_message_costs_in_proportion(look: str, text: str) -> None:
    """Pitfall 64. With longer texts as well: where they no longer fit into a cache of the processor there is a step."""
    assert any(growth(LOOKS[look], TEXTS[text], chars) < STEEP for chars in (CHARS, 4 * CHARS))


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("text", TEXTS)
def test_a_look_at_a_message_costs_no_multiple_of_plain_english(look: str, text: str) -> None:
    """Pitfall 64."""
    usual, unusual = ENGLISH(CHARS), TEXTS[text](CHARS)
    assert cost(lambda: LOOKS[look](unusual), 5) < DEAR * cost(lambda: terms(usual), 5)
