"""What is printed in a terminal, as a picture."""

from __future__ import annotations

import io
import re

from rich.console import Console
from rich.theme import Theme


def canvas(columns: int, theme: Theme | None = None) -> Console:
    """A terminal of `columns` characters a line that remembers what is printed on it."""
    return Console(
        record=True,
        file=io.StringIO(),
        width=columns,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        theme=theme,
    )


def drawn(console: Console, title: str, name: str) -> str:
    """The SVG of what was printed. The fonts are the reader's own: nothing is fetched to show it."""
    svg = console.export_svg(title=title, unique_id=name)
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")
