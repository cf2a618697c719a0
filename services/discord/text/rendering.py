"""Discord's notation → plain text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from clock import rfc3339
from model.messages import Attachment, Message
from services.discord.text.splitting import units

THREAD_NAME_LIMIT = 100
"""Discord API reference, "Start Thread from Message"."""
LOOKED_AT = 400
"""Characters of a line from which a name is made: enough for its markup, and a bound on the work."""
UNNAMED = "Question"

KB, MB = 1_000, 1_000_000

NOTATION = re.compile(
    r"<(?:@!?(?P<user>\d{1,20})|@&(?P<role>\d{1,20})|#(?P<channel>\d{1,20})|a?:(?P<emoji>\w+):\d{1,20}"
    r"|/(?P<command>[^:<>\n]+):\d{1,20}|t:(?P<time>-?\d{1,13})(?::[a-zA-Z])?)>"
)
"""Discord API reference, "Message formatting"."""

LATEST = 253_402_300_799
"""The last second of the year 9999: later times stay as they were written."""

PREFIX = re.compile(r"\A\s*(?:#{1,3}\s+|-#\s+|>{1,3}\s+|[-*+]\s+|\d{1,3}[.)]\s+)+")
FENCE_LINE = re.compile(r"\s*(?:`{3,}|~{3,})[\w+#.-]*\s*")
LINK = re.compile(r"\[([^\[\]]+)\]\(<?[^\s()<>]+>?\)")
ADDRESS = re.compile(r"<(https?://[^\s<>]+)>")
MARKUP = re.compile(r"[\\`*_~|<>\[\]@#]")
PAIRED = re.compile(r"(\*\*\*|\*\*|__|~~|\|\||`+|(?<!\w)[*_])(?=\S)(.+?)(?<=\S)\1(?!\w)")


def render(message: Message, names: Mapping[int, str]) -> str:
    """The text of a message, plain and trimmed, then a line for each attachment.

    `names` are those of people, roles and channels by id, besides the people that the message mentions.
    """
    known = {**names, **dict(message.mentions)}
    return "\n".join((_plain(message.text, known).strip(), *map(_placeholder, message.attachments))).strip()


def inert(text: str) -> str:
    """A text in one line in which nothing is markup."""
    return MARKUP.sub(r"\\\g<0>", _one_line(text))


def thread_name(text: str) -> str:
    """A name for the thread that answers `text`: its first line with visible text, at most 100 UTF-16 units."""
    for line in text.splitlines():
        if FENCE_LINE.fullmatch(line) is None:
            name = _bare(line[:LOOKED_AT])
            if name:
                return _shortened(name)
    return UNNAMED


def _plain(text: str, names: Mapping[int, str]) -> str:
    def replaced(found: re.Match[str]) -> str:
        kind, value = found.lastgroup, found[found.lastgroup or 0]
        match kind:
            case "user":
                return "@" + _one_line(names.get(int(value), "someone"))
            case "role":
                return "@" + _one_line(names.get(int(value), "role"))
            case "channel":
                return "#" + _one_line(names.get(int(value), "channel"))
            case "emoji":
                return f":{value}:"
            case "command":
                return f"/{value}"
            case _:
                seconds = int(value)
                return f"{rfc3339(seconds)[:16].replace('T', ' ')} UTC" if 0 <= seconds <= LATEST else found[0]

    return NOTATION.sub(replaced, text)


def _placeholder(file: Attachment) -> str:
    # The name of a file must not end the placeholder early.
    name = _one_line(file.filename).replace("[", "(").replace("]", ")") or "file"
    return f"[image: {name}]" if file.is_image else f"[file: {name}, {_size(file.size)}]"


def _size(count: int) -> str:
    """Decimal units: 12,345 bytes are 12 kB."""
    if count < KB:
        return f"{count} B"
    # From 999.5 kB on, rounding would print 1000 kB.
    return f"{count / KB:.0f} kB" if count < MB - KB / 2 else f"{count / MB:.1f} MB"


def _bare(line: str) -> str:
    """A line without markup; empty if nothing of it can be seen."""
    text = ADDRESS.sub(r"\1", LINK.sub(r"\1", _plain(PREFIX.sub("", line, count=1), {})))
    while (bare := PAIRED.sub(r"\2", text)) != text:
        text = bare
    seen = _one_line(text)
    return seen if any(each not in "*_~|`" and unicodedata.category(each)[0] not in "CZM" for each in seen) else ""


def _shortened(name: str) -> str:
    if units(name) <= THREAD_NAME_LIMIT:
        return name
    room = THREAD_NAME_LIMIT - 1
    kept = name[:room]
    while units(kept) > room:
        kept = kept[:-1]
    words = kept if name[len(kept)] == " " else kept.rpartition(" ")[0]
    # A single word fills the line.
    return (words.rstrip() or kept) + "…"


def _one_line(text: str) -> str:
    """White space collapsed, control characters gone."""
    if not text.isprintable():  # printable text has no control characters: the usual case, checked fast
        text = "".join(" " if unicodedata.category(each) == "Cc" else each for each in text)
    return " ".join(text.split())
