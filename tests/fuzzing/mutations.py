"""Documents as they come from outside: valid ones, damaged in the ways in which files and payloads are; and mere bytes.

Random bytes are refused by the first check of a parser and reach nothing behind it, so most cases begin as something
valid.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

CASES = int(os.environ.get("MILLRACE_FUZZ", "50"))
"""Of each property; `make fuzz` sets 10,000."""

THOROUGHLY = settings(
    max_examples=CASES,
    # The ordinary run tries the same cases each time, and fails for nobody by chance; `make fuzz` looks for new ones.
    derandomize="MILLRACE_FUZZ" not in os.environ,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],  # explaining takes longer than all cases
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)

DEEP, NEARLY = 3_000, 850  # levels: more than Python descends to, and nearly as many
LONG = "9" * 5_000  # more digits than Python makes a number of

# fmt: off
TEXTS: tuple[str, ...] = (
    "", " ", "\x00", "\ud800", "\udc00", "\u202e", "\u2028", "\x85", "\ufeff", "\ufffd", "\u00a0", "é", "😀", "٣", "\t",
    "-1", "0", "1e400", "NaN", "null", LONG, "x" * 5_000, "\r\n", "\n\n", "\x1b[31m", "../x", "`", "¦", "\ud83d",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-02-30T00:00:00Z", "2026-02-01T00:00:00",
    "--- QA ---\n", "kb:x.md", "team:x.txt", "thread_" + LONG, "qa_99991231_235959.999999",
)
"""What may stand where a text does."""

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 1e308, float("inf"), float("-inf"), float("nan"), 2**63, 2**64, 10**30, -(10**400),
    list[Any](), dict[str, Any](), [list[Any]()], [None], {"": None}, {"id": {"id": list[Any]()}}, *TEXTS,
)
"""What may stand where any value does."""

_PIECES: tuple[bytes, ...] = (
    *(each.encode("utf-8", "surrogatepass") for each in TEXTS),
    b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xc3", b"\\ud800", b"\\u0000", b"\\", b'"', b"'", b"{", b"}", b"[", b"]",
    b",", b":", b"=", b"#", b"<", b">", b"</", b"<!--", b"]]>", b"&lt;", b"&a ", b"*a", b"!!binary ", b"? ", b"- ",
    b"|", b"%", b"---\n", b"```\n", b"~~~\n", b"\r", b"\n", b"NaN", b"-Infinity", b"1e400", b"true", b"0x", b"+",
    b"[" * DEEP, b"{" * DEEP, b'{"a":' * DEEP, b"(" * DEEP, b"<a>" * DEEP, b"- " * DEEP, b"> " * DEEP, b"-" * DEEP,
)
_REPLACEMENTS = (
    b"null", b"true", b"-1", b"0", b"1.5", b"1e400", b"NaN", b"[]", b"{}", b'""', b'"x"', b"99999999999999999999",
    LONG.encode(), b'"' + LONG.encode() + b'"', b'"\\ud800"', b'"\\u0000"', b"[" * DEEP + b"]" * DEEP,
    b"[" * NEARLY + b"]" * NEARLY, b'{"a":' * DEEP + b"1" + b"}" * DEEP,
)
# fmt: on
_VALUE = re.compile(rb'"(?:[^"\\\n]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?|\b(?:true|false|null)\b')
_MAX_BYTES = 60_000


class _Step(NamedTuple):
    """One piece of damage: what is done, where, over how much, and with what; each taken modulo what there is."""

    kind: int
    at: int
    size: int
    what: int


def _cut(data: bytes, step: _Step) -> bytes:
    return data[: step.at % (len(data) + 1)]


def _drop(data: bytes, step: _Step) -> bytes:
    at = step.at % (len(data) + 1)
    return data[:at] + data[at + step.size :]


def _repeat(data: bytes, step: _Step) -> bytes:
    at = step.at % (len(data) + 1)
    fragment, to = data[at : at + 4 * step.size], step.what % (len(data) + 1)
    return data[:to] + fragment + data[to:]


def _insert(data: bytes, step: _Step) -> bytes:
    at = step.at % (len(data) + 1)
    return data[:at] + _PIECES[step.what % len(_PIECES)] + data[at:]


def _flip(data: bytes, step: _Step) -> bytes:
    at = step.at % max(1, len(data))
    return data[:at] + bytes([step.what % 256]) + data[at + 1 :]


def _revalue(data: bytes, step: _Step) -> bytes:
    """Another value, perhaps of another type, in place of one that looks like JSON's."""
    found = list(_VALUE.finditer(data))
    if not found:
        return _insert(data, step)
    start, end = found[step.at % len(found)].span()
    return data[:start] + _REPLACEMENTS[step.what % len(_REPLACEMENTS)] + data[end:]


def _swap_lines(data: bytes, step: _Step) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        one, other = step.at % len(lines), step.what % len(lines)
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def _recode(data: bytes, step: _Step) -> bytes:
    text = data.decode("utf-8", "replace")
    match step.what % 5:
        case 0:
            return text.replace("\n", "\r\n").encode()
        case 1:
            return text.replace("\n", "\r").encode()
        case 2:
            return b"\xef\xbb\xbf" + data
        case 3:
            return text.encode("utf-16", "replace")
        case _:
            return text.encode("latin-1", "replace")


_KINDS: tuple[Callable[[bytes, _Step], bytes], ...] = (
    _revalue,
    _insert,
    _cut,
    _drop,
    _repeat,
    _flip,
    _swap_lines,
    _recode,
    _revalue,
    _insert,
)
_STEPS = st.lists(st.integers(0, 1 << 40), max_size=4)  # one number a step: drawing is what takes the time


def _step(number: int) -> _Step:
    number, kind = divmod(number, len(_KINDS))
    number, size = divmod(number, 60)
    number, at = divmod(number, 1 << 15)
    return _Step(kind, at, size, number)


def damaged(*documents: bytes) -> st.SearchStrategy[bytes]:
    """One of `documents`, perhaps damaged; sometimes mere bytes."""

    def apply(document: bytes, steps: list[int]) -> bytes:
        for step in map(_step, steps):
            document = _KINDS[step.kind](document, step)[:_MAX_BYTES]
        return document

    return st.builds(apply, st.sampled_from(documents), _STEPS) | st.binary(max_size=60)


def damaged_text(*documents: str) -> st.SearchStrategy[str]:
    """The same as text, in which any character may occur."""

    def decode(data: bytes) -> str:
        return data.decode("utf-8", "surrogatepass" if b"\xed\xa0" in data or b"\xed\xb0" in data else "replace")

    def lenient(data: bytes) -> str:
        try:
            return decode(data)
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace")

    return damaged(*(each.encode("utf-8", "surrogatepass") for each in documents)).map(lenient)


def distorted(*values: Any) -> st.SearchStrategy[Any]:
    """One of JSON `values`, with other values in some of its places, or without some of its keys."""
    places_and_values = st.integers(0, 1 << 20)

    def apply(value: Any, changes: list[int]) -> Any:
        box: list[Any] = [copy.deepcopy(value)]
        for at, what in (divmod(change, 2 * len(VALUES)) for change in changes):
            places = list(_places(box))
            holder, key = places[at % len(places)]
            if what < len(VALUES):
                holder[key] = copy.deepcopy(VALUES[what])
            elif what % 2 and holder is not box:
                del holder[key]
            elif isinstance(key, int):
                holder.insert(key, copy.deepcopy(holder[key]))
            else:
                holder[f"{key}x"] = holder.pop(key)
        return box[0]

    return st.builds(apply, st.sampled_from(values), st.lists(places_and_values, max_size=3))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every holder of a value, and the key or index at which it holds it."""
    waiting: list[Any] = [value]
    while waiting:
        holder: Any = waiting.pop()
        keys = range(len(holder)) if hasattr(holder, "insert") else tuple(holder)
        for key in keys:
            below: Any = holder[key]
            yield holder, key
            if isinstance(below, dict | list):
                waiting.append(below)


def as_json(value: Any) -> bytes:
    """Also what JSON does not have, as programs write it."""
    return json.dumps(value).encode()


def json_files(*values: Any) -> st.SearchStrategy[bytes]:
    """A JSON document, distorted in its values or damaged in its bytes."""
    return distorted(*values).map(as_json) | damaged(*map(as_json, values))


def line_files(*lines: Any) -> st.SearchStrategy[bytes]:
    """A file of JSON lines of which any may be distorted, and the whole damaged."""
    whole = b"".join(as_json(line) + b"\n" for line in lines)
    each = st.lists(distorted(*lines).map(as_json), max_size=4).map(lambda some: b"".join(one + b"\n" for one in some))
    return each | damaged(whole)


def one_line(error: Exception, *shown: str, hidden: str = "") -> None:
    """Checks what is said about a document: one line, with what is `shown` and without what is `hidden`."""
    text = str(error)
    assert text
    assert "\n" not in text
    assert all(each in text for each in shown)
    assert not hidden or hidden not in text
