"""What is looked up and not ranked: every fact of a question counts, and what was left out is said."""

from __future__ import annotations

import asyncio
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from services.documents.store.document_store import DocumentStore
from services.documents.tools import libraries
from services.documents.tools.libraries import QAResult, Status
from tests.hashing import HashingEmbedder
from tests.services.documents import cases

pytestmark = pytest.mark.real_time

_LEVELS = {50: "WARN", 100: "ERROR", 150: "WARN", 200: "ERROR", 250: "FATAL", 290: "WARN", 300: "ERROR"}


def app_log() -> str:
    """A line a second from 10:00:01 on; every fourth one is written by `db.Pool`."""
    lines: list[str] = []
    for n in range(1, 401):
        at = datetime(2026, 3, 4, 10, tzinfo=UTC) + timedelta(seconds=n)
        writer = "web.Server" if n % 4 else "db.Pool"
        lines.append(f"{at:%Y-%m-%d %H:%M:%S} {_LEVELS.get(n, 'INFO')} [main] {writer}: did id-{n:05}\n")
    return "".join(lines)


def worker_log() -> str:
    at = datetime(2026, 3, 5, 9, tzinfo=UTC)
    times = (at + timedelta(seconds=n) for n in range(1, 101))
    return "".join(
        f"{time:%Y-%m-%d %H:%M:%S} INFO [w] job.Runner: at zeta-{n:05}\n" for n, time in enumerate(times, start=1)
    )


SERVER = """\
server:
  host: 0.0.0.0
  port: 8080
  admin_port: 9090
database:
  url: db.example.net
  port: 5432
  pool_size: 10
features:
  - search
  - export
last_key: end
"""
METRICS = "timestamp,cpu,mem\n" + "".join(f"2026-03-04 11:{n:02}:00,{n / 100},{1000 + n}\n" for n in range(60))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two logs, to be copied: reading them takes longer than what is asked."""
    folder = tmp_path_factory.mktemp("written")

    async def write() -> None:
        opened = cases.new_store(folder)
        await cases.post(opened, "app.log", app_log())
        await cases.post(opened, "worker.log", worker_log())
        await opened.close()

    asyncio.run(write())
    return folder


@pytest.fixture
def logs(written: Path, tmp_path: Path) -> DocumentStore:
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    return cases.new_store(tmp_path)


@pytest.fixture
async def files(logs: DocumentStore) -> DocumentStore:
    await cases.post(logs, "server.yaml", SERVER)
    await cases.post(logs, "m.csv", METRICS)
    return logs


async def ask(store: DocumentStore, question: str) -> QAResult:
    tools = cases.tools_over(store, embedder=HashingEmbedder())
    return await tools[libraries.CASE].ask(cases.context(), question)


def cited(result: QAResult) -> list[tuple[str, int]]:
    return [(each.source, line) for each in result.citations for line in range(each.line_start, each.line_end + 1)]


@pytest.mark.parametrize(
    ("question", "source", "lines"),
    [
        ("What came right after the FATAL entry?", "app.log", [251]),
        ("What came right before the FATAL entry?", "app.log", [249]),
        ("Which line follows the FATAL entry?", "app.log", [251]),
        ("the 3 lines before the FATAL entry", "app.log", [247, 248, 249]),
        ("5 lines after line 100 of app.log", "app.log", [101, 102, 103, 104, 105]),
        ("what happened 2 lines after 10:02:15 in app.log?", "app.log", [136, 137]),
        ("In app.log, what is on line 3 of app.log?", "app.log", [3]),
        ("what errors were logged between 10:01:00 and 10:03:30?", "app.log", [100, 200]),
        ("errors at 10:03", "app.log", [200]),
        ("the errors in app.log?", "app.log", [100, 200, 250, 300]),
        ("warnings from 10:02 to 10:03", "app.log", [150]),
        ("What was cpu at 11:30?", "m.csv", [32]),
        ("m.csv at 11:05", "m.csv", [7]),
        ("last line of server.yaml", "server.yaml", [12]),
        ("last 2 rows of m.csv", "m.csv", [60, 61]),
        ("first 10 lines of worker.log", "worker.log", list(range(1, 11))),
        ("the last 15 entries of app.log", "app.log", list(range(386, 401))),
        ("which entry is the latest WARN?", "app.log", [290]),
        ("how many lines in server.yaml?", "server.yaml", [1]),
    ],
)
async def test_exactly_these_lines_are_cited(
    files: DocumentStore, question: str, source: str, lines: list[int]
) -> None:
    result = await ask(files, question)
    assert result.status is Status.OK
    assert cited(result) == [(source, line) for line in lines]


@pytest.mark.parametrize("question", ["what is database.connection.pool_size?", "find prod.database.pool_size"])
async def test_a_dotted_name_may_be_the_path_of_a_key(logs: DocumentStore, question: str) -> None:
    nested = "prod:\n  database:\n    pool_size: 10\n    connection:\n      pool_size: 20\n      host: a\n"
    await cases.post(logs, "server.yaml", nested)
    result = await ask(logs, question)
    assert result.status is Status.OK
    assert cited(result)[0] == ("server.yaml", 5 if "connection" in question else 3)


async def test_a_host_that_is_nowhere_is_not_found_where_there_are_configurations(files: DocumentStore) -> None:
    result = await ask(files, "what is redis.example.org?")
    assert (result.status, cited(result)) == (Status.NOT_FOUND, [])


@pytest.mark.parametrize("name", ["job-4711", "job_4711", "job=4711", "job[4711]", "job 4711", "job #4711"])
async def test_a_numbered_thing_is_found_however_it_is_joined_to_its_number(logs: DocumentStore, name: str) -> None:
    await cases.post(logs, "jobs.log", f"2026-03-06 09:00:01 INFO did job-47110\n2026-03-06 09:00:02 INFO did {name}\n")
    assert cited(await ask(logs, "what happened to job 4711?")) == [("jobs.log", 2)]
    assert (await ask(logs, "how many entries mention job 4711?")).plan.get("identifiers") == ["job 4711"]


@pytest.mark.parametrize(
    ("last", "shown", "more"), [(1, 1, ""), (6, 6, ""), (7, 6, "  (and 1 more lines)"), (12, 6, "  (and 6 more lines)")]
)
async def test_of_many_lines_the_first_are_quoted_and_the_others_counted(
    files: DocumentStore, last: int, shown: int, more: str
) -> None:
    result = await ask(files, f"lines 1-{last} of worker.log")
    assert len(cited(result)) == last
    assert [f"zeta-{n:05}" in result.answer for n in range(1, last + 1)] == [n <= shown for n in range(1, last + 1)]
    assert result.answer.endswith(more)
    assert ("(and" in result.answer) is bool(more)


async def test_rows_of_a_time_are_shown_with_their_cells_in_order_of_time(files: DocumentStore) -> None:
    times = ("12:30:00,1", "12:10:00,2", "12:20:00,3")
    await cases.post(files, "u.csv", "\n".join(("timestamp,load", *(f"2026-03-07 {each}" for each in times))) + "\n")
    result = await ask(files, "What was load on 2026-03-07?")
    assert cited(result) == [("u.csv", line) for line in (3, 4, 2)]
    assert "u.csv:3 (12:10:00): timestamp = 2026-03-07 12:10:00, load = 2" in result.answer
    assert cited(await ask(files, "the last load of u.csv on 2026-03-07")) == [("u.csv", 2)]


async def test_of_two_files_the_first_entry_is_the_earliest_and_each_that_ends_is_named(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    for name, day, count in (("b.log", 5, 5), ("a.log", 4, 8)):
        await cases.post(store, name, "".join(f"2026-03-0{day} 10:00:0{n} INFO x: did\n" for n in range(count)))
    assert cited(await ask(store, "first entry of b.log and a.log")) == [("a.log", 1)]
    result = await ask(store, "line 8 of b.log and a.log, what came right after it?")
    assert "line 8 is beyond the end of b.log, which has 5 lines; line 8 is the last of a.log." in result.answer


async def test_a_line_asked_of_two_files_is_shown_of_both(files: DocumentStore) -> None:
    result = await ask(files, "line 42 in app.log and worker.log")
    assert cited(result) == [("app.log", 42), ("worker.log", 42)]


@pytest.mark.parametrize(
    ("question", "count", "said"),
    [
        ("how many entries before 2026-03-05?", 400, "entries before 2026-03-05 in app.log, worker.log: 400"),
        ("how many entries after 2026-03-04?", 100, "worker.log: 100"),
        ("how many entries earlier than 2026-03-05?", 400, "worker.log: 0"),
        ("how many entries newer than 2026-03-04?", 100, "app.log: 0"),
        ("how many entries no later than 2026-03-04?", 400, "worker.log: 0"),
        ("how many entries prior to 10:01 in app.log?", 59, "entries prior to 10:01 in app.log: 59"),
        ("how many entries since 2026-03-04?", 500, "entries since 2026-03-04 in app.log, worker.log: 500"),
        ("how many ERROR or FATAL entries?", 4, "by severity: ERROR 3, FATAL 1"),
        ("how many ERROR and WARN entries are there?", 6, "ERROR/WARN entries in app.log, worker.log: 6"),
        ("how many entries are not INFO?", 7, "by severity: ERROR 3, WARN 3, FATAL 1"),
        ("how many lines per level?", 500, "by severity: INFO 493, ERROR 3, WARN 3, FATAL 1"),
        ("count entries by severity", 500, "by severity: INFO 493, ERROR 3, WARN 3, FATAL 1"),
        ("breakdown of log levels in app.log", 400, "by severity: INFO 393, ERROR 3, WARN 3, FATAL 1"),
        ("distribution of severities", 500, "lines in app.log, worker.log: 500"),
        ("which severities are in app.log?", 400, "by severity: INFO 393"),
        ("entries per component", 500, "by component: web.Server 300, db.Pool 100, job.Runner 100"),
        ("group by component", 500, "by component: web.Server 300, db.Pool 100, job.Runner 100"),
        ("statistics of app.log", 400, "by component: web.Server 300, db.Pool 100"),
        ("which component logs the most errors?", 4, "by component: db.Pool 3, web.Server 1"),
        ("how many errors does each component log?", 4, "by component: db.Pool 3, web.Server 1"),
        ("how many components are there?", 3, "different values of component: 3"),
        ("how many ERROR entries by hour", 3, "by hour: 2026-03-04 10h 3"),
        ("how many entries per minute in worker.log?", 100, "by minute: 2026-03-05 09:00 59, 2026-03-05 09:01 41"),
        ("which day has the most entries?", 500, "by day: 2026-03-04 400, 2026-03-05 100"),
        ("how many keys in server.yaml?", 9, "keys with a value in server.yaml: 9"),
        ("how many lines in server.yaml?", 12, "lines in server.yaml: 12"),
        ("how many ports in server.yaml?", 3, 'keys called "ports" in server.yaml: 3'),
        ("how many ports?", 3, "server.yaml:4: server admin_port = 9090"),
        ("list all keys of server.yaml", 9, "database.pool_size"),
        ("how many rows in m.csv?", 60, "rows in m.csv: 60"),
        ("how many columns has m.csv?", 3, "columns in m.csv: 3: timestamp, cpu, mem"),
        ("how many rows between 11:02 and 11:03 in m.csv?", 2, "rows between 11:02 and 11:03 in m.csv: 2"),
    ],
)
async def test_what_is_counted_is_said_with_its_files(
    files: DocumentStore, question: str, count: int, said: str
) -> None:
    result = await ask(files, question)
    assert result.status is Status.OK
    assert result.plan["count"] == count
    assert said in result.answer


async def test_values_of_several_names_are_not_counted_as_those_of_one(files: DocumentStore) -> None:
    assert "count" not in (await ask(files, "how many ports and hosts in server.yaml?")).plan


async def test_lines_are_shown_with_numbers_by_group_and_not_with_a_number_alone(files: DocumentStore) -> None:
    assert cited(await ask(files, "how many ERROR entries in app.log?")) == []
    assert cited(await ask(files, "how many ERROR entries per component in app.log?")) != []


async def test_lines_of_many_files_that_are_no_logs_are_added_up(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    await cases.post(store, "server.yaml", SERVER)
    await cases.post(store, "other.yaml", "port: 1\n")
    result = await ask(store, "how many lines are there?")
    assert result.plan["count"] == 13
    assert "in server.yaml, other.yaml altogether: 13" in result.answer
    result = await ask(store, "how many ports?")
    assert 'keys called "ports" in server.yaml, other.yaml: 4' in result.answer


async def test_an_entry_of_none_of_the_levels_is_counted_as_such(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    await cases.post(store, "a.log", app_log() + "  a line that goes on\n")
    assert "FATAL 1, without one 1" in (await ask(store, "how many lines per level?")).answer


async def test_columns_that_no_line_has_and_more_values_than_can_be_listed_are_told(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    await cases.post(store, "plain.log", "ERROR it broke\nERROR it broke again\n")
    assert "by day: no line names one" in (await ask(store, "how many errors per day?")).answer
    minutes = [f"2031-03-04 {n // 60:02}:{n % 60:02}:00 WARN x: slow" for n in range(60)]
    await cases.post(store, "long.log", "\n".join(minutes) + "\n")
    assert "2031-03-04 00:49 1, others or none 10" in (await ask(store, "how many WARN entries per minute?")).answer


async def test_what_was_not_found_is_not_taken_for_what_was_found_instead(logs: DocumentStore) -> None:
    result = await ask(logs, "ERROR entries at 10:02 in app.log")
    assert result.plan["count"] == 0
    assert result.answer.splitlines()[1:3] == ["ERROR entries 10:02 in app.log: 0", "entries 10:02 in app.log: 60"]
    assert "no entry matched ERROR" in result.answer


@pytest.mark.parametrize(
    ("question", "line", "notes"),
    [
        ("zeta-00010 in app.log", ("worker.log", 10), ["no entry of app.log mentions zeta-00010, but worker.log"]),
        ("10:02:15 in missing.log", ("app.log", 135), ["there is no file missing.log; the others were searched"]),
        ("10:02:15 in worker.log", ("app.log", 135), ["no entry of worker.log matched; other files were searched"]),
        (
            "INFO entries at 10:02:30 in worker.log",
            ("app.log", 150),
            ["no entry matched INFO", "no entry of worker.log matched"],
        ),
        ("what did id-00005 say at 10:03?", ("app.log", 5), ["no entry matched 10:03"]),
        ("what happened to id-00005 and id-99999?", ("app.log", 5), ["no entry mentions id-99999"]),
        ("Is id-00005 on line 6 of app.log?", ("app.log", 6), ["line 6 of app.log did not match id-00005"]),
        ("was line 6 of app.log an ERROR at 10:05?", ("app.log", 6), ["did not match 10:05, ERROR"]),
    ],
)
async def test_what_is_dropped_is_said(
    logs: DocumentStore, question: str, line: tuple[str, int], notes: list[str]
) -> None:
    result = await ask(logs, question)
    assert result.status is Status.OK
    assert cited(result) == [line]
    for note in notes:
        assert note in result.answer


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("first ERROR in missing.log", "there is no file missing.log"),
        ("how many ERROR entries in missing.log?", "there is no file missing.log"),
        ("what is on line 3 of b.log?", "there is no file b.log"),
        ("Is id-00005 on line 900 of app.log?", "line 900 is beyond the end of app.log, which has 400 lines"),
        ("what does line 900 say about pool_size?", "line 900 is beyond the end of all 4 files"),
        ("line 1,000 of app.log", "line 1000 is beyond the end of app.log"),
        ("what is on line 12345678 of app.log", "line 12345678 is beyond the end of app.log"),
        ("first ERROR in worker.log", "there are no ERROR entries in worker.log"),
        ("were there errors in worker.log?", "there are no FATAL/CRITICAL/ERROR entries in worker.log"),
        ("line 100 of worker.log, what came right after it?", "line 100 is the last of worker.log"),
        ("what happened to beta-00005?", "no entry mentions beta-00005"),
        ("What happened to node-00012?", "no entry mentions node-00012"),
        ("What happened to id 99077?", "no entry mentions id 99077"),
        ("first FATAL entry of server.yaml", "no log is among them"),
    ],
)
async def test_nothing_else_is_shown_instead(files: DocumentStore, question: str, said: str) -> None:
    result = await ask(files, question)
    assert result.status is Status.NOT_FOUND
    assert said in result.answer
    assert result.citations == ()


@pytest.mark.parametrize("name", ["id-00005", "order-00007", "task-00009", "node-00012", "id 00005"])
async def test_the_number_of_another_name_is_no_match(tmp_path: Path, name: str) -> None:
    store = cases.new_store(tmp_path)
    await cases.post(store, "worker.log", worker_log())
    assert (await ask(store, f"What happened to {name}?")).status is Status.NOT_FOUND


@pytest.mark.parametrize(
    "question", ["how many entries mention zeta-00010 in app.log?", "how many FATAL in server.yaml?"]
)
async def test_a_count_stays_with_the_files_that_are_named(files: DocumentStore, question: str) -> None:
    result = await ask(files, question)
    assert result.plan["count"] == 0
    assert result.answer.startswith("Searched 1 file (")


async def test_where_there_are_fewer_lines_than_asked_for_that_is_said(files: DocumentStore) -> None:
    result = await ask(files, "5 lines after line 98 of worker.log")
    assert cited(result) == [("worker.log", 99), ("worker.log", 100)]
    assert "only 2 lines follow line 98 of worker.log" in result.answer


@pytest.mark.parametrize(
    ("question", "blank", "end", "said"),
    [
        ("line 1 of a.log, what came right after it?", 3, "", "3 blank lines follow line 1 of a.log"),
        ("line 21 of a.log, what came right before it?", 19, "end", "12 blank lines precede line 21 of a.log"),
        ("3 lines before line 4 of a.log", 2, "end", "only 1 of the 3 lines that precede line 4 of a.log is not blank"),
        ("line 1 of a.log, what came right after it?", 0, "", "line 1 is the last of a.log"),
    ],
)
async def test_blank_lines_are_not_taken_for_the_end_of_a_file(
    tmp_path: Path, question: str, blank: int, end: str, said: str
) -> None:
    store = cases.new_store(tmp_path)
    text = "\n".join(["2026-03-04 10:00:00 INFO [main] web.Server: begun", *[" "] * blank, *([end] if end else [])])
    await cases.post(store, "a.log", f"{text}\n")
    assert said in (await ask(store, question)).answer


async def test_only_the_files_that_were_searched_are_said_to_be(files: DocumentStore) -> None:
    assert (await ask(files, "last FATAL in worker.log")).answer.startswith("Searched 1 file (worker.log)")
    assert (await ask(files, "zeta-77777 in app.log")).answer.startswith("Searched 4 files for")


async def test_a_file_that_only_the_log_speaks_of_is_a_name(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    trace = '2026-03-04 10:00:00 ERROR x: failed\n  File "main.py", line 17, in run\n    boom()\n'
    await cases.post(store, "app.log", app_log() + trace)
    result = await ask(store, "what is wrong in main.py line 17?")
    assert ("app.log", 402) in cited(result)


async def test_the_earliest_is_told_by_its_time_and_the_first_also_by_its_place(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    lines = [f"2026-03-04 10:00:{second:02} ERROR x: late" for second in (30, 10, 20)]
    await cases.post(store, "mixed.log", "\n".join([*lines, "  goes on"]) + "\n")
    for word, lines in (("first", {1, 2}), ("earliest", {2}), ("latest", {1}), ("last", {1, 3})):
        found = cited(await ask(store, f"What is the {word} ERROR?"))
        assert {line for _, line in found} == lines, word


async def test_entries_of_the_level_that_is_spoken_of_go_first(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    lines = [f"2026-03-04 10:{n:02}:00 {'ERROR' if n == 40 else 'INFO'} x: job-4711 ran" for n in range(50)]
    await cases.post(store, "jobs.log", "\n".join(lines) + "\n")
    assert cited(await ask(store, "did job-4711 cause errors?"))[0] == ("jobs.log", 41)


async def test_a_level_stays_a_condition_where_words_are_ranked(logs: DocumentStore) -> None:
    result = await ask(logs, "Which ERROR is about trouble with did?")
    assert result.status is Status.OK
    assert cited(result)[0] == ("app.log", 100)
