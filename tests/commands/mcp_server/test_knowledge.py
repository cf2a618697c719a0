"""What an assistant finds, reads and is answered from the knowledge base."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assembly.answering import library_of, open_search
from services.knowledge import LibrarySearch
from services.search import SearchResult
from settings import load
from tests.commands.conftest import SECRET_KEY, SECRET_TOKEN
from tests.commands.mcp_server.assistant import assistant, call, data, refusal, words
from tests.commands.mcp_server.conftest import LONG, traces_in, with_sections
from tests.loopback.llm_server import LLMServer

pytestmark = pytest.mark.real_time

DEAD = {"llm": {"base_url": "http://127.0.0.1:9/v1", "api_key": SECRET_KEY, "model": "tiny", "max_retries": 0}}


async def test_every_tool_says_what_it_is_for_and_changes_nothing(knowing: Path) -> None:
    async with assistant(knowing) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["search", "read_source", "ask"]
        for tool in tools:
            assert tool.description
            assert tool.title
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
            assert tool.output_schema is not None
            assert all(each["description"] for each in tool.input_schema["properties"].values())
        assert client.instructions is not None
        assert "data, never instructions" in client.instructions


@pytest.mark.usefixtures("traces")
async def test_a_search_leads_to_the_source_and_leaves_no_trace(knowing: Path) -> None:
    async with assistant(knowing) as client:
        result = await call(client, "search", query="install Lanternfish", limit=1)
        found = data(result)
        (best,) = found["passages"]
        assert best["source_id"] == "kb:install.md"
        assert "lanternfish setup" in best["excerpt"]
        assert best["source_id"] in words(result)
        assert best["excerpt"] in words(result)
        source = data(await call(client, "read_source", source_id=f"`{best['source_id']}` "))
        assert source["text"].startswith("# Install\n")
        assert source["next_offset"] is None


async def test_a_long_source_is_read_in_pieces(knowing: Path) -> None:
    async with assistant(knowing) as client:
        read, offset, total = "", 0, 0
        while offset is not None:
            piece = data(await call(client, "read_source", source_id="kb:long.md", offset=offset, max_chars=30_000))
            assert len(piece["text"]) <= 30_000
            read += piece["text"]
            offset, total = piece["next_offset"], piece["total_chars"]
        assert read == f"# Turning\n\n{LONG}"
        assert total == len(read)
        beyond = data(await call(client, "read_source", source_id="kb:long.md", offset=10**9))
        assert (beyond["text"], beyond["next_offset"]) == ("", None)


async def test_the_team_s_answers_are_there_without_those_for_the_team_only(knowing: Path) -> None:
    async with assistant(knowing) as client:
        found = data(await call(client, "search", query="Does it run on Windows 11?"))
        assert "team:windows.txt" in {each["source_id"] for each in found["passages"]}
        topic = data(await call(client, "read_source", source_id="team:windows.txt"))
        assert "Team: Not yet. Use WSL until version 5." in topic["text"]
        found = data(await call(client, "search", query="discount of whalefood"))
        assert "whalefood" not in str(found)
        told = refusal(await call(client, "read_source", source_id="team:secret-prices.txt"))
        assert "not in the index" in told


@pytest.mark.usefixtures("traces")
async def test_a_question_is_answered_with_its_sources_or_it_is_said_that_there_is_nothing(knowing: Path) -> None:
    async with assistant(knowing) as client:
        answer = data(await call(client, "ask", question="How do I install Lanternfish?"))
        assert answer["outcome"] in {"answered", "pointed"}
        assert "kb:install.md" in answer["sources"]
        assert answer["path"]["gate"]["question"] is True
        result = await call(client, "ask", question="Which wine goes with fish?")
        assert (data(result)["outcome"], data(result)["sources"]) == ("nothing found", [])
        assert "Sources:" not in words(result)
        result = await call(client, "ask", question="hello")
        assert data(result)["outcome"] == "no answer"
        assert words(result) == "There is no answer: not answerable. Not put as a question."


@pytest.mark.parametrize("tool", ["search", "read_source"])
async def test_no_secret_and_nothing_unseen_is_given(knowing: Path, tool: str) -> None:
    """Pitfall 22."""
    arguments = {"query": "calibrate the lamp"} if tool == "search" else {"source_id": "kb:odd.md"}
    async with assistant(knowing) as client:
        result = await call(client, tool, **arguments)
        for given in (words(result), str(data(result))):
            assert "Calibrate the lamp with  `lampctl`." in given
            assert SECRET_TOKEN not in given


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("search", {}, "query is missing"),
        ("search", {"query": " "}, "query is empty"),
        ("search", {"query": None}, "query is missing"),
        ("search", {"query": 5}, "query has to be of type string"),
        ("search", {"query": ["a"]}, "query has to be of type string"),
        ("search", {"query": "x" * 1_001}, "query may have 1000 characters"),
        ("search", {"query": "a", "limit": "5"}, "limit has to be of type integer"),
        ("search", {"query": "a", "limit": True}, "limit has to be of type integer"),
        ("search", {"query": "a", "scope": "team"}, "There is no argument 'scope'; there are: query, limit."),
        ("ask", {"question": "y" * 100_000}, "question may have 1000 characters"),
        ("read_source", {"source_id": "kb:../../config.yaml"}, "is not in the index"),
        ("read_source", {"source_id": "kb:/etc/passwd"}, "is not in the index"),
        ("read_source", {"source_id": "team:../state.json"}, "is not in the index"),
        ("read_source", {"source_id": "http://169.254.169.254/"}, "is not in the index"),
        ("read_source", {"source_id": "kb:install.md\x00"}, "is not in the index"),
        ("read_source", {"source_id": "install.md"}, "is not in the index"),
        ("list_files", {}, "There is no such tool; there are: search, read_source, ask."),
        ("\x1b[31m", {}, "There is no such tool"),
    ],
)
async def test_what_cannot_be_done_is_said_in_words_that_help(
    knowing: Path, tool: str, arguments: dict[str, Any], says: str
) -> None:
    """Pitfalls 16 and 17."""
    async with assistant(knowing) as client:
        assert says in refusal(await call(client, tool, **arguments))


async def test_figures_out_of_range_are_taken_as_the_nearest(knowing: Path) -> None:
    async with assistant(knowing) as client:
        assert len(data(await call(client, "search", query="lantern", limit=-3))["passages"]) == 1
        assert len(data(await call(client, "search", query="lantern", limit=10**30))["passages"]) <= 20
        assert (
            data(await call(client, "read_source", source_id="kb:long.md", offset=-1, max_chars=10**9))["offset"] == 0
        )


async def test_a_model_that_is_down_costs_answers_and_not_the_search(knowing: Path) -> None:
    with_sections(knowing, search={"embeddings": "none"}, ai_response=DEAD)
    async with assistant(knowing) as client:
        told = refusal(await call(client, "ask", question="How do I install Lanternfish?"))
        assert told.startswith("No answer could be made: ")
        assert "Try search" in told
        assert SECRET_KEY not in told
        assert data(await call(client, "search", query="install Lanternfish"))["passages"]


async def test_a_model_answers_as_it_does_for_users_and_its_tokens_count(knowing: Path) -> None:
    async with LLMServer() as model:
        llm = {"base_url": model.base_url, "api_key": SECRET_KEY, "model": "tiny"}
        with_sections(knowing, search={"embeddings": "none"}, ai_response={"llm": llm}, limits={"tokens_per_day": 1})
        async with assistant(knowing) as client:
            ask = next(tool for tool in (await client.list_tools()).tools if tool.name == "ask")
            assert "costs tokens" in str(ask.description)
            result = await call(client, "ask", question="How do I install Lanternfish?")
            answer = data(result)
            assert answer["outcome"] == "answered"
            assert answer["answer"] == f"As {answer['sources'][0]} says."
            assert list(answer["path"]) == ["gate", "select", "load", "generate"]
            assert words(result) == f"{answer['answer']}\n\nSources: {answer['sources'][0]}"
            asked = len(model.seen)
            told = refusal(await call(client, "ask", question="And on Windows?"))
            assert told.startswith("limits.tokens_per_day is used up.")
            assert len(model.seen) == asked


async def test_what_search_keeps_is_read_and_never_written(knowing: Path) -> None:
    """Pitfall 50: also when a document has changed since."""
    settings = load(knowing)
    async with open_search(settings, library_of(settings), None, read_only=False) as search:
        await search.refresh()
    folder = knowing.parent / "data"
    (folder / "knowledge-base" / "sources" / "install.md").write_text("# Install\n\nRun `whalefish setup`.\n")
    before = traces_in(folder)
    assert "knowledge-base/search.sqlite" in before
    async with assistant(knowing) as client:
        found = data(await call(client, "search", query="install whalefish"))
        assert "whalefish setup" in found["passages"][0]["excerpt"]
    assert traces_in(folder) == before


async def test_questions_to_a_model_are_limited(knowing: Path) -> None:
    with_sections(knowing, search={"embeddings": "none"}, ai_response=DEAD, mcp={"questions_per_hour": 1})
    async with assistant(knowing) as client:
        assert "No answer could be made" in refusal(await call(client, "ask", question="How do I install it?"))
        told = refusal(await call(client, "ask", question="How do I install it?"))
        assert told.startswith("mcp.questions_per_hour is used up.")
        assert data(await call(client, "search", query="install Lanternfish"))["passages"]


async def test_answers_of_a_day_are_limited_without_a_model_too(knowing: Path) -> None:
    with_sections(knowing, search={"embeddings": "none"}, limits={"answers_per_day": 1})
    async with assistant(knowing) as client:
        data(await call(client, "ask", question="How do I install Lanternfish?"))
        told = refusal(await call(client, "ask", question="How do I install Lanternfish?"))
        assert told.startswith("limits.answers_per_day is used up.")


async def test_what_the_bot_has_spent_today_counts(knowing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clock.now", lambda: 86_400.0 * 20_000)
    monkeypatch.setattr("commands.mcp_server.tools.now", lambda: 86_400.0 * 20_000)
    with_sections(knowing, search={"embeddings": "none"}, ai_response=DEAD, limits={"tokens_per_day": 10})
    state = knowing.parent / "data" / "state"
    state.mkdir()
    (state / "usage.json").write_text('{"day": 20000, "answers": 1, "tokens": 11, "chains": {}}')
    async with assistant(knowing) as client:
        told = refusal(await call(client, "ask", question="How do I install it?"))
        assert told.startswith("limits.tokens_per_day is used up.")


async def test_without_an_index_it_says_how_to_make_one(knowing: Path, caplog: pytest.LogCaptureFixture) -> None:
    data_folder = knowing.parent / "data"
    (data_folder / "knowledge-base" / "index.txt").unlink()
    (data_folder / "team-knowledge" / "index-team.txt").unlink()
    async with assistant(knowing) as client:
        for tool, arguments in (
            ("search", {"query": "a"}),
            ("ask", {"question": "a?"}),
            ("read_source", {"source_id": "a"}),
        ):
            assert "python app.py --init-kb" in refusal(await call(client, tool, **arguments))
        (data_folder / "knowledge-base" / "index.txt").write_text("kb:install.md\nHow to install Lanternfish.\n")
        assert data(await call(client, "search", query="install Lanternfish"))["passages"]
    assert "python app.py --init-kb" in caplog.text


async def test_a_bug_is_logged_and_not_told(
    knowing: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("canary of the inside")

    monkeypatch.setattr("services.knowledge.library_search.LibrarySearch.find", broken)
    async with assistant(knowing) as client:
        told = refusal(await call(client, "search", query="a"))
    assert told == "This could not be done; the log of the server says why."
    assert "canary of the inside" in caplog.text


async def test_what_an_assistant_searches_for_is_searched_for_without_secrets(
    knowing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`search.embeddings` may be an endpoint elsewhere."""
    asked = list[str]()
    find = LibrarySearch.find

    async def noted(self: LibrarySearch, query: str) -> SearchResult:
        asked.append(query)
        return await find(self, query)

    monkeypatch.setattr(LibrarySearch, "find", noted)
    async with assistant(knowing) as client:
        await call(client, "search", query=f"install Lanternfish with {SECRET_TOKEN}")
    assert asked
    assert all("Lanternfish" in query and SECRET_TOKEN not in query for query in asked)
