"""Forms about lines of files: answered verbatim, by the rules of access of the case evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.documents.asking import line_query
from services.documents.asking.query_lines import messages, threads
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import StoredLine
from services.documents.tools.libraries import QAResult, Status
from services.documents.tools.toolset import Toolset, query_file
from tests.services.documents import cases

AUTH = """\
Jun 14 15:16:01 host sshd(pam_unix)[1]: authentication failure; user=root rhost=10.0.0.1
Jun 14 15:16:02 host sshd(pam_unix)[2]: authentication failure; user=guest rhost=10.0.0.12
Jun 14 15:17:03 host sshd(pam_unix)[3]: message repeated 5 times: [ authentication failure; user=root rhost=10.0.0.1]
Jun 15 04:06:18 host su[4]: session opened for PlcmSpIp
"""
MIXED = """\
2031-03-04 10:00:30 ERROR [pool-1] shop.Cart: late
2031-03-04 10:00:10 WARN [pool-2] shop.Cart: slow
2031-03-04 10:00:20 ERROR [pool-2] shop.Mail: NullPointerException
"""


@pytest.fixture
async def store(tmp_path: Path) -> DocumentStore:
    made = cases.new_store(tmp_path)
    await cases.post(made, "auth.log", AUTH)
    await cases.post(made, "mixed.log", MIXED)
    return made


async def ask(store: DocumentStore, **form: Any) -> QAResult:
    evidence = cases.tools_over(store)["answer_from_case_evidence"]
    return await query_file(evidence, cases.context(), form)


def lines(result: QAResult) -> list[int]:
    return [each.line_start for each in result.citations]


async def test_a_count_by_address_names_each_with_its_number(store: DocumentStore) -> None:
    found = await ask(store, file="auth.log", all_of=["authentication failure"], group_by="address")
    assert "3 lines fit" in found.answer
    assert "  10.0.0.1: 6\n  10.0.0.12: 1" in found.answer
    assert not found.citations


async def test_a_repeated_message_counts_as_often_as_it_says(store: DocumentStore) -> None:
    found = await ask(store, file="auth.log", all_of=["user=root"], mode="count")
    assert found.plan["count"] == 6
    assert '1 line says "message repeated n times" and counts n times: 6 messages' in found.answer


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ({"all_of": ["user=root", "10.0.0.1"]}, [1, 3]),
        ({"any_of": ["guest", "PlcmSpIp"]}, [2, 4]),
        ({"all_of": ["host"], "none_of": ["authentication"]}, [4]),
        ({"regex": r"user=(\w+) rhost=10\.0\.0\.12"}, [2]),
        ({"component": "su"}, [4]),
        ({"since": "Jun 15"}, [4]),
        ({"since": "2005-06-15"}, [4]),
        ({"since": "15:16", "until": "15:16"}, [1, 2]),
        ({"until": "Jun 14 15:16:02"}, [1, 2]),
        ({"line": 2, "mode": "list"}, [2]),
    ],
)
async def test_conditions_hold_together(store: DocumentStore, form: dict[str, Any], wanted: list[int]) -> None:
    assert lines(await ask(store, file="auth.log", **form)) == wanted


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        (r"^grüße \w+$", "Grüße Jürgen", True),
        (r"[^\w ]", "Grüße Jürgen", False),
        (r"[\w-]+@x", "jürgen-ä@x", True),
        (r"\d\s\d\Z", "٣\u00a03", True),
        (r"a\\w", r"a\w", True),
        (r"[]\d]\.", "].", True),
        (r"\[\w\]", "[ü]", True),
        (r"(?P<who>\w+)=1", "ß=1", True),
    ],
)
def test_patterns_know_letters_of_all_languages(pattern: str, text: str, *, fits: bool) -> None:
    assert (line_query.compile_pattern(pattern).search(text) is not None) == fits


@pytest.mark.parametrize("pattern", ["(a+)+$", ".?.?.?.?.?.?.*[^a]+a", ".*b.*b.*b.*b.*b.*a", "(b|bb)+a", "(b*)*a"])
async def test_no_pattern_makes_a_line_slow(store: DocumentStore, pattern: str) -> None:
    """A search by trying would take longer than a query may, and say so."""
    await cases.post(store, "flood.log", "b" * 990)
    found = await ask(store, file="flood.log", regex=pattern)
    assert found.status is Status.NOT_FOUND


async def test_the_last_of_many_lines_is_found_without_comparing_them(
    store: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compared(*_: object) -> bool:
        raise AssertionError

    monkeypatch.setattr(StoredLine, "__eq__", compared)
    log = "2024-05-01 10:00:00 ERROR a\n  at here\n2024-05-01 09:00:00 ERROR b\n  at there\n"
    await cases.post(store, "traces.log", log)
    assert lines(await ask(store, file="traces.log", regex="ERROR|at", mode="last", limit=4)) == [1, 3, 2, 4]


async def test_what_is_shown_and_what_is_not_is_told(store: DocumentStore) -> None:
    found = await ask(store, file="auth.log", limit=2)
    assert "4 lines fit" in found.answer
    assert "Shown, in order of time: 2; not shown: 2; go on with offset 2." in found.answer
    assert lines(await ask(store, file="auth.log", limit=2, offset=2)) == [3, 4]


async def test_the_first_is_the_first_by_time_and_that_of_the_file_is_named(store: DocumentStore) -> None:
    found = await ask(store, file="mixed.log", level=["ERROR"], mode="first")
    assert lines(found) == [3]
    assert "mixed.log is not in order of time" in found.answer
    assert "the first of them in the file is line 1" in found.answer
    assert lines(await ask(store, file="mixed.log", level=["ERROR"], mode="first", order="file")) == [1]
    assert lines(await ask(store, file="mixed.log", level=["ERROR"], mode="last")) == [1]
    by_regex = {"file": "mixed.log", "regex": "ERROR"}
    assert lines(await ask(store, **by_regex, mode="first")) == [3]
    assert lines(await ask(store, **by_regex, mode="last")) == [1]
    assert lines(await ask(store, **by_regex, mode="first", order="file")) == [1]
    assert lines(await ask(store, **by_regex, mode="last", order="file")) == [3]
    assert lines(await ask(store, **by_regex, mode="context")) == [1, 3]


NONE = "No line of auth.log, mixed.log fits all of this."
ALONE = f"{NONE} Lines that fit each condition alone:"
REPEATED = '1 line says "message repeated n times" and counts n times: 8 messages (4 more than lines).'
WORDS = "Texts are matched as whole words; regex also finds parts of words."


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"all_of": ["ERROR"]}, "2 lines fit in auth.log, mixed.log. auth.log: 0, mixed.log: 2."),
        (
            {"all_of": ["host"]},
            f"4 lines fit in auth.log, mixed.log. {REPEATED} auth.log: 4, mixed.log: 0.",
        ),
        ({"all_of": ["guest"], "file": "auth.log"}, "1 line fits in auth.log."),
        ({"line": 99}, "There is no line 99: auth.log has 4 lines, mixed.log has 3 lines."),
        ({"regex": "zz"}, NONE),
        ({"all_of": ["pool"], "regex": "zz"}, f'{ALONE} "pool": 3, all of that without the regex: 3. {WORDS}'),
        ({"all_of": ["nothing"]}, f"{NONE} {WORDS}"),
        (
            {"any_of": ["nothing"], "level": ["ERROR"], "component": "shop.Cart", "since": "10:00"},
            f'{ALONE} "nothing": 0, level ERROR: 2, component shop.Cart: 2, since 10:00: 6. {WORDS}',
        ),
    ],
)
async def test_what_fits_is_counted_and_why_none_does(store: DocumentStore, form: dict[str, Any], said: str) -> None:
    assert (await ask(store, **form)).answer.split("\n")[0] == said


async def test_a_line_is_shown_with_those_around_it_marked(store: DocumentStore) -> None:
    found = await ask(store, file="auth.log", line=2, before=1, after=1)
    assert "\n  auth.log:1: " in found.answer
    assert "\n> auth.log:2: " in found.answer
    assert "auth.log:4" not in found.answer
    for before, after, shown in ((1, 0, {1, 2}), (0, 1, {2, 3}), (0, 0, {2})):
        found = await ask(store, file="auth.log", line=2, before=before, after=after)
        assert {n for n in range(1, 5) if f" auth.log:{n}:" in found.answer} == shown


async def test_windows_that_overlap_are_written_once(store: DocumentStore) -> None:
    found = await ask(store, file="auth.log", all_of=["authentication"], mode="context", before=2, after=2)
    assert found.answer.count("auth.log:2:") == 1
    assert found.answer.count("\n> ") == 3


@pytest.mark.parametrize(
    ("numbers", "around", "shown"),
    [
        ((5, 8, 12), 1, ["  4", "> 5", "  6", "  7", "> 8", "  9", "  …", "  11", "> 12", "  13"]),
        ((5, 6, 8), 1, ["  4", "> 5", "> 6", "  7", "> 8", "  9"]),
        ((5, 6), 0, ["> 5", "> 6"]),
        ((5, 7), 0, ["> 5", "  …", "> 7"]),
        ((1, 20), 1, ["> 1", "  2", "  …", "  19", "> 20"]),
    ],
)
async def test_between_windows_that_do_not_meet_a_gap_is_shown(
    store: DocumentStore, numbers: tuple[int, ...], around: int, shown: list[str]
) -> None:
    await cases.post(store, "n.log", "".join(f"2026-03-04 10:00:00 INFO x: did id-{n:03}\n" for n in range(1, 21)))
    wanted = [f"id-{n:03}" for n in numbers]
    found = await ask(store, file="n.log", any_of=wanted, mode="context", before=around, after=around)
    rows = [line for line in found.answer.split("\n") if line.startswith(("  ", "> "))]
    assert [row.replace("n.log:", "").split(":")[0] for row in rows] == shown


@pytest.mark.parametrize(
    ("text", "shape"), [("X failed 3 times", ["X failed # times"]), ("# , 12: did 3", ["did #"]), ("- . ", [])]
)
def test_lines_of_one_shape_are_one_message(text: str, shape: list[str]) -> None:
    assert messages(text) == shape


@pytest.mark.parametrize(
    ("text", "thread"),
    [
        ("10:00 INFO thread=worker-3 [main] x", ["worker-3"]),
        ("10:00 [INFO] [main] [other] x", ["main"]),
        ("10:00 [WARN] x", []),
    ],
)
def test_the_thread_that_wrote_a_line_is_found(text: str, thread: list[str]) -> None:
    assert threads(text) == thread


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ({"group_by": "level", "file": "mixed.log"}, "By level, 2 values; lines:"),
        ({"group_by": "day", "file": "auth.log"}, "  06-14: 7\n  06-15: 1"),
        ({"group_by": "hour", "file": "auth.log"}, "  06-14 15h: 7"),
        ({"group_by": "level", "file": "mixed.log"}, "  ERROR: 2\n  WARN: 1"),
        ({"group_by": "component", "file": "mixed.log"}, "  shop.Cart: 2"),
        ({"group_by": "thread", "file": "mixed.log"}, "  pool-2: 2\n  pool-1: 1"),
        ({"group_by": "key", "key": "user", "file": "auth.log"}, "  root: 6\n  guest: 1\n  (without one: 1)"),
        ({"group_by": "capture", "regex": r"user=(\w+)", "file": "auth.log"}, "  root: 6\n  guest: 1"),
        ({"group_by": "day", "regex": "root", "file": "auth.log"}, "  06-14: 6"),
        ({"group_by": "key", "key": "user", "top": 1, "file": "auth.log"}, "1 not shown; messages:\n  root: 6"),
    ],
)
async def test_lines_are_grouped(store: DocumentStore, form: dict[str, Any], wanted: str) -> None:
    assert wanted in (await ask(store, **form)).answer


async def test_a_log_without_years_shows_none(store: DocumentStore) -> None:
    for form in ({"mode": "first"}, {"group_by": "day"}, {"line": 1}):
        assert "0000" not in (await ask(store, file="auth.log", **form)).answer


async def test_when_nothing_fits_each_condition_has_its_own_count(store: DocumentStore) -> None:
    found = await ask(store, file="auth.log", all_of=["guest", "PlcmSpIp"])
    assert found.status is Status.NOT_FOUND
    assert '"guest": 1, "PlcmSpIp": 1' in found.answer
    assert "regex also finds parts of words" in (await ask(store, all_of=["Exception", "late"])).answer
    assert "There is no line 9: auth.log has 4 lines." in (await ask(store, file="auth.log", line=9)).answer


async def test_a_text_never_matches_inside_a_word(store: DocumentStore) -> None:
    assert (await ask(store, file="auth.log", all_of=["IP"])).plan["count"] == 0


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"file": "gone.log"}, "There is no file gone.log; there are: auth.log, mixed.log."),
        ({"mode": "sum"}, "mode has to be one of: count, list, first, last, context."),
        ({"level": ["LOUD"]}, "LOUD is no level"),
        ({"since": "yesterday"}, "yesterday is no time"),
        ({"regex": "(a"}, "regex is not valid: missing ): (a"),
        ({"regex": r"(?=a)b"}, "regex is not valid: invalid perl operator: (?="),
        ({"regex": r"(a)\1"}, "regex is not valid: invalid escape sequence: \\1"),
        ({"regex": "(a{100}){100}"}, "regex is not valid"),
        ({"regex": "a" * 201}, "200 characters"),
        ({"limit": 0}, "limit has to be a whole number from 1 to 100."),
        ({"all_of": [1]}, "all_of has to be a list of texts."),
        ({"group_by": "capture"}, "needs a regex"),
        ({"group_by": "key"}, "needs key"),
    ],
)
async def test_a_wrong_form_is_refused_in_one_sentence(store: DocumentStore, form: dict[str, Any], why: str) -> None:
    found = await ask(store, **form)
    assert found.status is Status.INVALID
    assert why in found.answer
    assert "\n" not in found.answer


async def test_who_may_ask_is_as_for_the_case_evidence(store: DocumentStore) -> None:
    evidence = cases.tools_over(store)["answer_from_case_evidence"]
    for stranger in (cases.context(guild=8), cases.context(cases.OTHER_THREAD)):
        found = await query_file(evidence, stranger, {"all_of": ["root"]})
        assert found.status in {Status.DENIED, Status.NOT_INDEXED}
        assert "root" not in found.answer


async def test_it_is_offered_where_there_are_files_and_its_lines_may_be_cited(store: DocumentStore) -> None:
    toolset = Toolset(cases.tools_over(store), cases.context())
    await toolset.prepare()
    tool = next(each for each in toolset.tools if each.name == "query_file")
    told = await tool.run({"file": "auth.log", "any_of": ["guest"]})
    assert not isinstance(told, str)
    assert told.counts
    assert "Source: auth.log:2" in told.text
    assert toolset.valid_citations(["auth.log:2", "auth.log:3"]) == ["auth.log:2", "auth.log"]
    nothing = await tool.run({"file": "auth.log", "any_of": ["nobody"]})
    assert not isinstance(nothing, str)
    assert not nothing.counts
    elsewhere = Toolset(cases.tools_over(store), cases.context(cases.OTHER_THREAD))
    await elsewhere.prepare()
    assert not elsewhere.tools


async def test_long_results_say_how_much_of_them_is_shown(store: DocumentStore) -> None:
    long = "".join(f"2031-03-04 10:00:00 INFO a.B: {n} {'x' * 380}\n" for n in range(60))
    await cases.post(store, "long.log", long)
    found = await ask(store, file="long.log", limit=50)
    assert len(found.answer) < 8000
    assert f"not shown: {60 - len(found.citations)}; go on with offset {len(found.citations)}" in found.answer


async def test_a_text_that_lines_were_counted_by_may_be_quoted(store: DocumentStore) -> None:
    """What was asked for literally, and found, stands in the file."""
    toolset = Toolset(cases.tools_over(store), cases.context())
    await toolset.prepare()
    await toolset.query({"file": "auth.log", "all_of": ["authentication failure"], "mode": "count"})
    checked = toolset.mark_unsupported('It holds "authentication failure" seven times, and "no such thing" never.', [])
    assert '"authentication failure" seven' in checked
    assert '"no such thing" (unverified)' in checked


async def test_lines_are_counted_by_what_they_say_whatever_their_numbers(store: DocumentStore) -> None:
    found = await ask(store, file="auth.log", group_by="message", top=1)
    found_twice = await ask(store, file="mixed.log", group_by="message")
    assert "Jun # # host sshd(pam_unix)[#]: message repeated # times" in found.answer
    assert "ERROR [#] shop.Cart: late: 1" in found_twice.answer
