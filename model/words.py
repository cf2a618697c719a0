"""Numbers with their nouns, as people read them; and text from outside without invisible characters."""

import re
import unicodedata

INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f"  # control characters without a use in text
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # hidden, or turning direction
    "\U000e0000-\U000e007f"  # tags: an invisible copy of ASCII
)
"""Characters without a use in text, for a class of a pattern; without joiners and variants of signs, which emoji and
some scripts need.
"""
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_BREAK = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def number_of(count: int, thing: str, things: str = "") -> str:
    """Return a number with its noun: `1 file`, `2 files`. `things`: the plural, if adding an s is not enough."""
    return f"{count} {thing if count == 1 else things or f'{thing}s'}"


def replace_surrogates(text: str) -> str:
    """Join the halves of surrogate pairs, and replace a lone half, which UTF-8 cannot hold, by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean(text: str) -> str:
    r"""Return `text` with `\n` as its only line break, and without invisible characters."""
    if text.isascii() and text.isprintable():
        return text
    text = _SURROGATE.sub("\ufffd", text)
    return _INVISIBLE.sub("", _LINE_BREAK.sub("\n", text))


def without_invisible(text: str) -> str:
    """Return `text` without characters that nobody sees, for a terminal or a page: control characters other than line
    feed and tab, marks of writing direction, joiners, and what Unicode has not assigned.

    `clean` is for text that is stored or shown to a model: it also makes line breaks alike, and leaves joiners, which
    emoji and some scripts need.
    """
    hidden = {ord(each) for each in set(text).difference("\n\t") if unicodedata.category(each).startswith("C")}
    return text.translate(dict.fromkeys(hidden)) if hidden else text


def one_line(text: str) -> str:
    """Return the cleaned text in one line: for names and ids."""
    return " ".join(clean(text).split("\n"))
