"""What a model or its endpoint answers, and recordings of that."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, cast, get_args, get_origin, get_type_hints

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from clock import VirtualLoop
from services.assistant.answering import AnswerResult
from services.assistant.citations import (
    clean_id,
    remove_foreign_links,
    resolve_citations,
    resolve_conversations,
    resolve_ids,
)
from services.documents.asking import line_query
from services.documents.asking.line_query import QueryRefused
from services.documents.tools import toolset
from services.documents.tools.libraries import PARAMETERS
from services.knowledge import Source
from services.llm import recording
from services.llm.endpoint import LLMError, Reply, RequestedCall
from services.llm.recording import UnreadableExchanges
from services.llm.structured import NotFound, first_valid_object
from services.llm.tools import Tool, ToolCalls, ToolLimits
from tests.fuzzing.mutations import DEEP, TEXTS, THOROUGHLY, as_json, damaged_text, distorted, line_files, one_line
from tests.services.llm.asking import request_of

SAMPLES: dict[Any, Any] = {bool: True, int: 0, str: "See kb:a.md and https://a.example/x."}


def sample(kind: Any) -> Any:
    """A value of this type, as a model gives it."""
    if is_dataclass(kind):
        return {name: sample(each) for name, each in get_type_hints(kind).items()}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: sample(each.annotation) for name, each in kind.model_fields.items()}
    inner = get_args(kind)
    if not inner:
        return SAMPLES[kind]
    return [sample(inner[0])] if get_origin(kind) is list else sample(inner[0])


ANSWERS: dict[type[BaseModel], Any] = {
    each: sample(each)
    for each in BaseModel.__subclasses__()
    if each.__module__.startswith(("services.assistant.", "operators.")) and each.__name__.endswith("Result")
}
"""What each step that asks a model expects of it."""
SAID = ["Sure:\n```json\n" + json.dumps(each) + "\n```\nDone {not} it." for each in ANSWERS.values()]
QUERY = {"all_of": ["error"], "any_of": ["a", "b"], "none_of": [], "group_by": "hour", "limit": 5}
FORM = {
    **QUERY,
    "line": 5,
    "mode": "context",
    "before": 2,
    "since": "2024-05-01",
    "key": "user",
    "regex": "a+",
    "level": ["WARN"],
}
QUESTION = {"question": "What happened?", "k": 5}
EXCHANGE = json.loads(
    recording.render(request_of("one"), Reply("1", 5, 6, "stop", (RequestedCall("i", "n", "{}"),), "c"))
)
FAILED = json.loads(recording.render(request_of("two"), LLMError("x")))


@THOROUGHLY
@given(
    st.sampled_from(sorted(ANSWERS, key=lambda each: each.__name__)),
    damaged_text(*SAID) | distorted(*ANSWERS.values()).map(json.dumps),
)
@example(AnswerResult, '{"answer": "\\ud83d", "citations": []}')
def test_what_a_model_says_fits_or_is_told_in_one_line(wanted: type[BaseModel], said: str) -> None:
    try:
        found = first_valid_object(said, wanted)
    except NotFound as wrong:
        one_line(wrong)
    else:
        found.model_dump_json()


@THOROUGHLY
@given(
    damaged_text(json.dumps(QUESTION), json.dumps(QUERY)) | distorted(QUESTION, QUERY).map(json.dumps), st.booleans()
)
def test_a_call_of_a_tool_has_a_result_whatever_its_arguments(arguments: str, query: bool) -> None:
    ran: list[Mapping[str, Any]] = []

    async def run(given_arguments: Mapping[str, Any]) -> str:
        ran.append(given_arguments)
        return "found"

    tool = Tool("look", "Looks.", toolset.QUERY_PARAMETERS if query else PARAMETERS, run)
    calls = ToolCalls([tool], ToolLimits(), answer="AnswerResult")
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(calls.run([RequestedCall("1", "look", arguments), RequestedCall("2", "x", arguments)], "text"))
    (done,) = calls.rounds
    assert len(done.results) == 2
    for each in ran:
        json.dumps(each).encode()


@THOROUGHLY
@given(line_files(EXCHANGE, FAILED))
@example(b"[" * DEEP + b"\n" + as_json(EXCHANGE))
def test_a_recorded_exchange_is_read_or_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes) -> None:
    caplog.clear()
    path = tmp_path / "llm.jsonl"
    path.write_bytes(data)
    try:
        found = recording.read(path)
    except UnreadableExchanges as error:
        one_line(error)
        return
    assert len(found) + len(caplog.messages) == len([line for line in data.split(b"\n") if line.strip()])
    for each in found:
        with suppress(LLMError):
            reply = each.outcome()
            assert isinstance(reply.text, str)


@THOROUGHLY
@given(
    st.lists(
        damaged_text("kb:guides/setup.md", "¦ team:x.txt", "Id: `c2`", "qa_20260201_031057.000000")
        | st.sampled_from(TEXTS),
        max_size=3,
    ),
    damaged_text(
        "See [docs](https://a.example/x) and <https://b.example>.\n\n[1]: https://b.example 'T'\n[x][1] ![i](http://c.d)"
    ),
)
def test_citations_and_links_of_an_answer_name_what_was_given(citations: list[str], answer: str) -> None:
    sources = [
        Source("kb:guides/setup.md", "See https://a.example/x."),
        Source("team:x.txt", "--- QA ---\nid: qa_20260201_031057.000000\nTeam: x\n\n"),
    ]
    found = resolve_citations(citations, sources)
    assert set(found.sources) <= {source.id for source in sources}
    known, _ = resolve_conversations(citations, ["qa_20260201_031057.000000"])
    assert set(known) <= {"qa_20260201_031057.000000"}
    resolve_ids(map(clean_id, citations), ["a"])
    left = remove_foreign_links(answer, [source.text for source in sources])
    assert not re.search(r"https?://b\.example", left, re.IGNORECASE)
    assert remove_foreign_links(left, [source.text for source in sources]) == left


@THOROUGHLY
@given(
    distorted(FORM),
    damaged_text("[a-z]+ (x|y)?[0-9]{1,3}", "^\\d+\\s[^ ]* $", "a.b"),
    damaged_text("2024-05-01 14:32:15", "Jun 14 15:16", "14:32"),
)
@example({}, "[---0]", "14:32")
@example({}, "[[a]", "14:32")
def test_a_form_about_lines_is_read_or_refused_in_one_sentence(form: Any, regex: str, since: str) -> None:
    arguments = cast("dict[str, Any]", form) if isinstance(form, dict) else {}
    for each in (arguments, {**arguments, "regex": regex}, {"since": since}, {"until": since, "since": "2024-05-01"}):
        try:
            found = line_query.read(each, [])
        except QueryRefused as refused:
            one_line(ValueError(str(refused).replace("\n", " ")), ".")  # it quotes what the model wrote
        else:
            assert found.limit >= 0
