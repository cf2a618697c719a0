"""Messages → plain text; answers → pieces that Discord accepts, code blocks intact.

Length is counted in UTF-16 code units. Discord's documentation does not say which "characters" it counts; no other
unit gives a larger number, so no piece is too long.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

from clock import rfc3339
from model.messages import Attachment, Message
from model.words import clean

THREAD_NAME_LIMIT = 100  # Discord API reference, "Start Thread from Message"
READ_OF_LINE_CHARS = 400  # of a line from which a name is made: enough for its markup, and a bound on the work
DEFAULT_THREAD_NAME = "Question"

KB, MB = 1_000, 1_000_000

NOTATION = re.compile(
    r"<(?:@!?(?P<user>\d{1,20})|@&(?P<role>\d{1,20})|#(?P<channel>\d{1,20})|a?:(?P<emoji>\w+):\d{1,20}"
    r"|/(?P<command>[^:<>\n]+):\d{1,20}|t:(?P<time>-?\d{1,13})(?::[a-zA-Z])?)>"
)
"""Discord API reference, "Message formatting"."""

_NOT_OF_A_TOKEN = re.compile(r"[^\w.-]+|(?<=www)\.", re.IGNORECASE)

LATEST_TIME = 253_402_300_799  # the last second of the year 9999: later times stay as they were written

PREFIX = re.compile(r"\A\s*(?:#{1,3}\s+|-#\s+|>{1,3}\s+|[-*+]\s+|\d{1,3}[.)]\s+)+")
FENCE_LINE = re.compile(r"\s*(?:`{3,}|~{3,})[\w+#.-]*\s*")
LINK = re.compile(r"\[([^\[\]]+)\]\(<?[^\s()<>]+>?\)")
ADDRESS = re.compile(r"<(https?://[^\s<>]+)>")
MARKUP = re.compile(r"[\\`*_~|<>\[\]@#]")
EMPHASIS_MARK = re.compile(r"[*_~|`]")
"""The first characters of `PAIRED`: a search for these is far cheaper, and most lines have none."""
CODE_OR_SPOILER = re.compile(r"```[\s\S]*?```|`[^`\n]*`|\|\|([\s\S]+?)\|\|")
PAIRED = re.compile(r"(\*\*\*|\*\*|__|~~|\|\||`+|(?<!\w)[*_])(?=\S)(.+?)(?<=\S)\1(?!\w)")


def render(message: Message, names: Mapping[int, str]) -> str:
    """Return the text of a message, plain and trimmed, then a line for each attachment.

    `names`: of people, roles and channels by id, in addition to the people that the message mentions.
    """
    text = _plain(message.text, {**names, **dict(message.mentions)}).strip()
    return "\n".join((text, *map(_placeholder, message.attachments))).strip() if message.attachments else text


def escape_markup(text: str) -> str:
    """Put a text into one line and escape its markup."""
    return MARKUP.sub(r"\\\g<0>", _one_line(text))


def thread_name(text: str) -> str:
    """Return a name for the thread that answers `text`: its first line with visible text, at most 100 UTF-16 units."""
    for line in CODE_OR_SPOILER.sub(lambda found: "…" if found[1] else found[0], text).splitlines():
        if FENCE_LINE.fullmatch(line) is None:
            name = _without_markup(line[:READ_OF_LINE_CHARS])
            if name:
                return _shortened(name)
    return DEFAULT_THREAD_NAME


def _plain(text: str, names: Mapping[int, str]) -> str:
    if "<" not in text:  # as nearly every text
        return text

    def replaced(found: re.Match[str]) -> str:
        kind, value = found.lastgroup, found[found.lastgroup or 0]
        match kind:
            case "user":
                return "@" + _token(names.get(int(value), "someone"))
            case "role":
                return "@" + _token(names.get(int(value), "role"))
            case "channel":
                return "#" + _token(names.get(int(value), "channel"))
            case "emoji":
                return f":{value}:"
            case "command":
                return f"/{value}"
            case _:
                seconds = int(value)
                return f"{rfc3339(seconds)[:16].replace('T', ' ')} UTC" if 0 <= seconds <= LATEST_TIME else found[0]

    return NOTATION.sub(replaced, text)


def _token(name: str) -> str:
    """Return a name as one token that is no address: it must not add words to the message that mentions it."""
    return _NOT_OF_A_TOKEN.sub("_", name)


def _placeholder(file: Attachment) -> str:
    # The name of a file must not end the placeholder early.
    name = _one_line(file.filename).replace("[", "(").replace("]", ")") or "file"
    return f"[image: {name}]" if file.is_image else f"[file: {name}, {_size(file.size)}]"


def _size(count: int) -> str:
    """Return a size in decimal units: 12,345 bytes are 12 kB."""
    if count < KB:
        return f"{count} B"
    # From 999.5 kB on, rounding would print 1000 kB.
    return f"{count / KB:.0f} kB" if count < MB - KB / 2 else f"{count / MB:.1f} MB"


READ_FOR_NAME_CHARS = 500
"""Characters of a line that may become part of a name: several times its length. Of 4,000 backticks, looking for pairs
takes most of a second, in which nothing else runs.
"""


def _without_markup(line: str) -> str:
    """Return a line without markup; empty if nothing of it can be seen."""
    text = _plain(PREFIX.sub("", line, count=1), {})[:READ_FOR_NAME_CHARS]
    if "](" in text or "<" in text:
        text = ADDRESS.sub(r"\1", LINK.sub(r"\1", text))
    while EMPHASIS_MARK.search(text) and (bare := PAIRED.sub(_without_marks, text)) != text:
        text = bare
    seen = _one_line(text)
    return seen if any(each not in "*_~|`…" and unicodedata.category(each)[0] not in "CZM" for each in seen) else ""


def _without_marks(found: re.Match[str]) -> str:
    """Return a marked piece of text without its marks; "…" for what its author struck out."""
    return "…" if found[1] == "~~" else found[2]


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
    """Collapse white space, and remove control characters and marks of writing direction."""
    return " ".join(clean(text).split())


MAX_MESSAGE_UNITS = 2_000  # content of one message (Discord API reference, "Create Message")

FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})(?P<info>.*)")
BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)+")
GAP = re.compile(r"(?:[^\S\n]*\n)+|[^\S\n]+")
"""White space dropped at a cut: line ends and blank lines, but not the indentation after them."""

PARAGRAPH, LINE, LINE_OF_CODE, SENTENCE, WORD, ANYWHERE, FENCE_LIKE = range(7)
"""The ranks of cuts, best first. A code block is cut only if there is no line end outside of one. A cut beside what
looks like a fence could make or break one: it is made only in text of nothing but fence marks.
"""


class Fence(NamedTuple):
    """The beginning of a code block that is open. `mark`: the backticks or tildes that close it."""

    opening: str  # the whole line, to open it again
    mark: str


class Piece(NamedTuple):
    """A piece of a text. `reopened`, `closed`: the code block that is opened again before it, and closed after it."""

    reopened: Fence | None
    body: str
    closed: Fence | None


def units(text: str) -> int:
    """Return the length of `text` in UTF-16 code units."""
    return len(text) + (0 if text.isascii() else sum(character > "\uffff" for character in text))


def split(text: str, limit: int = MAX_MESSAGE_UNITS) -> list[str]:
    """Split `text` into pieces of at most `limit` (≥ 2) units, none blank; a blank `text` has no pieces.

    Cut after a paragraph, else a line, a sentence, a word, else anywhere. A code block (``` or ~~~) that is cut is
    closed, and opened again in the next piece; one that the text leaves open is closed at the end. Put together
    without these added fences, the pieces are the text, except for white space at the cuts.
    """
    return [
        (f"{reopened.opening}\n" if reopened else "") + body + (f"\n{closed.mark}" if closed else "")
        for reopened, body, closed in pieces(text, limit)
    ]


def pieces(text: str, limit: int = MAX_MESSAGE_UNITS) -> Iterator[Piece]:
    """Return the pieces, each with the fences that were added to it kept apart."""
    rest, fence, gap = text.rstrip(), None, BLANK_LINES
    while rest := rest[found.end() :] if (found := gap.match(rest)) else rest:
        if units(rest) - units(rest.lstrip()) > limit // 4:
            rest = rest.lstrip()  # an indentation that leaves no room for text
        if fence is None and units(rest) <= limit and "```" not in rest and "~~~" not in rest:
            yield Piece(None, rest, None)  # as nearly every reply: nothing to cut, nothing to close
            return
        end, closed = _cut(rest, fence, limit)
        yield Piece(fence, rest[:end].rstrip(), closed)
        rest, fence, gap = rest[end:], closed, GAP


def _cut(rest: str, fence: Fence | None, limit: int) -> tuple[int, Fence | None]:
    """Find the end of the piece that begins with `rest`, inside `fence`; returns it and the code block open there."""
    room = limit - (units(fence.opening) + 1 if fence else 0)
    used = [0, *accumulate(map(units, rest[: room + 1]))]
    text_begins = len(rest) - len(rest.lstrip())
    best: dict[int, tuple[int, Fence | None]] = {}
    start = 0
    while start < len(used):
        stop = len(rest) if (found := rest.find("\n", start)) < 0 else found
        line, before = rest[start:stop], fence
        fence = _fence_after(line, before, limit)
        looks_like_fence, next_text = FENCE.match(line) is not None, start
        for end in range(max(start, text_begins) + 1, min(stop + 1, len(used))):
            if used[end] + (len(fence.mark) + 1 if fence else 0) > room:
                break
            while next_text < stop and (next_text < end or rest[next_text] in " \t"):
                next_text += 1  # once over each character: a run of blanks may be long
            if end == stop:
                rank = _rank_of_line_end(rest[stop:], before, fence, limit)
            elif fence is not before:
                rank = None
            elif looks_like_fence or rest.startswith(("```", "~~~"), next_text):
                rank = FENCE_LIKE
            else:
                rank = _rank_within(line, end - start, in_code=fence is not None)
            if rank is not None:
                best[rank] = end, fence  # the last of a rank fills the piece most
        start = stop + 1
    return best[min(best)]


def _rank_of_line_end(after: str, before_line: Fence | None, fence: Fence | None, limit: int) -> int | None:
    """`after`: the text from the line end on. None: a cut would open a code block again only to close it."""
    if not after:
        return PARAGRAPH
    if fence is not None:
        opens_here = fence is not before_line
        closes_next = _fence_after(after.lstrip().partition("\n")[0], fence, limit) is None
        return None if opens_here or closes_next else LINE_OF_CODE
    return PARAGRAPH if not after[1:].partition("\n")[0].strip() else LINE


def _rank_within(line: str, end: int, *, in_code: bool) -> int:
    if not line[end].isspace() or line[end - 1].isspace():
        return ANYWHERE
    ends_sentence = not in_code and line[:end].rstrip("\"')]*_").endswith(tuple(".!?…。！？"))
    return SENTENCE if ends_sentence else WORD


def _fence_after(line: str, fence: Fence | None, limit: int) -> Fence | None:
    """Return the code block that is open after `line` (CommonMark, "Fenced code blocks", at any indentation)."""
    found = FENCE.fullmatch(line)
    # What would fill a quarter of a piece when repeated is no fence but text.
    if found is None or units(line) > limit // 4:
        return fence
    mark, info = found["mark"], found["info"]
    if fence is None:
        return None if mark[0] == "`" and "`" in info else Fence(line.rstrip(), mark)
    closes = mark[0] == fence.mark[0] and len(mark) >= len(fence.mark) and not info.strip()
    return None if closes else fence
