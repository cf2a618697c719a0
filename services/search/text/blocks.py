"""Turns the tokens of a Markdown document into headings and blocks."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from markdown_it.token import Token

from services.search.text.outline import Heading, Piece
from services.search.text.phrases import plain_text, write
from services.search.text.sections import Block, BlockKind
from services.search.text.tables import Cell, fenced, table

_FLUSH = "\x02"
"""Begins each line of code while lists are put together: it is not indented, as Discord would show the indent."""
_WORD = re.compile(r"\w")
_MARKS = re.compile(r"<!-+|(?<!-)-++>|[{}%]+|\b\w+:\w+ ")
_LANGUAGE = re.compile(r"\s*+\{?\s*+\.?(?P<name>[A-Za-z][\w+#.-]*)")
_TAB = re.compile(r"""\[(?P<name>[^\[\]]+)\]|(?<![\w-])tab=(?P<mark>["'])(?P<title>[^"'\n]+)(?P=mark)""")
"""Which of several. `title="pyproject.toml"` is left out: on pages full of them, search finds less."""
_ANNOTATION = re.compile(
    r"(?<![ \t])[ \t]*+(?:#|//|--|;|<!--|/\*)[ \t]*+(?:\(\d{1,3}\)![ \t]*+){1,5}(?:-->|\*/)?[ \t]*+$", re.MULTILINE
)
_EDITOR_MARK = re.compile(
    r"(?<![ \t])[ \t]*+(?:#|//|--|;|<!--|\{?/\*)[ \t]*+\[!code[^\]\n]{0,200}\][ \t]*+(?:-->|\*/\}?)?[ \t]*+$",
    re.MULTILINE,
)
_GONE_LINE = re.compile(
    r"^[ \t]*(?:(?://|#|<!--|\{?/\*)[ \t]*highlight-(?:next-line|start|end)[ \t]*(?:-->|\*/\}?)?"
    r"|(?:#[ \t]*)?-{1,}8<-{1,}.*|(?:<!--|#|//)[ \t]*-{1,}8<-{1,}.*)[ \t]*\n?",
    re.MULTILINE,
)


def pieces(tokens: Sequence[Token]) -> list[Piece]:
    """Headings and blocks in their order."""
    return [
        Block(piece.kind, piece.text.replace(_FLUSH, "")) if isinstance(piece, Block) else piece
        for piece in _Reader(tokens).read(0, len(tokens), top=True)
    ]


class _Reader:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._ends = _ends(tokens)

    def read(self, start: int, end: int, *, top: bool = False) -> list[Piece]:
        """What stands between two tokens. Below the top, headings are bold lines."""
        found: list[Piece] = []
        lead = False  # the last piece is a title, and nothing has come below it
        at = start
        while at < end:
            token, close = self._tokens[at], self._ends[at]
            if token.type == "lead_end":
                if lead:
                    found.pop()
                lead = False
            for each in self._one(token, at, close):
                piece = each if top or isinstance(each, Block) else Block(BlockKind.PROSE, f"**{each.title}**")
                last = found[-1] if found else None
                if lead and isinstance(piece, Block) and piece.kind is BlockKind.PROSE and isinstance(last, Block):
                    found[-1] = Block(BlockKind.PROSE, f"{last.text}\n{piece.text}")
                else:
                    found.append(piece)
                lead = bool(token.type == "paragraph_open" and token.meta.get("lead"))
            at = close + 1
        return found

    def _one(self, token: Token, at: int, close: int) -> Iterator[Piece]:
        kind = token.type
        if kind == "heading_open":
            inline = self._tokens[at + 1]
            title = plain_text(inline.children) or " ".join(_MARKS.sub(" ", inline.content).split())
            if title:
                yield Heading(int(token.tag[1]), title, token.meta.get("anchor", ""))
        elif kind == "paragraph_open":
            yield from self._paragraph(token, self._tokens[at + 1])
        elif kind in {"fence", "code_block"}:
            yield from _code(token)
        elif kind in {"bullet_list_open", "ordered_list_open", "dl_open"}:
            text = self._list(at, close)
            if _WORD.search(text):
                yield Block(BlockKind.LIST, text)
        elif kind == "table_open":
            yield from self._table(at, close)
        elif kind == "blockquote_open":
            yield from self._quote(token, at, close)
        elif close > at:
            yield from self.read(at + 1, close)

    @staticmethod
    def _paragraph(token: Token, inline: Token) -> Iterator[Block]:
        text = inline.content.strip() if inline.type == "verbatim" else write(inline.children)
        if not _WORD.search(text):
            return
        if token.meta.get("lead"):
            text = " ".join(text.split("\n")).replace("**", "")
            text = f"**{text}**"
        yield Block(BlockKind.PROSE, text)

    def _list(self, start: int, end: int) -> str:
        ordered = self._tokens[start].type == "ordered_list_open"
        number = int(self._tokens[start].attrs.get("start", 1)) if ordered else 0
        lines: list[str] = []
        at = start + 1
        while at < end:
            token, close = self._tokens[at], self._ends[at]
            if token.type == "dt_open":
                lines.append(f"- **{write(self._tokens[at + 1].children).replace('**', '')}**")
            else:
                mark = "" if token.type == "dd_open" else f"{number}. " if ordered else "- "
                lines.extend(_item(mark, self.read(at + 1, close)))
                number += 1
            at = close + 1
        return "\n".join(lines)

    def _quote(self, token: Token, start: int, end: int) -> Iterator[Piece]:
        alert = token.meta.get("alert")
        inside = self.read(start + 1, end)
        if alert is None:
            yield from (_quoted(piece) if isinstance(piece, Block) else piece for piece in inside)
            return
        first = inside[0] if inside else None
        if alert and isinstance(first, Block) and first.kind is BlockKind.PROSE:
            yield Block(BlockKind.PROSE, f"**{alert}**\n{first.text}")
            inside = inside[1:]
        elif alert:
            yield Block(BlockKind.PROSE, f"**{alert}**")
        yield from inside

    def _table(self, start: int, end: int) -> Iterator[Block]:
        rows: list[list[Cell]] = []
        headers: list[bool] = []
        for at in range(start, end):
            token = self._tokens[at]
            if token.type == "tr_open":
                rows.append([])
                headers.append(True)
            elif token.type in {"th_open", "td_open"} and rows:
                inline = self._tokens[at + 1]
                marked = inline.content if inline.type == "verbatim" else write(inline.children)
                plain = plain_text(inline.children) or ("" if inline.children else marked)
                rows[-1].append(Cell(plain, (Block(BlockKind.PROSE, " ".join(marked.split())),)))
                headers[-1] = headers[-1] and token.type == "th_open"
        header = [cell.plain for cell in rows.pop(0)] if headers and headers[0] else []
        for block in table(header, rows):
            yield Block(block.kind, _flush(block.text)) if block.kind is BlockKind.TABLE else block


def _ends(tokens: Sequence[Token]) -> list[int]:
    """For each token the index of the one that closes it, its own where it opens nothing."""
    ends = list(range(len(tokens)))
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.nesting > 0:
            opened.append(at)
        elif token.nesting < 0 and opened:
            ends[opened.pop()] = at
    return ends


def _item(mark: str, inside: Sequence[Piece]) -> list[str]:
    """The lines of an item: below its first they are indented, except those of code."""
    lines = "\n".join(piece.text for piece in inside if isinstance(piece, Block)).split("\n")
    indent = " " * (len(mark) or 2)
    if not mark:
        return [line if line.startswith(_FLUSH) else f"{indent}{line}" for line in lines if line]
    if not any(lines):
        return []
    first = [mark.rstrip(), lines[0]] if lines[0].startswith(_FLUSH) else [f"{mark}{lines[0]}"]
    return [*first, *(line if line.startswith(_FLUSH) or not line else f"{indent}{line}" for line in lines[1:])]


def _quoted(block: Block) -> Block:
    if block.kind in {BlockKind.CODE, BlockKind.TABLE}:
        return block
    lines = [line if line.startswith(_FLUSH) else f"> {line}" for line in block.text.split("\n")]
    return Block(block.kind, "\n".join(lines))


def _code(token: Token) -> Iterator[Block]:
    text = token.content
    if "8<" in text or "highlight-" in text:
        text = _GONE_LINE.sub("", text)
    if ")!" in text:
        text = _ANNOTATION.sub("", text)
    if "[!code" in text:
        text = _EDITOR_MARK.sub("", text)
    text = textwrap.dedent(text).strip("\n").rstrip()
    if not text.strip():
        return
    tab = _TAB.search(token.info)
    title = " ".join((tab["name"] or tab["title"]).replace("*", "").split()) if tab else ""
    if title:
        # Nothing in the name of a file is a mark of Markdown.
        yield Block(BlockKind.PROSE, f"**`{title}`**" if _is_file(title) else f"**{title}**")
    language = _LANGUAGE.match(token.info)
    yield Block(BlockKind.CODE, _flush(fenced(text, language["name"].lower() if language else "")))


def _is_file(title: str) -> bool:
    return " " not in title and "`" not in title and not {".", "/", "_"}.isdisjoint(title)


def _flush(text: str) -> str:
    return "\n".join(_FLUSH + line for line in text.split("\n"))
