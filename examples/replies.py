"""Draws ten questions about the demo's documentation, and what is replied to them, as `docs/replies.svg`.

python examples/replies.py            draws it
python examples/replies.py --check    exits 1 when the picture no longer shows what is replied
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import tempfile
from pathlib import Path

from drawing import canvas, drawn
from rich.box import Box
from rich.console import Group
from rich.markdown import Markdown
from rich.panel import Panel
from rich.text import Text
from rich.theme import Theme

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "replies.svg"
TITLE = "What is asked, and what the bot replies without a model"
COLUMNS = 100
STYLES = Theme({"markdown.code": "#a5d6ff on #2b2d31", "markdown.link_url": "underline #58a6ff"})
# On the left only: where a viewer's characters are narrower than ours, a right edge would be ragged.
_BAR = Box("┃   \n" * 7 + "    ")
_CELL = 12.2
"""The width of a character in the picture."""
_BLANK = "&#160;"
_TEXT = re.compile(r'(<text [^>]*?x=")([^"]*)("[^>]*?textLength=")([^"]*)("[^>]*>)([^<]*)</text>')

# As people type them. The documentation has no answer to the last two.
QUESTIONS = {
    "mira": "my dad moved his vault to a new disk and now every backup crawls. did we break something?",
    "tobek": "lost the passphrase of our vault, any way to still read it?",
    "jun": "a job is stuck at waiting for lock, the laptop that held it died",
    "halvard": "schedules in my docker container run an hour off, how do i set the time zone?",
    "priya": "I deleted the wrong snapshot yesterday, can I undo that?",
    "oskar_b": "which ports do i have to open so that my laptops reach the server?",
    "lin": "what do i need to know before going from 2.9 to the newest version",
    "amadou": "how can i put a vault into a minio bucket? it is on our lan, not at amazon",
    "greta": "can i sign in with our company's okta account?",
    "sam": "does anybody know a good UPS for a small rack at home?",
}


def draw() -> str:
    """The questions and replies much as Discord shows them."""
    sys.path.insert(0, str(ROOT))
    logging.disable(logging.CRITICAL)
    # Whatever has been built beside the demo is left alone, so that everybody draws the same.
    with tempfile.TemporaryDirectory() as folder:
        replies = asyncio.run(_replies(Path(folder)))
    console = canvas(COLUMNS, STYLES)
    for (name, question), reply in zip(QUESTIONS.items(), replies, strict=True):
        console.print(_exchange(name, question, reply))
    return _without_outer_blanks(drawn(console, TITLE, "replies"))


async def _replies(folder: Path) -> list[str]:
    """Ask each question by itself, with a data folder in `folder`. Returns the texts of the replies."""
    from assembly.answering import conversation_of, open_answering  # noqa: PLC0415 - found only once the path is set
    from assembly.sources import temporary_index  # noqa: PLC0415 - as above
    from settings import load  # noqa: PLC0415 - as above

    with temporary_index(load(ROOT / "examples" / "demo.yaml").for_replay(folder)) as settings:
        async with open_answering(settings) as answering:
            asked = [conversation_of(settings, question) for question in QUESTIONS.values()]
            results = [await answering.answerer.generate_reply(each) for each in asked]
    return [result.reply_text or "" for result in results]


def _exchange(name: str, question: str, reply: str) -> Group:
    asked = Text.assemble((name, "bold #f0b232"), "  ", ("@Millrace", "#c9cdfb on #3c4270"), f" {question}")
    shown = Panel(
        Markdown(_with_breaks(reply), code_theme="github-dark", hyperlinks=True),
        title="[bold #5865f2]Millrace[/]",
        title_align="left",
        box=_BAR,
        border_style="#5865f2",
        padding=(0, 1),
    )
    return Group(asked, shown)


def _with_breaks(reply: str) -> str:
    """In Discord every line break counts; in Markdown elsewhere it takes two blanks before it."""
    parts = re.split(r"(```.*?```)", reply, flags=re.DOTALL)  # every second one is code
    return "".join(part if at % 2 else re.sub(r"(?<=\S)\n(?=\S)", "  \n", part) for at, part in enumerate(parts))


def _without_outer_blanks(svg: str) -> str:
    """Each text from its first letter to its last: not every viewer keeps the blanks around it."""

    def trimmed(found: re.Match[str]) -> str:
        before, x, between, length, after, text = found.groups()
        text = text.replace(_BLANK, " ")
        inner = text.strip()
        if not inner:
            return ""
        moved = float(x) + _CELL * (len(text) - len(text.lstrip()))
        kept = float(length) - _CELL * (len(text) - len(inner))
        return f"{before}{moved:g}{between}{kept:g}{after}{inner.replace(' ', _BLANK)}</text>"

    return _TEXT.sub(trimmed, svg)


def main() -> int:
    picture = draw().encode()
    if "--check" in sys.argv[1:]:
        if PICTURE.is_file() and PICTURE.read_bytes() == picture:
            return 0
        print("docs/replies.svg is stale: run python examples/replies.py", file=sys.stderr)
        return 1
    PICTURE.write_bytes(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
