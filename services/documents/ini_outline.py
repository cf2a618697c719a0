"""Keys and values of what is written line by line: INI, .env, properties, and .conf in its many dialects."""

from __future__ import annotations

import re

from services.documents.outlines import Key, Leaf, Outline, Path, one_line_value

_COMMENTS = ("#", ";", "!", "//", "--")
_SECTION = re.compile(r"\[{1,2}\s{0,9}([^\[\]\n]{1,200})\]{1,2}\s*(?:[#;].*)?")
_ASSIGNMENT = re.compile(
    r"(?:export\s{1,9}|set\s{1,9})?([A-Za-z_$\"'][^\s=:{}<>;#]{0,199}(?: [\w.-]{1,60}){0,4}?)"
    r"\s{0,60}(?:=>|:=|\+=|[=:](?!//))\s{0,60}(.*)"
)
_OPENING = re.compile(r"([^{}#;]{1,300}?)\s{0,9}\{\s{0,9}(?:#.*)?")
_TAG = re.compile(r"<(/?)\s{0,9}([A-Za-z][^<>]{0,300})>")
_DIRECTIVE = re.compile(r"([A-Za-z_][\w.-]{0,99})\s{1,60}([^\s].*?);?")
_REMARK = re.compile(r"\s{1,60}[#;]\s.*$")


def read_ini(text: str) -> Outline:
    """Any text has an outline of this kind; of prose it is an empty or a meaningless one."""
    outline = Outline(comments=_COMMENTS)
    section: Path = ()
    blocks: list[str] = []
    pending: tuple[Path, list[str], int] | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.strip()
        if pending:  # the line before ended in a backslash
            path, parts, first = pending
            parts.append(bare.rstrip("\\").strip())
            if not bare.endswith("\\"):
                outline.leaves.append(Leaf(path, one_line_value(" ".join(parts)), first, number))
                pending = None
            continue
        if not bare or bare.startswith(_COMMENTS):
            continue
        if found := _SECTION.fullmatch(bare):
            section, blocks = (found[1].strip(),), []
            outline.keys.append(Key(section, number))
            continue
        if _nested(outline, section, blocks, bare, number):
            continue
        path = (*section, *blocks)
        found = _ASSIGNMENT.fullmatch(bare) or _DIRECTIVE.fullmatch(bare)
        if found is None:
            continue
        key = found[1].strip().strip("\"'")
        outline.keys.append(Key((*path, key), number))
        value = found[2].strip()
        if value.endswith("\\") and not value.endswith("\\\\"):
            pending = (*path, key), [value.rstrip("\\").strip()], number
        else:
            outline.leaves.append(Leaf((*path, key), one_line_value(_value(value)), number, number))
    if pending:
        outline.leaves.append(Leaf(pending[0], one_line_value(" ".join(pending[1])), pending[2], pending[2]))
    return outline


def _nested(outline: Outline, section: Path, blocks: list[str], bare: str, number: int) -> bool:
    """Blocks in braces or in tags, as web servers have them: whether this line opened or closed one."""
    if bare in ("}", "};", "},"):
        del blocks[-1:]
        return True
    if found := _OPENING.fullmatch(bare):
        name = found[1].strip().rstrip("=:").strip()
    elif tag := _TAG.fullmatch(bare):
        if tag[1]:
            del blocks[-1:]
            return True
        name = tag[2].strip()
    else:
        return False
    blocks.append(name)
    outline.keys.append(Key((*section, *blocks), number))
    return True


def _value(value: str) -> str:
    if len(value) > 1 and value[0] in "\"'":
        end = value.find(value[0], 1)
        if end > 0:
            return value[1:end]
    return _REMARK.sub("", value).rstrip(";,").strip()
