from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.documents.prepared import Chunk, ChunkType, LineRecord
from services.documents.reading.logs import Line, mask, read_log, read_log_lines, windows
from services.documents.reading.times import Stamp


def record(line: str) -> LineRecord:
    return read_log([line])[1][0]


def of_type(kind: ChunkType, lines: list[str]) -> list[Chunk]:
    return [chunk for chunk in read_log(lines)[0] if chunk.type is kind]


@pytest.mark.parametrize(
    ("line", "ts", "ts_utc", "severity", "component"),
    [
        (
            "2026-02-01 18:01:47,978 INFO [main] org.acme.Store: Opened",
            "2026-02-01 18:01:47,978",
            "2026-02-01T18:01:47.978",
            "INFO",
            "org.acme.Store",
        ),
        ("2026-02-01T18:01:47Z ERROR boom", "2026-02-01T18:01:47Z", "2026-02-01T18:01:47Z", "ERROR", None),
        (
            "2026-02-01T18:01:47.5+02:00 warn: low",
            "2026-02-01T18:01:47.5+02:00",
            "2026-02-01T16:01:47.5Z",
            "WARN",
            None,
        ),
        ("2026/02/01 18:01:47 [error] 12#12: gone", "2026/02/01 18:01:47", "2026-02-01T18:01:47", "ERROR", None),
        ("[Sun Feb 01 04:47:44 2026] [notice] up", "Sun Feb 01 04:47:44 2026", "2026-02-01T04:47:44", "INFO", None),
        ("260201 203615 148 INFO dfs.Node$Part: gone", "260201 203615", "2026-02-01T20:36:15", "INFO", "dfs.Node$Part"),
        ("26/02/01 20:10:40 INFO exec.Back: up", "26/02/01 20:10:40", "2026-02-01T20:10:40", "INFO", "exec.Back"),
        ("Feb  1 15:16:01 box sshd[19]: refused", "Feb  1 15:16:01", "0000-02-01T15:16:01", None, "sshd"),
        ("Feb 11 15:16:01 box sshd[19]: error: no", "Feb 11 15:16:01", "0000-02-11T15:16:01", "ERROR", "sshd"),
        ("1769968907 up", "1769968907", "2026-02-01T18:01:47Z", None, None),
        ("1769968907978 ERROR down", "1769968907978", "2026-02-01T18:01:47.978Z", "ERROR", None),
        ("1769968907.978 ERROR down", "1769968907.978", "2026-02-01T18:01:47.978Z", "ERROR", None),
        ("[18:01:47] [Server thread/WARN]: late", "18:01:47", "0000-00-01T18:01:47", "WARN", None),
        (
            '10.0.0.1 - - [01/Feb/2026:18:01:47 +0100] "GET /"',
            "01/Feb/2026:18:01:47 +0100",
            "2026-02-01T17:01:47Z",
            None,
            None,
        ),
        (
            "E0201 18:01:47.123456   1 file.go:12] bad",
            "0201 18:01:47.123456",
            "0000-02-01T18:01:47.123456",
            "ERROR",
            "file.go",
        ),
        ("web_1  | 2026-02-01T18:01:47Z INFO up", "2026-02-01T18:01:47Z", "2026-02-01T18:01:47Z", "INFO", None),
        ("time=2026-02-01T18:01:47Z level=warning msg=x", "2026-02-01T18:01:47Z", "2026-02-01T18:01:47Z", "WARN", None),
        (
            '{"ts": 1769968907.978, "level": "error", "logger": "db", "msg": "x"}',
            "1769968907.978",
            "2026-02-01T18:01:47.978Z",
            "ERROR",
            "db",
        ),
        ('{"time": "2026-02-01T18:01:47Z", "level": 40}', "2026-02-01T18:01:47Z", "2026-02-01T18:01:47Z", "WARN", None),
        (
            '{"timestamp": 1769968907978, "severity": "CRITICAL"}',
            "1769968907978",
            "2026-02-01T18:01:47.978Z",
            "CRITICAL",
            None,
        ),
        (
            "2026-02-01 18:01:47,978 - WARN  [Send:18:Quorum$Send@688] - broken, error = ",
            "2026-02-01 18:01:47,978",
            "2026-02-01T18:01:47.978",
            "WARN",
            "Quorum$Send",
        ),
        (
            "2026-02-01 18:01:47,978 - my.logger - WARNING - late",
            "2026-02-01 18:01:47,978",
            "2026-02-01T18:01:47.978",
            "WARN",
            "my.logger",
        ),
        (
            "01-31 18:01:47.9  1234  5678 E Manager: late",
            "01-31 18:01:47.9",
            "0000-01-31T18:01:47.9",
            "ERROR",
            "Manager",
        ),
        ("Oct 18, 2025 6:01:47 PM org.acme.Main run", "Oct 18, 2025 6:01:47 PM", "2025-10-18T18:01:47", None, None),
        ("10/18/2025 12:01:47 AM ERROR x", "10/18/2025 12:01:47 AM", "2025-10-18T00:01:47", "ERROR", None),
        ("18.10.2025 18:01:47 info x", "18.10.2025 18:01:47", "2025-10-18T18:01:47", "INFO", None),
        ("05.03.2026 18:01:47 info x", "05.03.2026 18:01:47", "2026-03-05T18:01:47", "INFO", None),
        ("03.16.2026 18:01:47 info x", "03.16.2026 18:01:47", "2026-03-16T18:01:47", "INFO", None),
        ("3/3/2026 18:01:47 info x", "3/3/2026 18:01:47", "2026-03-03T18:01:47", "INFO", None),
        ("3/5/2026 18:01:47 info x", "3/5/2026 18:01:47", "0000-00-01T18:01:47", "INFO", None),
        ("2026-02-01 12:30:00 AM info x", "2026-02-01 12:30:00 AM", "2026-02-01T00:30:00", "INFO", None),
        ("2026-02-01 12:30:00 PM info x", "2026-02-01 12:30:00 PM", "2026-02-01T12:30:00", "INFO", None),
        (
            "2026-02-01T6:15:00.5 p.m. +01:00 info x",
            "2026-02-01T6:15:00.5 p.m. +01:00",
            "2026-02-01T17:15:00.5Z",
            "INFO",
            None,
        ),
        ("6:15:00 pm info x", "6:15:00 pm", "0000-00-01T18:15:00", "INFO", None),
        ("Feb  1 06:15:00 PM box a: x", "Feb  1 06:15:00 PM", "0000-02-01T18:15:00", None, "a"),
        ("2026-02-01 18:15:00 PM info x", "2026-02-01 18:15:00 PM", "2026-02-01T18:15:00", "INFO", None),
        ("2026-02-01 06:15:00 PM2: up", "2026-02-01 06:15:00", "2026-02-01T06:15:00", None, None),
        (
            "[2026-02-01 18:01:47,978: ERROR/Main] x",
            "2026-02-01 18:01:47,978",
            "2026-02-01T18:01:47.978",
            "ERROR",
            None,
        ),
        (
            "2026-02-01 18:01:47 INFO 7 --- [main] com.A : x",
            "2026-02-01 18:01:47",
            "2026-02-01T18:01:47",
            "INFO",
            "com.A",
        ),
        ("2026-02-01 18:01:47 ended without error", "2026-02-01 18:01:47", "2026-02-01T18:01:47", None, None),
        ("2026-02-01T18:01:47+99:00 x", "2026-02-01T18:01:47+99:00", "2026-02-01T18:01:47", None, None),
        (
            'time=2026-02-01T18:01:47Z lvl=crit component="db"',
            "2026-02-01T18:01:47Z",
            "2026-02-01T18:01:47Z",
            "CRITICAL",
            "db",
        ),
        ("    2026-02-01 18:01:47 INFO x", "2026-02-01 18:01:47", "2026-02-01T18:01:47", "INFO", None),
        ("    it ended 2026-02-01 18:01:47", None, None, None, None),
        ("main thread 'x' panicked at y", None, None, "FATAL", None),
        ('{"msg": "ERROR boom"}', None, None, "ERROR", None),
        ('{"ts": true, "level": [1]}', None, None, None, None),
        ("Traceback (most recent call last):", None, None, "ERROR", None),
        ("[1, 2]", None, None, None, None),
        ("{broken", None, None, None, None),
        ("ERROR:root:broken", None, None, "ERROR", "root"),
        ("kernel panic - not syncing", None, None, "FATAL", None),
        ("just words", None, None, None, None),
        ("2026-13-45 99:99:99 no time", None, None, None, None),
        ("", None, None, None, None),
    ],
)
def test_time_severity_and_component_are_read(
    line: str, ts: str | None, ts_utc: str | None, severity: str | None, component: str | None
) -> None:
    found = record(line)
    assert (found.ts, found.ts_utc, found.severity, found.component) == (ts, ts_utc, severity, component)


def test_equally_many_digits_of_fraction_make_times_sort() -> None:
    _, records = read_log(["2026-02-01T18:01:47Z INFO a", "2026-02-01T18:01:47.5Z INFO b"])
    assert [record.ts_utc for record in records] == ["2026-02-01T18:01:47.0Z", "2026-02-01T18:01:47.5Z"]


def test_after_the_turn_of_the_year_times_still_sort() -> None:
    _, records = read_log(["Dec 31 23:59:59 box a: x", "Jan  1 00:00:01 box a: y"])
    assert [record.ts_utc for record in records] == ["0000-12-31T23:59:59", "0001-01-01T00:00:01"]


def test_a_stack_trace_stays_with_its_line() -> None:
    lines = ["2026-02-01 10:00:00 INFO start"] * 15
    lines += ["2026-02-01 10:00:01 ERROR failed", "java.lang.Oops: no", *["\tat a.b.C(D.java:1)"] * 10, "Caused by: x"]
    chunks, records = read_log(lines)
    assert [(chunk.line_start, chunk.line_end) for chunk in of_type(ChunkType.WINDOW, lines)] == [(1, 15), (16, 28)]
    assert [record.severity for record in records[15:]] == ["ERROR"] + [None] * 12
    texts = [chunk.text for chunk in chunks if chunk.type is ChunkType.PATTERN]
    assert texts[0] == "2026-02-01 10:00:01 ERROR failed"
    assert "Caused by: x" in texts
    assert not any("at a.b.C" in text for text in texts)


def test_a_new_window_begins_after_five_quiet_minutes() -> None:
    lines = [f"2026-02-01 10:{minute}:00 INFO x" for minute in ("00", "05", "11", "12")]
    assert [(chunk.line_start, chunk.line_end) for chunk in of_type(ChunkType.WINDOW, lines)] == [(1, 2), (3, 4)]


def test_windows_of_long_logs_are_not_embedded() -> None:
    few = of_type(ChunkType.WINDOW, ["x"] * 20 * 199)
    many = of_type(ChunkType.WINDOW, ["x"] * 20 * 200)
    assert len(few) == 199
    assert all(chunk.embedded for chunk in few)
    assert len(many) == 200
    assert not any(chunk.embedded for chunk in many)


def test_alarming_and_rare_patterns_come_first() -> None:
    lines = ["INFO tick 1", "INFO tick 2", "INFO once", "WARN a 1", "WARN a 2", "ERROR b 7"]
    found = of_type(ChunkType.PATTERN, lines)
    assert [(chunk.text, chunk.lines, chunk.extra["count"]) for chunk in found] == [
        ("ERROR b 7", (6,), "1"),
        ("WARN a 1", (4, 5), "2"),
        ("INFO once", (3,), "1"),
        ("INFO tick 1", (1, 2), "2"),
    ]


def test_masking_leaves_what_lines_of_a_kind_have_in_common() -> None:
    line = "17:20 req-38101a0b-2096-447d-96ea-a692162415ae from /10.0.0.1:3888 blk_-6952 took 0.25s 0xff at deadbeef01"
    assert mask(line) == "# req# from /# blk_# took #s # at #"
    assert mask("facade decade") == "facade decade"


@pytest.mark.parametrize(
    ("line", "local_time"),
    [
        ("2026-02-01T18:01:47.5+02:00 warn: low", "2026-02-01T18:01:47.500000"),
        ('10.0.0.1 - - [01/Feb/2026:00:30:00 +0100] "GET /"', "2026-02-01T00:30:00.000000"),
        ("Feb  1 15:16:01 box sshd[19]: refused", "0000-02-01T15:16:01.000000"),
        ("Oct 18, 2025 6:01:47 PM up", "2025-10-18T18:01:47.000000"),
        ("10/18/2025 12:01:47 AM up", "2025-10-18T00:01:47.000000"),
        ("no time", None),
    ],
)
def test_the_writers_time_is_what_people_ask_for(line: str, local_time: str | None) -> None:
    assert record(line).local_time == local_time


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 23)), max_size=200))
def test_every_line_is_in_exactly_one_window(shape: list[tuple[bool, int]]) -> None:
    lines = [
        Line(
            continues=continues and at > 0,
            stamp=None if continues else Stamp(0, 1, f"2026-02-01T{hour:02d}:00:00", "", "", ""),
        )
        for at, (continues, hour) in enumerate(shape)
    ]
    spans = list(windows(lines))
    assert [number for first, last in spans for number in range(first, last + 1)] == list(range(1, len(lines) + 1))
    assert all(last - first < 60 for first, last in spans)


@given(st.lists(st.text("aA1 \t:[]{}\"'=./-@", max_size=40), max_size=30))
def test_any_lines_are_read(lines: list[str]) -> None:
    chunks, records = read_log(lines)
    text = "\n".join(lines)
    for line, record in zip(lines, records, strict=True):
        assert text[record.text_offset : record.text_offset + len(line)] == line
    for chunk in chunks:
        assert chunk.text == "\n".join(lines[chunk.line_start - 1 : chunk.line_end])
    assert len(read_log_lines(lines)) == len(lines)


def test_after_midnight_times_of_day_still_sort() -> None:
    _, records = read_log(["23:59:59 a", "00:00:01 b", "00:00:02 c"])
    assert [record.ts_utc for record in records] == [
        "0000-00-01T23:59:59",
        "0000-00-02T00:00:01",
        "0000-00-02T00:00:02",
    ]


@pytest.mark.parametrize(
    ("dates", "days"),
    [
        (["3/5/2031", "3/16/2031"], ["2031-03-05", "2031-03-16"]),
        (["05/03/2031", "16/03/2031"], ["2031-03-05", "2031-03-16"]),
        (["5-3-2031", "16-3-2031"], ["2031-03-05", "2031-03-16"]),
        (["03.05.2031", "03.16.2031"], ["2031-03-05", "2031-03-16"]),
        (["3/5/2031", "16.3.2031"], ["0000-00-01", "2031-03-16"]),
        (["3/5/2031", "4/5/2031", "3/5/2031"], ["0000-00-01", "0000-00-02", "0000-00-01"]),
        (["3/16/2031", "16/3/2031", "3/5/2031"], ["2031-03-16", "2031-03-16", "0000-00-03"]),
        (["3/16/2031", "16/16/2031"], ["2031-03-16", "0000-00-02"]),
    ],
)
def test_a_number_over_12_shows_the_order_of_the_dates_of_its_file(dates: list[str], days: list[str]) -> None:
    for lines in (
        [f"{date} 10:00:00 INFO x" for date in dates],
        [f'{{"time": "{date} 10:00:00", "level": "info"}}' for date in dates],
    ):
        assert [(record.ts_utc or "")[:10] for record in read_log(lines)[1]] == days


@pytest.mark.parametrize(
    ("line", "severity", "component"),
    [
        ('time="2031-03-05T10:00:01Z" level=warning msg="error: none"', "WARN", None),
        ('time="2031-03-05T10:00:01Z" msg="error: none" level=warning', "WARN", None),
        ('level=warning msg="error: none"', "WARN", None),
        ('2031-03-05T10:00:00Z stdout F {"level":"info","msg":"ERROR page rendered"}', "INFO", None),
        ('2031-03-05T10:00:00Z stdout F {"msg":"ERROR page rendered","level":30,"logger":"db"}', "INFO", "db"),
        ('2031-03-05T10:00:00Z stdout F {"msg":"ERROR page rendered","level":"info","cut', "INFO", None),
        ('web_1  | {"time":"2031-03-05T10:00:00Z","msg":"ERROR: a","level":"info"}', "INFO", None),
        ('Mar  5 10:00:00 host app[1]: {"level":"info","msg":"ERROR: a"}', "INFO", "app"),
        ('2031-03-05T10:00:00Z stdout F {"msg":"ERROR page rendered"}', "ERROR", None),
        ('2031-03-05 10:00:00 ERROR [main] a.B: sent {"level":"info"}', "ERROR", "a.B"),
        ("2031-03-05 10:00:00 ERROR [main] a.B: run with level=info", "ERROR", "a.B"),
        ('2031-03-05 10:00:00 [app] ERROR: "x" level=loud', "ERROR", "app"),
    ],
)
def test_a_level_that_a_line_states_goes_before_the_words_of_its_message(
    line: str, severity: str, component: str | None
) -> None:
    found = record(line)
    assert (found.severity, found.component) == (severity, component)


def test_a_day_that_no_month_has_is_borne() -> None:
    lines = ["2026-02-31 10:00:00 INFO a", "2026-02-31 10:00:00+01:00 INFO b", "2026-03-01 10:00:00 INFO c"]
    chunks, records = read_log(lines)
    assert records[0].ts_utc == "2026-02-31T10:00:00"
    assert chunks[0].line_end < 3


def test_lines_without_a_time_belong_to_the_one_before_but_not_without_end() -> None:
    lines = ["2026-02-01 10:00:00 INFO payload", *["an error in it"] * 60, "an error of its own"]
    chunks, records = read_log(lines)
    assert [record.severity for record in records[1:]] == [None] * 60 + ["ERROR"]
    assert "an error in it" in [chunk.text for chunk in chunks if chunk.type is ChunkType.PATTERN]


def test_a_python_traceback_ends_with_its_error() -> None:
    lines = [
        "ERROR failed",
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in f',
        "ValueError: no",
        "ok",
    ]
    assert [line.in_trace for line in read_log_lines(lines)] == [False, True, True, True, False]
