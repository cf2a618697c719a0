"""What is computed over whole files: grouped, counted, in order; and what was asked and not computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.documents.asking.passages import CitedPassage
from services.documents.asking.query_lines import addresses
from services.documents.asking.synthesis import check_answer
from services.documents.store.document_store import DocumentStore
from services.documents.tools.libraries import QAResult
from tests.services.documents import cases

AUTH = """\
Jun 14 15:16:01 host sshd[11]: authentication failure; user=root rhost=10.0.0.1
Jun 14 15:16:02 host sshd[12]: authentication failure; user=guest rhost=10.0.0.12
Jun 14 15:17:03 host sshd[13]: message repeated 5 times: [ authentication failure; user=root rhost=10.0.0.1]
Jun 15 04:06:18 host su[14]: session opened for PlcmSpIp
"""


@pytest.fixture
async def store(tmp_path: Path) -> DocumentStore:
    made = cases.new_store(tmp_path)
    await cases.post(made, "auth.log", AUTH)
    return made


async def ask(store: DocumentStore, question: str, k: int = 5) -> QAResult:
    return await cases.tools_over(store)["answer_from_case_evidence"].ask(cases.context(), question, k)


async def test_addresses_are_counted_when_it_is_asked_which_is_the_most_frequent(store: DocumentStore) -> None:
    found = await ask(store, "which IP address failed most often?")
    assert "by address: 10.0.0.1 6, 10.0.0.12 1" in found.answer


async def test_lines_are_counted_by_the_key_that_is_asked_for(store: DocumentStore) -> None:
    assert "by user: root 6, guest 1" in (await ask(store, "number of authentication failures per user")).answer


async def test_what_cannot_be_counted_by_is_said(store: DocumentStore) -> None:
    answer = (await ask(store, "how many entries are there per country?")).answer
    assert "asked and not computed: numbers by country" in answer


async def test_a_repeated_message_counts_as_often_as_it_says_and_that_is_said(store: DocumentStore) -> None:
    found = await ask(store, 'how many lines contain "user=root"?')
    assert found.plan["count"] == 6
    assert '1 line says "message repeated n times", and counts n times: 2 lines' in found.answer


async def test_groups_count_messages_as_the_total_does(store: DocumentStore) -> None:
    assert "by component: sshd 7, su 1" in (await ask(store, "breakdown by component")).answer


async def test_a_year_that_a_log_leaves_out_does_not_matter(store: DocumentStore) -> None:
    found = await ask(store, "what was logged on Jun 15 2005?")
    assert [each.line_start for each in found.citations] == [4]


async def test_all_different_values_are_counted_also_those_that_are_not_listed(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    await cases.post(store, "a.log", "".join(f"2031-03-04 10:00:00 INFO a.B{n}: did\n" for n in range(60)))
    found = await ask(store, "how many distinct components are there?")
    assert found.plan["count"] == 60
    assert "others or none 10" in found.answer


async def test_or_is_or(store: DocumentStore) -> None:
    assert (await ask(store, 'how many lines contain "user=guest" or "PlcmSpIp"?')).plan["count"] == 2
    assert (await ask(store, 'how many lines contain "user=guest" and "user=root"?')).plan["count"] == 0


async def test_when_nothing_holds_all_phrases_each_has_its_count(store: DocumentStore) -> None:
    answer = (await ask(store, 'how many lines contain "user=guest" and "user=root"?')).answer
    assert '"user=guest" alone: 1, "user=root" alone: 2' in answer


async def test_a_generic_noun_is_not_looked_for_inside_words(store: DocumentStore) -> None:
    answer = (await ask(store, "which IP shows up most often?")).answer
    assert "with the words" not in answer
    assert "10.0.0.1 6" in answer


async def test_a_pure_count_brings_no_passages_and_names_its_file(store: DocumentStore) -> None:
    found = await ask(store, "how many lines are there?")
    assert (found.chunk_count, found.sources, found.plan["count"]) == (0, ("auth.log",), 8)


async def test_no_year_is_invented(store: DocumentStore) -> None:
    for question in ("what is on line 2?", "how many lines per day?", "what happened to the session?"):
        assert "0000" not in (await ask(store, question)).answer
    assert "06-14 7" not in (await ask(store, "what is on line 2?")).answer


async def test_a_file_out_of_order_is_said_and_its_own_first_line_named(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    lines = [f"2031-03-04 10:00:{second} ERROR a.B: late" for second in (30, 10, 20)]
    await cases.post(store, "mixed.log", "\n".join(lines) + "\n")
    found = await ask(store, "what is the first ERROR?")
    assert (found.citations[0].line_start, found.citations[0].line_end) == (1, 2), "both that may be meant"
    assert "line 2 is the first by time" in found.answer
    assert "the first of them in the file is line 1 (2031-03-04T10:00:30)" in found.answer


async def test_windows_that_overlap_are_one_with_every_hit_marked(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    lines = [f"2031-03-04 10:00:{n:02} {'ERROR' if n in (10, 18) else 'INFO'} a.B: step" for n in range(30)]
    await cases.post(store, "steps.log", "\n".join(lines) + "\n")
    asker = cases.ScriptedAsker("Two.")
    found = await cases.tools_over(store, asker=asker)["answer_from_case_evidence"].ask(
        cases.context(), "list the ERROR entries"
    )
    assert found.chunk_count == 1
    prompt = asker.asked[0][2]
    assert prompt.count(">11: ") == prompt.count(">19: ") == 1


@pytest.mark.parametrize(
    ("answer", "unverified"),
    [
        ('A 5" disk, then "no space left" was logged.', 0),
        ('"no space left" on a 5" disk', 0),
        ('It says "write "data" failed" twice.', 0),
        ('It says "never written".', 1),
        ('"no space left" and "never written" stand there', 1),
        ('A 5" disk and "no space left", "never written"', 1),
    ],
)
def test_a_lone_quotation_mark_does_not_spoil_the_others(answer: str, unverified: int) -> None:
    passage = CitedPassage("d", "a.log", 'no space left\nwrite "data" failed', 1, 2, (1,), "d:1")
    checked = check_answer(answer, [passage])
    assert checked.unverified == unverified
    assert checked.answer.count("(unverified)") == unverified


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from fe80:0:0:1::2 and 10.0.0.1:80", ["fe80:0:0:1::2", "10.0.0.1"]),
        ("1:2:3:4:5:6:7:8 at 10:20:30, 2001:db8::1", ["1:2:3:4:5:6:7:8", "2001:db8::1"]),
        ("a:b:abcdef a:b:c: std::pair 1.2.3.4.5", []),
    ],
)
def test_addresses_are_found_whole(line: str, found: list[str]) -> None:
    assert addresses(line) == found
