"""Which files of threads an assistant may read, and what it learns from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commands.mcp_server.tools import ReadableThreads
from services.conversations import Post
from services.conversations.posts import render_post
from services.documents.store import Folders, sqlite_store
from services.documents.store.protocol import Collection
from services.storage import DataFolder
from tests.commands.conftest import SECRET_KEY
from tests.commands.mcp_server.assistant import assistant, call, data, refusal, words
from tests.commands.mcp_server.conftest import traces_in, with_sections
from tests.services.documents import cases

pytestmark = pytest.mark.real_time

HELP, PRIVATE = 17, 18
OPENED, BY_PEOPLE, ELSEWHERE, NAMED = 100, 101, 102, 103
"""Threads: opened by the bot in the channel that is open to assistants, by people there, by the bot in another channel;
and one that is named itself.
"""
NO_FILES = "There are no files here. list_files shows the threads that have some."


@pytest.fixture
async def posted(knowing: Path) -> Path:
    """A configuration with files in four threads, two of which are open to assistants."""
    folder = DataFolder(knowing.parent / "data")
    store = sqlite_store(Folders(folder.evidence, folder.runbooks))
    for thread in (OPENED, BY_PEOPLE, ELSEWHERE, NAMED):
        collection = cases.case(thread)
        await store.add(collection, [cases.new(f"shop-{thread}.log", cases.LOG)])
    await store.add(Collection("user_311_kb", "user", "311"), [cases.new("mine.md", cases.RUNBOOK, title="Mine")])
    await store.close()
    folder.posts.parent.mkdir(exist_ok=True)
    record(folder.posts, (OPENED, HELP, True), (BY_PEOPLE, BY_PEOPLE, False), (ELSEWHERE, PRIVATE, True))
    with_sections(knowing, mcp={"channels": [HELP, NAMED]})
    return knowing


def record(path: Path, *posts: tuple[int, int, bool]) -> None:
    """The thread of each post, where its question was asked, and whether the bot opened the thread."""
    path.write_bytes(
        b"".join(
            render_post(Post(1.0, number, thread, asked_in, 311, number, opened, "q", ()))
            for number, (thread, asked_in, opened) in enumerate(posts, 1)
        )
    )


async def test_files_are_not_offered_unless_the_operator_says_of_which_channels(posted: Path) -> None:
    with_sections(posted, mcp={})
    async with assistant(posted) as client:
        assert "list_files" not in {tool.name for tool in (await client.list_tools()).tools}
        assert "There is no such tool" in refusal(await call(client, "list_files"))


async def test_only_threads_that_are_open_are_listed_and_nothing_is_written(posted: Path) -> None:
    """Pitfalls 47 and 50."""
    before = traces_in(posted.parent / "data")
    async with assistant(posted) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["search", "read_source", "ask", "list_files", "query_file", "answer_from_case_evidence"]
        result = await call(client, "list_files")
        listed = data(result)
        assert [(each["thread_id"], each["channel_id"]) for each in listed["threads"]] == [
            (str(NAMED), None),
            (str(OPENED), str(HELP)),
        ]
        (file,) = listed["threads"][1]["files"]
        assert (file["name"], file["kind"], file["lines"]) == (f"shop-{OPENED}.log", "log", 8)
        assert "mine.md" not in str(listed)
        assert f"shop-{OPENED}.log (log, " in words(result)
        for thread in (OPENED, NAMED):
            assert data(await call(client, "query_file", thread_id=str(thread), level=["FATAL"]))["status"] == "ok"
            asked = await call(client, "answer_from_case_evidence", thread_id=str(thread), question="What is FATAL?")
            assert "No free connection" in data(asked)["answer"]
    assert traces_in(posted.parent / "data") == before


@pytest.mark.parametrize("thread", ["101", "102", "311", "404", "17", "-1", "²", "../state", " "])
@pytest.mark.parametrize("tool", ["query_file", "answer_from_case_evidence"])
async def test_of_other_threads_nothing_is_told_not_even_whether_they_have_files(
    posted: Path, tool: str, thread: str
) -> None:
    more = {"question": "What is FATAL?"} if tool.startswith("answer") else {}
    async with assistant(posted) as client:
        told = refusal(await call(client, tool, thread_id=thread, **more))
        assert told == (NO_FILES if thread.strip() else "Not done: thread_id is empty.")


async def test_lines_are_quoted_with_their_places(posted: Path) -> None:
    async with assistant(posted) as client:
        result = await call(client, "query_file", thread_id=str(OPENED), level=["ERROR"], mode="list")
        found = data(result)
        assert [(each["file"], each["line_start"]) for each in found["citations"]] == [
            (f"shop-{OPENED}.log", 4),
            (f"shop-{OPENED}.log", 6),
        ]
        assert "order ord-58213 declined" in words(result)
        none = data(await call(client, "query_file", thread_id=str(OPENED), all_of=["whale"]))
        assert none["status"] == "not_found"


@pytest.mark.parametrize(
    "form",
    [
        {"regex": "(?=a)$"},
        {"regex": 5},
        {"all_of": [f"x{number}" for number in range(1_000)]},
        {"all_of": [{"a": 1}]},
        {"limit": 10**12},
        {"mode": "delete"},
        {"file": "../../config.yaml"},
        {"since": "x" * 10_000},
        {"case_id": "101"},
    ],
)
async def test_a_form_that_cannot_be_filled_in_so_is_refused_in_words(posted: Path, form: dict[str, Any]) -> None:
    async with assistant(posted) as client:
        told = await call(client, "query_file", thread_id=str(OPENED), **form)
        assert told.is_error
        assert len(words(told)) < 1_000
        assert "FATAL" not in words(told)


async def test_files_are_gone_as_soon_as_the_bot_deletes_them(posted: Path) -> None:
    """Pitfall 49."""
    folder = DataFolder(posted.parent / "data")
    bot = sqlite_store(Folders(folder.evidence, folder.runbooks))
    async with assistant(posted) as client:
        data(await call(client, "query_file", thread_id=str(OPENED), level=["FATAL"]))
        assert await bot.describe(cases.case(OPENED).name) is not None, "the bot has it open"
        await bot.delete_collection(cases.case(OPENED).name)
        assert refusal(await call(client, "query_file", thread_id=str(OPENED), level=["FATAL"])) == NO_FILES
        told = refusal(await call(client, "answer_from_case_evidence", thread_id=str(OPENED), question="What?"))
        assert told == NO_FILES
    await bot.close()


async def test_a_damaged_file_is_no_traceback(posted: Path) -> None:
    evidence = DataFolder(posted.parent / "data").evidence
    (evidence / f"case_{OPENED}.sqlite").write_bytes(b"no database " * 1_000)
    async with assistant(posted) as client:
        for tool, arguments in (("list_files", {}), ("query_file", {"thread_id": str(OPENED)})):
            assert "try again later" in refusal(await call(client, tool, **arguments))


async def test_a_model_that_is_down_leaves_the_passages(posted: Path) -> None:
    dead = {"base_url": "http://127.0.0.1:9/v1", "api_key": SECRET_KEY, "model": "tiny", "max_retries": 0}
    with_sections(posted, documents={"synthesis_llm": dead}, mcp={"channels": [HELP], "questions_per_hour": 1})
    question = {"thread_id": str(OPENED), "question": "Why did the pool run out of connections?"}
    async with assistant(posted) as client:
        result = await call(client, "answer_from_case_evidence", **question)
        assert data(result)["status"] == "synthesis_error"
        assert "No free connection" in words(result)
        assert "questions_per_hour is used up" in refusal(await call(client, "answer_from_case_evidence", **question))
        data(await call(client, "query_file", thread_id=str(OPENED)))


async def test_a_thread_is_closed_to_assistants_when_its_record_is_gone(tmp_path: Path) -> None:
    """As after `--forget` of who asked there."""
    posts = tmp_path / "posts.jsonl"
    threads = ReadableThreads(frozenset({HELP}), posts)
    assert not await threads.allows(OPENED)
    record(posts, (OPENED, HELP, True))
    assert await threads.allows(OPENED)
    record(posts)
    assert not await threads.allows(OPENED)
