"""What files cost to read grows with their length, not with its square, and no character costs hundreds of bytes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from services.documents.asking.query_lines import READ, message_count, values_of
from services.documents.limits import FileLimits
from services.documents.reading.outlines import Outline, Unreadable, read_json, read_toml, read_xml
from services.documents.reading.preparing import prepare
from services.documents.reading.times import of_value
from services.redaction import Redactor
from services.redaction.named_secrets import MAX_REPEATS
from tests.patterns.growth import STEEP, cost, growth, peak

CHARS = 200_000
LABEL = "[redacted: secret]"
redact = Redactor().text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "head", "body", "tail"),
    [
        (read_json, '{"a": "', "x", '"}'),
        (read_json, '{"a": "', "\\n", '"}'),
        (read_toml, 'a = "', "x", '"'),
        (read_toml, 'a = "', "\\n", '"'),
        (read_toml, 'a = """', 'x"', 'x"""'),
        (read_toml, "a = '''", "x'", "x'''"),
        (read_toml, '"', "\\n", '" = 1'),
        (read_xml, "<a ", 'b = "c"', "/>"),
    ],
)
def test_a_long_text_in_a_file_needs_little_memory(
    read: Callable[[str], Outline], head: str, body: str, tail: str
) -> None:
    """Pitfall 64: an atomic group of alternatives kept a state of 300 bytes for each character."""
    if read is read_xml:
        text = head + " ".join(f'b{at}="c"' for at in range(CHARS // 10)) + tail
        limit = 200  # of each attribute something is kept
    else:
        text, limit = head + body * (CHARS // len(body)) + tail, 20
    assert peak(lambda: read(text)) < limit * len(text)


@pytest.mark.parametrize(
    ("head", "body", "tail"),
    [
        ('password = "', "\\n", '"'),
        ('token: {"a": "', "x", '"}'),
        ('token: {"a": "', "\\n", '"}'),
        ('{"text": "token: {\\"a\\": \\"', "\\n", '\\"}"}'),
        ('f("token", "', "x", '")'),
        ('f("token", "', "\\n", '")'),
        ("-----BEGIN PRIVATE KEY-----", "\n" + "M" * 20, ""),
    ],
)
def test_a_long_secret_is_hidden_whole_with_little_memory(head: str, body: str, tail: str) -> None:
    """Pitfall 64: also where one is read in pieces, at any of their borders."""
    for times in (1, MAX_REPEATS - 1, MAX_REPEATS, MAX_REPEATS + 1, 2 * MAX_REPEATS, 20 * MAX_REPEATS):
        shown = redact(f"{head}s3cr3t{body * times}l4st{tail}" if "KEY" not in head else head + body * times + tail)
        assert not any(part in shown for part in ("s3cr3t", "l4st", "M" * 20))
        assert "[redacted: " in shown
        assert shown.endswith(tail)
    text = head + body * (CHARS // len(body)) + tail
    assert peak(lambda: redact(text)) < 20 * len(text)


@pytest.mark.parametrize("times", [MAX_REPEATS - 1, MAX_REPEATS, MAX_REPEATS + 1, 2 * MAX_REPEATS])
@pytest.mark.parametrize("read", [read_json, read_toml])
def test_texts_are_read_whole_at_the_borders_of_pieces(read: Callable[[str], Outline], times: int) -> None:
    text = '"' + "\\n" * times + '"'
    outline = read(f'{{"a": {text}, "b": 2}}' if read is read_json else f"a = {text}\nb = 2")
    assert [(leaf.path, leaf.end - leaf.start) for leaf in outline.leaves] == [(("a",), 2 * times), (("b",), 1)]


@pytest.mark.parametrize(
    "text", ['{"a": "b', '{"a": "b\\', '{"a": "b\n"}', '{"a": "b\\\n"}', '{"' + "\\n" * 2 * MAX_REPEATS]
)
def test_a_text_that_never_ends_is_no_json(text: str) -> None:
    with pytest.raises(Unreadable):
        read_json(text)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('a."b.c".d = 1', ("a", "b.c", "d")),
        ("a . 'b c' . d = 1", ("a", "b c", "d")),
        ('"" = 1', ("",)),
        ("3.14 = 1", ("3", "14")),
        ('"a\\"b" = 1', ('a\\"b',)),
    ],
)
def test_the_parts_of_a_key_are_those_between_dots(line: str, path: tuple[str, ...]) -> None:
    assert [leaf.path for leaf in read_toml(line).leaves] == [path]


@pytest.mark.parametrize("gap", [" ", "\n", "\n\n  "])
def test_the_attributes_of_one_element_are_read_in_linear_time(gap: str) -> None:
    """Pitfall 64: line breaks were counted from the start of the element for each attribute."""

    def made(attributes: int) -> str:
        return "<a" + "".join(f"{gap}b{at}='c'" for at in range(attributes)) + "/>"

    assert growth(read_xml, made, 4000) < STEEP


def test_attributes_have_their_own_lines() -> None:
    text = "<r>\n<a b='1'\n  c='2\n2' d='3'\n\n e='4'>text</a><z y='5'/></r>"
    outline = read_xml(text)
    lines = {leaf.path[-1]: (leaf.line_start, leaf.line_end) for leaf in outline.leaves}
    assert lines == {"b": (2, 2), "c": (3, 4), "d": (4, 4), "e": (6, 6), "a": (2, 6), "y": (6, 6)}
    assert {text[leaf.start : leaf.end] for leaf in outline.leaves} == {"1", "2\n2", "3", "4", "text", "5"}


NUMBERS = ("NaN", "1e400", "-1e400", "Infinity", "9" * 400, "-" + "9" * 400, "9" * 5000, "-5", "0", "1e-400")


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("field", ["ts", "level", "message", "logger"])
def test_one_odd_number_does_not_make_a_log_unreadable(number: str, field: str) -> None:
    """Pitfall 66."""
    odd = f'{{"{field}": {number}}}'
    log = f'{{"ts": 1700000000, "level": "ERROR", "msg": "one"}}\n{odd}\n{{"ts": 1700000001, "msg": "two"}}'
    found = prepare("x.log", log.encode(), limits=FileLimits())
    assert [record.ts_utc for record in found.lines] == ["2023-11-14T22:13:20Z", None, "2023-11-14T22:13:21Z"]
    assert found.lines[0].severity == "ERROR"


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        (1700000000, "2023-11-14T22:13:20"),
        (1700000000000, "2023-11-14T22:13:20"),
        (1700000000 * 10**9, "2023-11-14T22:13:20"),
        (9999999999 * 10**9, "2286-11-20T17:46:39"),
        (10**19, None),
        (10**400, None),
        (float("nan"), None),
        (float("inf"), None),
        (True, None),
    ],
)
def test_a_number_is_a_time_between_2001_and_2286(value: float, moment: str | None) -> None:
    found = of_value(value)
    assert (found and found.moment) == moment


@pytest.mark.parametrize(
    "unit", [f"a:a:{'a' * 28}g ", "a:" * 14 + "g ", f"a:a:a:a:{'a' * 16}g ", "1.1.1.1.", 'k="x ', "[a "]
)
def test_a_line_that_nearly_holds_values_costs_no_more_than_a_scan_of_a_file(unit: str) -> None:
    """A line of hex digits that could be cut in 20,000 ways took half a second, and a log has thousands of lines."""
    line, file = (unit * 1_000)[:4_000], re.compile(".")
    scan = cost(lambda: sum(1 for _ in file.finditer("a" * 100_000)))
    for read in (*READ.values(), values_of("k"), message_count):
        assert cost(lambda read=read: read(line)) < 4 * scan
