"""Keys and values line by line: INI, .env, properties, .conf in its many dialects, and what looks like YAML or JSON."""

from __future__ import annotations

import re

from services.documents.reading.decoding import lines_of
from services.documents.reading.outlines import DEEPEST, Leaf, Outline, Path, one_line_value

_COMMENTS = ("#", ";", "!", "//", "--")
_SECTION = re.compile(r"\[{1,2}\s{0,9}([^\[\]\n]{1,200})\]{1,2}\s*(?:[#;].*)?")
_ASSIGNMENT = re.compile(
    r"(?:export\s{1,9}|set\s{1,9})?([A-Za-z_$\"'][^\s=:{}<>;#]{0,199}(?: [\w.-]{1,60}){0,4}?)"
    r"\s{0,60}(?:=>|:=|\+=|[=:](?!//))\s{0,60}(.*)"
)
_OPENING = re.compile(r"([^{}#;]{1,300}?)\s{0,9}\{\s{0,9}(?:#.*)?")
_TAG = re.compile(r"<(/?)\s{0,9}([A-Za-z][^<>]{0,300})>")
_DIRECTIVE = re.compile(r"([A-Za-z_][\w.-]{0,99})\s{1,60}([^\s].*)")
_REMARK = re.compile(r"\s{1,60}[#;]\s")


def read_ini(text: str) -> Outline:
    """Any text has an outline of this kind; of prose it is an empty or a meaningless one."""
    reader = _Reader()
    at = 0
    for number, line in enumerate(lines_of(text), start=1):
        reader.take(line, number, at)
        at += len(line) + 1
    reader.finish()
    return reader.outline


class _Reader:
    def __init__(self) -> None:
        self.outline = Outline(comments=_COMMENTS)
        self._section: Path = ()
        self._blocks: list[str] = []
        self._unfinished: Leaf | None = None
        """A value that continues in the next line."""

    def take(self, line: str, number: int, at: int) -> None:
        """Read line `number`, which begins at `at`."""
        bare = line.strip()
        at += len(line) - len(line.lstrip())
        if self._unfinished:
            self._go_on(self._unfinished, bare, number, at)
        elif not bare or bare.startswith(_COMMENTS):
            return
        elif found := _SECTION.fullmatch(bare):
            self._section, self._blocks = (found[1].strip(),), []
            self.outline.add_key(self._section, number)
        elif not self._nested(bare, number):
            self._pair(bare, number, at)

    def finish(self) -> None:
        if self._unfinished:
            self.outline.add(self._unfinished)

    def _pair(self, bare: str, number: int, at: int) -> None:
        found = _ASSIGNMENT.fullmatch(bare) or _DIRECTIVE.fullmatch(bare)
        if found is None:
            return
        path = (*self._section, *self._blocks, found[1].strip().strip("\"'"))
        self.outline.add_key(path, number)
        start, end = _value(found[2])
        value, start, end = found[2][start:end], at + found.start(2) + start, at + found.start(2) + end
        leaf = Leaf(path, one_line_value(value), number, number, start, end)
        if value.endswith("\\") and not value.endswith("\\\\"):
            self._unfinished = leaf._replace(value=leaf.value.rstrip("\\").strip())
        else:
            self.outline.add(leaf)

    def _go_on(self, leaf: Leaf, bare: str, number: int, at: int) -> None:
        more = bare.rstrip("\\").strip()
        value = one_line_value(f"{leaf.value} {more}")
        leaf = leaf._replace(value=value, line_end=number, end=at + len(more))
        self._unfinished = leaf if bare.endswith("\\") else None
        if self._unfinished is None:
            self.outline.add(leaf)

    def _nested(self, bare: str, number: int) -> bool:
        """Blocks in braces or in tags, as web servers have them: whether this line opened or closed one."""
        if bare in ("}", "};", "},"):
            del self._blocks[-1:]
            return True
        if found := _OPENING.fullmatch(bare):
            name = found[1].strip().rstrip("=:").strip()
        elif tag := _TAG.fullmatch(bare):
            if tag[1]:
                del self._blocks[-1:]
                return True
            name = tag[2].strip()
        else:
            return False
        if len(self._blocks) == DEEPEST:
            del self._blocks[-1]
        self._blocks.append(name)
        self.outline.add_key((*self._section, *self._blocks), number)
        return True


def _value(value: str) -> tuple[int, int]:
    """Start and end of the value in the text behind the key: without quotes, and without a remark."""
    if value[:1] in ("'", '"') and (end := value.find(value[0], 1)) > 0:
        return 1, end
    remark = _REMARK.search(value)
    return 0, len(value[: remark.start() if remark else None].rstrip("; ,\t"))


_PAIR = re.compile(r"(?:-\s{1,9})?[\"']?([\w$@./-][\w$@./ -]{0,119}?)[\"']?\s{0,9}:(?:\s{1,60}(.*))?")
_ITEM = re.compile(r"-\s{1,9}(.*)")


def read_indented(text: str) -> Outline:
    """Keys and values of templates, fragments and files with a mistake, nested by their indents."""
    outline = Outline(comments=("#", "//"))
    open_keys: list[tuple[int, str]] = []
    after = 0
    for number, line in enumerate(text.split("\n"), start=1):
        at, after = after, after + len(line) + 1
        bare = line.strip()
        if not bare or bare.startswith(("#", "//")):
            continue
        indent = len(line) - len(line.lstrip())
        while open_keys and open_keys[-1][0] >= indent:
            open_keys.pop()
        path = tuple(name for _, name in open_keys)
        if found := _PAIR.fullmatch(bare):
            value = (found[2] or "").rstrip(",").strip()
            outline.add_key((*path, found[1]), number)
            if value and value not in ("{", "[", "|", ">", "|-", ">-"):
                start = at + indent + found.start(2)
                plain = one_line_value(value.strip("\"'"))
                leaf = Leaf((*path, found[1]), plain, number, number, start, start + len(value))
                outline.add(leaf)
            else:
                del open_keys[DEEPEST - 1 :]
                open_keys.append((indent, found[1]))
        elif path and (item := _ITEM.fullmatch(bare)):
            start, end = at + indent + item.start(1), at + indent + item.end(1)
            outline.add(Leaf(path, one_line_value(item[1].strip("\"'")), number, number, start, end))
    return outline
