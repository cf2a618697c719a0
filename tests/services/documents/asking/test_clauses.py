"""Clauses that limit the lines of a question: before or after an entry, without a text, and what no query can say."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from services.documents.asking.passages import Findings
from services.documents.facts import Files
from services.documents.store.protocol import LineWhere
from tests.services.documents import cases
from tests.services.documents.asking.planning import planned

pytestmark = pytest.mark.real_time

LOG = """\
2031-03-04 23:50:00 INFO [main] shop.db.Pool: 50 connections opened
2031-03-04 23:55:00 WARN [pool-1] shop.http.Server: GET /cart took 8123 ms
2031-03-04 23:59:59 ERROR [pool-2] shop.pay.Gateway: order ord-58213 declined
2031-03-05 00:00:00 ERROR [pool-1] shop.mail.Sender: 10.20.30.40:2525 refused
2031-03-05 00:00:30 INFO [pool-1] shop.pay.Gateway: no ERROR seen for order ord-58213, payment accepted after retry
2031-03-05 00:04:00 FATAL [main] shop.db.Pool: no free connection for 30 s
2031-03-05 00:05:00 INFO [main] shop.db.Pool: restarted
2031-03-05 10:00:00 ERROR [pool-2] shop.http.Server: GET /login returned 500 for user ben
2031-03-05 10:01:00 ERROR [pool-2] shop.http.Server: GET /login returned 500 for user ben
2031-03-05 10:02:00 ERROR [pool-2] shop.http.Server: GET /login returned 500 for user cara
2031-03-05 10:03:00 WARN [pool-2] shop.http.Server: timeout while waiting for ben
"""
KEYS = """\
2031-03-05 10:00:00 ERROR web: 500 for user=ben
2031-03-05 10:01:00 ERROR web: 500 for user=ben
2031-03-05 10:02:00 ERROR web: 500 for user=cara
2031-03-05 10:03:00 ERROR web: 500 for somebody
"""


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log, read once: a copy of it is asked."""
    folder = tmp_path_factory.mktemp("read")

    async def add() -> None:
        files = Files(folder)
        await files.add("shop.log", LOG.encode())
        await files.close()

    asyncio.run(add())
    return folder


@pytest.fixture
def files(read: Path, tmp_path: Path) -> Files:
    shutil.copytree(read, tmp_path, dirs_exist_ok=True)
    return Files(tmp_path)


def lines(found: Findings) -> list[int]:
    return sorted(line for passage in found.passages for line in passage.matched)


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("What is the last ERROR before the FATAL entry in shop.log?", [4]),
        ("What is the last ERROR entry before the FATAL entry?", [4]),
        ("What is the last line before the FATAL entry?", [5]),
        ("What is the first ERROR after the FATAL entry?", [8]),
        ("What was the last INFO prior to the FATAL?", [5]),
        ("What is the first entry following the FATAL one?", [7]),
        ("Which ERROR line came before the first FATAL?", [3, 4]),
        ("What errors were there before the FATAL entry?", [3, 4]),
        ('What is the last ERROR before "restarted"?', [4]),
        ("What is the first ERROR after line 5 of shop.log?", [8]),
        ("What is the last ERROR before line 4 of shop.log?", [3]),
        ("What is the first ERROR that is not about login?", [3]),
        ("What is the last ERROR without login?", [4]),
        ("What is the first login that is not about ben?", [10]),
        ("Which ERROR entries are not about login?", [3, 4]),
        ("Which errors are not related to shop.http.Server?", [3, 4, 6]),
        ("What is the last ERROR before the FATAL entry that does not mention ord-58213?", [4]),
        ("What happened to ord-58213 before the FATAL entry?", [3, 5]),
        ("What is the last ERROR before the second WARN?", [10]),
        ("What is the first line after the last WARN but one?", []),
    ],
)
async def test_lines_before_or_after_an_entry_and_without_a_text_are_found(
    files: Files, question: str, shown: list[int]
) -> None:
    found = await files.ask(question)
    assert (lines(found) if found.exact else []) == shown


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How many errors were there before the FATAL entry?", "ERROR entries in shop.log before line 6: 2"),
        ("How many ERROR entries came after the FATAL entry?", "ERROR entries in shop.log after line 6: 3"),
        ("Before the FATAL entry, how many WARN entries were there?", "WARN entries in shop.log before line 6: 1"),
        ("How many entries are there after line 7?", "lines in shop.log after line 7: 4"),
        ("How many entries are there before line 1?", "lines in shop.log before line 1: 0"),
        ("How many errors are there in shop.log that are not about login?", "entries without login in shop.log: 3"),
        ("How many lines do not mention retries?", "lines without retries in shop.log: 10"),
        ("How many lines of shop.log do not contain ERROR?", "lines without ERROR in shop.log: 5"),
        ("How many lines don’t contain ERROR or timeout?", "lines without ERROR or timeout in shop.log: 4"),
        ('How many ERROR entries are there without "500"?', "ERROR entries without 500 in shop.log: 2"),
        ("How many ERROR entries except those about login, ord-58213?", "without ord-58213 or login in shop.log: 1"),
        ("Excluding login, ord-58213, how many ERROR entries are there?", "without ord-58213 or login in shop.log: 1"),
        ("How many ERROR entries without login, please?", "ERROR entries without login in shop.log: 2"),
        ("How many errors other than 500?", "entries without 500 in shop.log: 3"),
        ('How many lines do not mention "zzz"?', "lines without zzz in shop.log: 11"),
        ("How many ERROR entries per component are not about login?", "shop.mail.Sender 1, shop.pay.Gateway 1"),
        ("Which component logs the most errors before the FATAL entry?", "shop.mail.Sender 1, shop.pay.Gateway 1"),
        ("How many entries did Pool write before the FATAL entry?", "written by Pool in shop.log before line 6: 1"),
        ("List the ERROR entries except those about login", "ERROR entries without login in shop.log: 2"),
        ("I can't read it. How many ERROR entries are there?", "ERROR entries in shop.log"),
        ("I don't know how many ERROR entries there are?", "ERROR entries in shop.log: 5"),
        ("It does not start. How many ERROR entries are there?", "ERROR entries in shop.log"),
        ("How many ERROR entries between 10:00 and 10:01?", "ERROR entries between 10:00 and 10:01 in shop.log: 2"),
        ("How many entries mention 'no ERROR seen'?", "entries mentioning no ERROR seen in shop.log: 1"),
    ],
)
async def test_only_lines_within_the_clauses_are_counted(files: Files, question: str, said: str) -> None:
    assert said in (await files.ask(question)).facts


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("What is the first line after the restart?", "line 7 is taken for the restart"),
        ("What is the last INFO before the ERROR?", "line 3 is taken of 5 ERROR entries in shop.log"),
        ("What is the first WARN after the ERROR?", "line 10 is taken of 5 ERROR entries in shop.log"),
        ("What is the first WARN after the first ERROR?", "line 3 is taken of 5 ERROR entries in shop.log"),
        ("How many ERROR entries before the third ERROR?", "line 8 is taken of 5 ERROR entries in shop.log"),
        ("How many errors were there after the first login?", "line 8 is taken of 3 entries with the words login in"),
        ("What came right after the ERROR entry?", "line 10 is taken of 5 entries that fit"),
    ],
)
async def test_which_of_several_entries_was_taken_is_said(files: Files, question: str, note: str) -> None:
    assert note in "\n".join((await files.ask(question)).notes)


async def test_nothing_is_said_of_the_only_entry(files: Files) -> None:
    for question in ("What is the last ERROR before the FATAL entry?", "What came right after the FATAL entry?"):
        assert (await files.ask(question)).notes == ()
    assert (await files.ask("What came right after the first ERROR entry?")).notes == ()


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("What is the first ERROR before the DEBUG entry?", "there are no DEBUG entries in shop.log"),
        ("What is the last ERROR before the third WARN?", "there are only 2 WARN entries in shop.log"),
        ("How many errors were there before ord-99999?", "no entry mentions ord-99999"),
        ("What is the last FATAL before the ERROR?", "there are no FATAL entries in shop.log before line 3"),
        ("How many DEBUG entries are there in the last hour?", "there are no DEBUG entries in shop.log"),
    ],
)
async def test_an_entry_that_is_nowhere_has_nothing_beside_it(files: Files, question: str, missing: str) -> None:
    found = await files.ask(question)
    assert (found.missing, found.passages, found.count or 0) == (missing, (), 0)


@pytest.mark.parametrize(
    ("question", "unread"),
    [
        ("How many ERROR lines are there before midnight in shop.log?", "before midnight"),
        ("How many FATAL entries are there in the last hour in shop.log?", "in the last hour"),
        ("How many errors in the past 10 minutes?", "in the past 10 minutes"),
        ("How many errors last week?", "last week"),
        ("How many errors two days ago?", "two days ago"),
        ("How many errors on Sunday?", "on Sunday"),
        ("How many errors during the night?", "during the night"),
        ("How many errors today?", "today"),
        ("How many errors are there that did not recover?", "not recover"),
        ("How many errors never recovered?", "never recovered"),
        ("How many errors had no retry?", "no retry"),
        ("How many errors are not about the login page?", "not about the login page"),
        ("How many errors are not about the first login?", "not about the first login"),
        ("How many errors are not about authentication?", "not about authentication"),
        ("How many errors were there before the crash?", "before the crash"),
        ("How many errors were there before the first crash?", "before the first crash"),
        ("How many errors were there before it crashed?", "before it crashed"),
        ("How many errors were there after the login?", "after the login"),
        ("How many errors before and after the FATAL entry?", "before and after the FATAL entry"),
        ("How many errors before the FATAL entry after the WARN?", "after the WARN"),
        ("How many errors between the ERROR and the FATAL entry?", "between the ERROR and the FATAL entry"),
        ("How many errors before all the FATAL entries?", "before all the FATAL entries"),
        ("How many ERROR entries are there? Without the login page please.", "Without the login page please"),
        ("How many different users per host got a 500?", "different users"),
        ("How many different users got a 500?", "different values of user"),
        ("How many errors since yesterday?", "since yesterday"),
        ("How many errors in April?", "in April"),
        ("How many errors in late April 2031?", "in late April 2031"),
        ("How many errors this week?", "this week"),
        ("How many errors on 2031-03-05 or 2031-03-06?", "2031-03-06"),
        ("How many errors over 1000 ms are there?", "over 1000 ms"),
        ("How many ERROR entries are longer than a second?", "longer than a second"),
        ("How many ERROR entries of 3 s or more?", "3 s or more"),
        ("How many errors >= 2.5s are there?", ">= 2.5s"),
        ("How many ERROR lines without `retry` mention login?", "without `retry` mention login"),
    ],
)
async def test_no_number_is_given_for_what_cannot_be_told(files: Files, question: str, unread: str) -> None:
    found = await files.ask(question)
    assert (found.facts, found.count) == ("", None)
    assert found.passages
    assert any(f"asked and not computed: {unread}. Shown are " in note for note in found.notes)


@pytest.mark.parametrize(
    "question",
    [
        "What is the first ERROR after midnight?",
        "What was the last ERROR before the crash?",
        "What is the first ERROR after the login?",
        "What is the last ERROR that did not recover?",
        "Which ERROR entries do not belong to login?",
        "How many logins did not succeed?",
        "How many different errors mention login?",
        "Which ERROR came after the login?",
        "What is the first ERROR about cellars before the FATAL entry?",
        "How many errors about cellars are there in the last hour?",
        "How many lines are there in the last hour?",
        "Which ERROR entries without login are there after the order?",
        "Which ERROR entries are there after the login without connection?",
        "Is there no ERROR after the restart?",
        "How many timeouts are not about login in the cellar?",
        "How many errors are in the first 5 lines?",
    ],
)
async def test_what_is_not_understood_is_ranked(files: Files, question: str) -> None:
    found = await files.ask(question)
    assert not found.exact
    assert (found.facts, found.count, found.missing) == ("", None, "")


async def test_lines_of_a_name_are_shown_without_what_is_not_understood(files: Files) -> None:
    found = await files.ask("What happened to ord-58213 yesterday?")
    assert lines(found) == [3, 5]
    assert found.notes == ("found without regard to: yesterday",)


@pytest.mark.parametrize(
    "question", ["Were there no FATAL entries?", "Isn't there a FATAL entry?", "Is there a FATAL entry or not?"]
)
async def test_whether_there_is_none_is_no_exclusion(files: Files, question: str) -> None:
    assert lines(await files.ask(question)) == [6]


async def test_words_behind_before_may_be_what_the_lines_say(files: Files) -> None:
    found = await files.ask("Why do I get an ERROR after the login?")
    assert (lines(found), found.exact) == ([8, 9, 10], True)


async def test_of_different_values_those_of_a_key_are_counted_and_lines_without_it_named(tmp_path: Path) -> None:
    files = Files(tmp_path)
    await files.add("web.log", KEYS.encode())
    found = await files.ask("How many different users got a 500?")
    assert found.facts.split("\n")[0] == "different values of user: 2"
    assert (found.count, found.notes) == (2, ("1 line names no user",))
    found = await files.ask("How many different users are on lines with user=ben?")
    assert (found.count, found.notes) == (1, ())
    assert (await files.ask("How many different users got a teapot?")).count is None


async def test_of_many_lines_before_an_entry_the_nearest_are_shown(tmp_path: Path) -> None:
    files = Files(tmp_path)
    levels = {1: "ERROR", 100: "ERROR", 200: "ERROR", 299: "FATAL"}
    log = "".join(f"2031-03-04 10:{n // 60:02}:{n % 60:02} {levels.get(n, 'INFO')} x: did\n" for n in range(300))
    await files.add("a.log", log.encode())
    assert lines(await files.ask("Which ERROR entries are there before the FATAL entry?", k=1)) == [201]
    assert lines(await files.ask("Which ERROR entries are there after line 1?", k=1)) == [2]


async def test_lines_before_an_entry_are_those_of_its_file(tmp_path: Path) -> None:
    files = Files(tmp_path)
    await files.add("shop.log", LOG.encode())
    await files.add("web.log", KEYS.encode())
    found = await files.ask("How many ERROR entries are there before the FATAL entry?")
    assert found.facts == "ERROR entries in shop.log before line 6: 2"
    assert (await files.ask("What is the first ERROR after user=cara?")).passages[0].source == "web.log"
    assert not (await files.ask("What is the first ERROR before line 3?")).exact
    assert not (await files.ask("What is the last line before the first ERROR?")).exact


async def test_no_answer_is_made_of_files_without_lines(tmp_path: Path) -> None:
    files = Files(tmp_path)
    await files.add("server.yaml", b"port: 1\nhost: a\n")
    await files.add("load.csv", b"timestamp,state\n2031-03-04 10:00:00,idle\n2031-03-04 10:01:00,busy\n")
    assert (await files.ask("How many keys without values are in server.yaml?")).count is None
    assert (await files.ask("How many rows at 10:01 without busy are in load.csv?")).count is None


async def test_a_level_is_one_of_its_names_where_the_file_has_several(tmp_path: Path) -> None:
    files = Files(tmp_path)
    levels = ("ERROR", "CRITICAL", "ERROR", "FATAL")
    await files.add(
        "a.log", "".join(f"2031-03-04 10:00:0{n} {level} x: did\n" for n, level in enumerate(levels)).encode()
    )
    assert lines(await files.ask("What is the last ERROR before the FATAL entry?")) == [3]


async def test_a_number_whose_label_is_elsewhere_in_the_line_is_not_excluded(tmp_path: Path) -> None:
    files = Files(tmp_path)
    await files.add("a.log", b"2031-03-04 10:00:00 ERROR x: job failed, it was 7654321\n")
    found = await files.ask("How many ERROR entries are not about job 7654?")
    assert found.facts == "ERROR entries without job 7654 in a.log: 1"
    found = await files.ask("How many ERROR entries are not about job 7654321?")
    assert (found.facts, found.count) == ("", None)


async def test_words_are_excluded_in_any_form(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    name = cases.case().name
    document = await cases.post(store, "shop.log", LOG)
    found = await store.lines(name, LineWhere((document.doc_id,), words_none=("restarts", "order")), limit=20)
    assert [line.line_no for line in found.lines] == [1, 2, 4, 6, 8, 9, 10, 11]


@pytest.mark.parametrize(
    "question",
    [
        "What came right after the FATAL entry?",
        "the 3 lines before the FATAL entry",
        "what followed directly after the last entry about ord-58213",
        "3 lines before and after it",
        "What was written before that entry?",
        "How many errors until now?",
        "Show me the following line",
        "What is the last ERROR in the following log?",
        "How many errors per day?",
        "Which hour has the most errors?",
        "entries that are not INFO",
        "what is the first day with errors?",
        "what is the last day with errors?",
        "how many entries no later than 10:05?",
        "how many distinct levels are there?",
        "line no. 5",
    ],
)
def test_other_questions_have_no_clauses(question: str) -> None:
    assert planned(question).clauses is None


def test_which_different_ones_is_no_count() -> None:
    assert not planned("Which different users got a 500?").distinct
    assert planned("How many different users got a 500?").distinct


def test_the_clauses_are_in_the_plan_as_they_are_written() -> None:
    told = planned("How many errors before the FATAL entry are not about login, in the last hour?").as_dict()
    assert told["limits"] == "before the FATAL entry are, not about login, in the last hour"
