"""Keys and values of what was meant to be YAML or JSON and is not: templates, fragments, files with a mistake."""

from __future__ import annotations

import re

from services.documents.outlines import DEEPEST, Leaf, Outline, one_line_value

_PAIR = re.compile(r"(?:-\s{1,9})?[\"']?([\w$@./-][\w$@./ -]{0,119}?)[\"']?\s{0,9}:(?:\s{1,60}(.*))?")
_ITEM = re.compile(r"-\s{1,9}(.*)")


def read_indented(text: str) -> Outline:
    """Who stands further right belongs to who stands above and further left."""
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
