from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.documents.limits import lines_of
from services.documents.prepared import Chunk
from services.documents.reading.source_code import code_chunks
from services.documents.reading.tables import table_chunks, table_records

PYTHON = '''\
"""What it is."""

import os

# The first one.
@decorated
def first():
    return "\\d"


class Second:
    """With methods."""

    field = 1

    def method(self):
        return 2


third = 3
'''


def python(text: str) -> list[tuple[str | None, int, int]]:
    return [(chunk.symbol, chunk.line_start, chunk.line_end) for chunk in code_chunks(lines_of(text), text)]


def test_python_is_cut_by_functions_and_classes() -> None:
    assert python(PYTHON) == [(None, 1, 4), ("first", 5, 8), ("Second", 11, 17), (None, 18, 20)]


def test_large_classes_are_cut_by_methods_and_large_functions_at_blank_lines() -> None:
    methods = "".join(f"    def m{n}(self):\n" + "        x = 1\n" * 58 + "\n" for n in range(3))
    assert python(f"class A:\n    y = 2\n\n{methods}") == [
        ("A", 1, 3),
        ("A.m0", 4, 62),
        ("A.m1", 64, 122),
        ("A.m2", 124, 182),
    ]
    function = "def f():\n" + ("    x = 1\n" * 9 + "\n") * 20
    assert python(function) == [("f", 1, 111), ("f", 112, 200)]


def test_python_that_cannot_be_parsed_is_cut_like_other_code() -> None:
    text = "def broken(:\n    pass\n\n" * 30
    assert [(first, last) for _, first, last in python(text)] == [(1, 60), (61, 90)]
    for hostile in ("(" * 100_000, "x = " + "-" * 100_000 + "1", "a" + ".b" * 100_000, "x\f\n"):
        assert python(hostile)


def test_other_code_is_cut_at_blank_lines() -> None:
    text = ("func work(x int) {\n" + "  y()\n" * 20 + "}\n\n") * 4
    chunks = code_chunks(lines_of(text))
    assert [(chunk.symbol, chunk.line_start, chunk.line_end) for chunk in chunks] == [
        ("work", 1, 46),
        ("work", 47, 92),
    ]


def rows(text: str) -> list[Chunk]:
    return table_chunks(lines_of(text))


def test_rows_stand_under_their_header() -> None:
    text = "time,host\n" + "".join(f"2026-02-01T10:{n:02d}:00Z,h\n" for n in range(60))
    first, second = rows(text)
    assert first.text.startswith("time,host\n2026-02-01T10:00:00Z,h\n")
    assert second.text.startswith("time,host\n2026-02-01T10:50:00Z,h\n")
    assert (first.line_start, first.line_end, second.line_start, second.line_end) == (2, 51, 52, 61)
    assert (first.ts_min, first.ts_max) == ("2026-02-01T10:00:00Z", "2026-02-01T10:49:00Z")
    assert first.extra == {"columns": "time, host", "rows": "50"}


def test_rows_that_begin_with_a_time_are_records() -> None:
    """A comma behind the time ends it: what follows is a number of its own."""
    records = table_records(lines_of("time,cpu\n2026-02-01 10:00:00,55\n\n2026-02-01 10:00:30.5,60\nlater,1\n"))
    assert [(each.line_no, each.text_offset, each.ts, each.ts_utc) for each in records] == [
        (2, 9, "2026-02-01 10:00:00", "2026-02-01T10:00:00.0"),
        (4, 33, "2026-02-01 10:00:30.5", "2026-02-01T10:00:30.5"),
    ]


def test_samples_of_metrics_are_counted_without_comments() -> None:
    (*_, piece) = rows("# TYPE up gauge\nup 1\n\nload 0.5\n")
    assert piece.extra["rows"] == "2"


def test_columns_of_numbers_are_described_with_the_rows_that_stand_out() -> None:
    text = "t;cpu;note\n" + "1;10;x\n" * 30 + "1;90%;y\n" + "1;;\n"
    summary = rows(text)[0]
    assert summary.text == (
        "t: min 1, max 1, mean 1 of 32 values\n"
        "cpu: min 10, max 90, mean 12.5806 of 31 values; more than 3 standard deviations away: 90 (line 32)"
    )
    assert (summary.line_start, summary.line_end, summary.lines) == (1, 33, (32,))


def test_tables_without_a_header_and_with_cells_of_several_lines_are_read() -> None:
    (summary, chunk) = rows('1,"a\nb"\n2,c\n')
    assert summary.text == "column 1: min 1, max 2, mean 1.5 of 2 values"
    assert (chunk.line_start, chunk.line_end) == (1, 3)
    assert [chunk.line_end for chunk in rows('a,b\n1,"never\nends\n')][-1] == 3
    assert rows("\n") == []


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ("1.20 0.80 N/A 2.00", "price: min 0.8, max 2, mean 1.33333 of 3 values (1 left out: no number)"),
        ('1.20 "1,500.00" 0.80', "price: min, max and mean cannot be told: 2 values are numbers, 1 more may be"),
        ("1.20 $9.50 0.80 N/A 3", "price: min, max and mean cannot be told: 3 values are numbers, 1 more may be"),
        ("1.20 0.80 +Inf", "price: min, max and mean cannot be told: 2 values are numbers, 1 more may be"),
        ("1.20 0.80 1,500.00", "price: min, max and mean cannot be told: 3 values are numbers, 1 more may be"),
        ("1.20 0.80, 2.00,,", "price: min 0.8, max 2, mean 1.33333 of 3 values"),
    ],
)
def test_a_range_that_cells_without_a_readable_number_may_change_cannot_be_told(cells: str, said: str) -> None:
    """A cell without digits is left out, and counted. A mark within a number may have cut a row into too many cells."""
    table = "name,price\n" + "".join(f"x,{cell}\n" for cell in cells.split())
    assert rows(table)[0].text == said


def test_metrics_are_described_by_name() -> None:
    text = '# HELP a_total x\n# TYPE a_total counter\na_total{x="1"} 5\na_total{x="2"} 7 1700000000\nb NaN\n'
    summary, lines = rows(text)
    assert summary.text == "a_total: min 5, max 7, mean 6 of 2 values"
    assert lines.text == text.rstrip("\n")
    assert lines.extra["columns"] == "a_total, b"


@given(st.text('a1,;\t"\n.', max_size=200))
def test_any_table_is_read(text: str) -> None:
    lines = lines_of(text)
    for chunk in table_chunks(lines):
        assert 1 <= chunk.line_start <= chunk.line_end <= len(lines)
        if "computed" not in chunk.extra:
            assert chunk.text.endswith("\n".join(lines[chunk.line_start - 1 : chunk.line_end]))


@given(st.text("def class:()\n @x=#", max_size=200))
def test_any_code_is_cut_into_all_of_its_lines(text: str) -> None:
    lines = lines_of(text)
    for chunks in (code_chunks(lines), code_chunks(lines, text)):
        covered = [number for chunk in chunks for number in range(chunk.line_start, chunk.line_end + 1)]
        assert len(covered) == len(set(covered))
        assert {number for number, line in enumerate(lines, start=1) if line.strip()} <= set(covered)
        for chunk in chunks:
            assert chunk.text == "\n".join(lines[chunk.line_start - 1 : chunk.line_end])
