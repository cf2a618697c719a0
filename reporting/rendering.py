"""Writes a document as Markdown, as a page, and for a terminal. What people wrote is inert in each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from rich.console import Console
from rich.table import Table
from rich.text import Text

from reporting.document import Bars, Block, Cell, Sentence, TableRows, Title, WordsWithLink
from sinks.terminal import one_line

_MARKUP = re.compile(r"[\\`*_\[\]<>#|~]|^[-+]|(?<=^\d)[.)](?=\s)")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_WIDTH = 30
"""Columns of the longest bar in a terminal."""


def markdown(blocks: Iterable[Block]) -> str:
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Title(text=text, level=level):
            return f"{'#' * level} {_plain(text)}"
        case Sentence(text=text):
            return _plain(text)
        case TableRows(head=head, rows=rows, numbers=numbers):
            rule = ("---:" if at in numbers else "---" for at in range(len(head)))
            lines = [head, tuple(rule), *(tuple(map(_cell, row)) for row in rows)]
            return "\n".join(f"| {' | '.join(line)} |" for line in lines)
        case Bars(title=title, whole=whole, part=part, bars=bars):
            rows = [(label, f"{all_:g}", f"{some:g}") for label, all_, some in bars]
            return _markdown(TableRows((title, whole, part), rows, frozenset({1, 2})))


def _cell(cell: Cell) -> str:
    if isinstance(cell, WordsWithLink):
        return _plain(cell.text) if cell.address is None else f"[{_plain(cell.text)}](<{cell.address}>)"
    return _plain(cell)


def _plain(text: str) -> str:
    """No markup of what people wrote takes effect."""
    return _MARKUP.sub(r"\\\g<0>", one_line(text))


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: .5rem 0 1rem; }}
th, td {{ text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8884; }}
td {{ vertical-align: top; overflow-wrap: anywhere; }}
.n {{ text-align: right; font-variant-numeric: tabular-nums; }}
time {{ white-space: nowrap; }}
h3 {{ margin: 1.2rem 0 0; }}
svg {{ max-width: 100%; height: auto; }}
.whole {{ fill: #8886; }} .part {{ fill: #2a7; }} text {{ fill: currentColor; font-size: 12px; }}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def page(blocks: Iterable[Block]) -> str:
    """Write blocks as one HTML page that loads nothing."""
    kept = list(blocks)
    title = next((block.text for block in kept if isinstance(block, Title)), "Report")
    return _PAGE.format(title=escape(one_line(title)), body="\n".join(map(_html, kept)))


def _html(block: Block) -> str:
    match block:
        case Title(text=text, level=level):
            return f"<h{level}>{escape(one_line(text))}</h{level}>"
        case Sentence(text=text):
            return f"<p>{escape(one_line(text))}</p>"
        case TableRows(head=head, rows=rows, numbers=numbers):
            kinds = [' class="n"' if at in numbers else "" for at in range(len(head))]
            heads = "".join(
                f'<th scope="col"{kind}>{escape(name)}</th>' for kind, name in zip(kinds, head, strict=True)
            )
            lines = (
                "".join(f"<td{kind}>{_html_cell(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
                for row in rows
            )
            return f"<table><thead><tr>{heads}</tr></thead><tbody><tr>{'</tr><tr>'.join(lines)}</tr></tbody></table>"
        case Bars():
            return _svg(block)


def _html_cell(cell: Cell) -> str:
    if isinstance(cell, WordsWithLink) and cell.address is not None:
        return f'<a href="{escape(cell.address)}" rel="noreferrer">{escape(one_line(cell.text))}</a>'
    text = escape(one_line(cell.text if isinstance(cell, WordsWithLink) else cell))
    return f"<time>{text}</time>" if _DAY.fullmatch(text) else text


def _svg(plot: Bars) -> str:
    """Horizontal bars, with their numbers beside them: readable without colours."""
    most, height = max((whole for _, whole, _ in plot.bars), default=0) or 1, 22
    bars: list[str] = []
    for at, (label, whole, part) in enumerate(plot.bars):
        y, full, some = at * height, 480 * whole / most, 480 * part / most
        bars.append(
            f'<text x="0" y="{y + 14}">{escape(label)}</text>'
            f'<rect class="whole" x="90" y="{y + 3}" width="{full:.1f}" height="14"/>'
            f'<rect class="part" x="90" y="{y + 3}" width="{some:.1f}" height="14"/>'
            f'<text x="{96 + full:.1f}" y="{y + 14}">{part:g} of {whole:g}</text>'
        )
    said = f"{plot.title}: {plot.whole}, and {plot.part}"
    return (
        f'<figure><figcaption>{escape(said)}</figcaption><svg role="img" aria-label="{escape(said)}" '
        f'viewBox="0 0 660 {max(height * len(plot.bars), 1)}" width="660">{"".join(bars)}</svg></figure>'
    )


def show(blocks: Iterable[Block], console: Console) -> None:
    """Print blocks on a terminal."""
    for block in blocks:
        match block:
            case Title(text=text, level=level):
                console.print(Text(f"\n{one_line(text)}", style="bold" if level <= 2 else "cyan"))  # noqa: PLR2004 (the third level is a question)
            case Sentence(text=text):
                console.print(Text(one_line(text)))
            case TableRows():
                console.print(_table(block))
            case Bars(whole=whole, part=part, bars=bars):
                most = max((all_ for _, all_, _ in bars), default=0) or 1
                for label, all_, some in bars:
                    full, held = round(_WIDTH * all_ / most), round(_WIDTH * some / most)
                    line = Text(f"{label}  ")
                    line.append("█" * held, style="green")
                    line.append("░" * (full - held), style="dim")
                    console.print(line.append(f" {all_:g} {whole}, {some:g} {part}"))


def _table(rows: TableRows) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for at, name in enumerate(rows.head):
        table.add_column(name, justify="right" if at in rows.numbers else "left", overflow="fold")
    for row in rows.rows:
        table.add_row(
            *(Text(one_line(cell.text if isinstance(cell, WordsWithLink) else cell), style=_link(cell)) for cell in row)
        )
    return table


def _link(cell: Cell) -> str:
    return f"link {cell.address}" if isinstance(cell, WordsWithLink) and cell.address is not None else ""
