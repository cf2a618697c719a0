"""`--eval` with a model: recorded and replayed, cut off and resumed, and where nobody is there."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from tests.commands.evaluating.conftest import Operator
from tests.commands.evaluating.examples import ROOT
from tests.loopback import llm_scenes as scenes
from tests.loopback.llm_scenes import Body, Scene
from tests.loopback.llm_server import LLMServer

CALLS_OF_AN_ANSWER = 3
KEY = "canary-of-the-model"


@pytest.fixture
def model() -> Iterator[LLMServer]:
    """A loopback model on a loop of its own."""
    loop, server = asyncio.new_event_loop(), LLMServer()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
    yield server
    asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def configure(operator: Operator, base_url: str, **answering: Any) -> None:
    price = {"prompt": 1000.0, "completion": 0.0}
    llm = {"base_url": base_url, "api_key": KEY, "model": "m", "max_retries": 0, "price_per_million": price}
    operator.configure(ai_response={"llm": llm, **answering})


def test_a_recorded_run_is_replayed_without_a_network_byte_for_byte(operator: Operator, model: LLMServer) -> None:
    configure(operator, model.base_url)
    exchanges = operator.folder / "exchanges.jsonl"
    code, recorded, _ = operator.evaluates("--json", "--llm-record", exchanges)
    assert code == 0
    asked = len(model.seen)
    for _ in range(2):
        assert operator.evaluates("--json", "--llm-replay", exchanges) == (0, recorded, "")
    assert len(model.seen) == asked == 3 * CALLS_OF_AN_ANSWER


def test_tokens_and_their_price_are_told(operator: Operator, model: LLMServer) -> None:
    configure(operator, model.base_url)
    rows, summary = operator.rows()
    assert summary["llm_calls"] == sum(row["llm_calls"] for row in rows) == 3 * CALLS_OF_AN_ANSWER
    counted = [sum(row["tokens"][step][at] for row in rows for step in row["tokens"]) for at in (0, 1)]
    assert summary["tokens"] == counted
    assert summary["cost"] == pytest.approx(counted[0] / 1000)
    _, out, _ = operator.evaluates()
    told = f"9 LLM calls, {counted[0]:,} tokens in prompts, {counted[1]:,} in replies, cost {counted[0] / 1000:.4f}."
    assert told in out


def test_a_model_that_is_not_there_is_a_readable_line_and_a_failure(operator: Operator) -> None:
    """Pitfall 22. The other questions are not tried."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        configure(operator, f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        code, out, err = operator.evaluates()
    assert (code, out) == (1, "")
    first, last = err.splitlines()
    assert "cannot be reached; check base_url" in first
    assert last == (
        "app.py: the model cannot answer (Unavailable at gate): 0 of 3 questions done. "
        "Nothing is kept; with --save FILE the same command would go on from there."
    )
    assert KEY not in err


def answering_until(count: int, then: Scene) -> Scene:
    """Good for so many calls."""
    good, calls = scenes.good(), iter(range(count))

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        return await (good if next(calls, None) is not None else then)(request, body)

    return play


def more_questions(operator: Operator, count: int) -> None:
    operator.questions.write_text(
        "questions:\n" + "".join(f"  - question: How do I do {n}?\n    silence: true\n" for n in range(count))
    )


def test_a_model_that_stops_answering_is_not_asked_for_ever(operator: Operator, model: LLMServer) -> None:
    """And what it has answered is kept."""
    configure(operator, model.base_url, max_concurrent_answers=1)
    more_questions(operator, 20)
    saved = operator.folder / "run.jsonl"
    model.otherwise = answering_until(2 * CALLS_OF_AN_ANSWER, scenes.status(401))
    code, out, err = operator.evaluates("--save", saved)
    assert (code, out) == (1, "")
    assert len(model.seen) == 2 * CALLS_OF_AN_ANSWER + 3
    last = err.splitlines()[-1]
    assert last.startswith("app.py: the model cannot answer (Rejected at gate): 2 of 20 questions done. 6 LLM calls, ")
    assert last.endswith(f"{saved} keeps them; the same command goes on from there.")
    model.otherwise = scenes.good()
    model.seen.clear()
    operator.evaluates("--save", saved)
    assert len(model.seen) == 18 * CALLS_OF_AN_ANSWER
    assert json.loads(saved.read_text().splitlines()[-1])["summary"]["questions"] == 20


def test_single_failures_are_a_failure_and_the_others_go_on(operator: Operator, model: LLMServer) -> None:
    configure(operator, model.base_url, max_concurrent_answers=1)
    saved = operator.folder / "run.jsonl"
    model.then(*[scenes.good()] * CALLS_OF_AN_ANSWER, scenes.status(500))
    code, out, _ = operator.evaluates("--save", saved)
    assert code == 1
    assert "| failed | Which port does Lanternfish listen on? | “port 7480” | Unavailable at gate |" in out
    assert "1 failed." in out
    again, out, _ = operator.evaluates("--save", saved)
    assert again == 0
    assert "2 questions had been asked by an earlier run." in out


def test_one_question_that_the_model_refuses_stops_no_other(operator: Operator, model: LLMServer) -> None:
    """Not even where it is the first."""
    configure(operator, model.base_url, max_concurrent_answers=1)
    model.then(scenes.status(400))
    rows, summary = operator.rows()
    assert [row["grade"] for row in rows] == ["failed", "wrong", "wrong"]
    assert (rows[0]["reason"], summary["failed"]) == ("PromptRefused at gate", 1)


def test_what_no_exchange_answers_is_a_failure_and_the_others_go_on(operator: Operator, model: LLMServer) -> None:
    configure(operator, model.base_url)
    exchanges = operator.folder / "exchanges.jsonl"
    operator.evaluates("--llm-record", exchanges)
    text = operator.questions.read_text()
    new = "".join(f"  - question: Is {n} new?\n    silence: true\n" for n in range(4))
    operator.questions.write_text(text.replace("questions:\n", f"questions:\n{new}"))
    code, out, err = operator.evaluates("--llm-replay", exchanges)
    assert code == 1
    assert err.count("holds no answer to this request of step gate") == 4
    assert out.count("| failed |") == 4
    assert "7 questions: 1 right, 2 wrong, 4 failed." in out


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_says_what_is_kept_and_the_same_command_goes_on(
    operator: Operator, model: LLMServer, number: int
) -> None:
    configure(operator, model.base_url, max_concurrent_answers=1)
    hanging, saved = threading.Event(), operator.folder / "run.jsonl"

    async def hangs(request: web.Request, body: Body) -> web.StreamResponse:
        hanging.set()
        return await scenes.hang()(request, body)

    model.otherwise = answering_until(2 * CALLS_OF_AN_ANSWER, hangs)
    # As from a terminal: what a shell puts into the background does not hear of Ctrl-C.
    script = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); import app; "
    command = [sys.executable, "-c", f"{script}sys.exit(app.main(sys.argv[1:]))"]
    with subprocess.Popen(
        [*command, *operator.arguments("--save", str(saved))],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert hanging.wait(60)
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (1, "")
    assert err.startswith("app.py: interrupted: 2 of 3 questions done. 6 LLM calls, ")
    assert err.endswith(f" {saved} keeps them; the same command goes on from there.\n")
    assert err.count("\n") == 1
    model.otherwise = scenes.good()
    model.seen.clear()
    code, out, _ = operator.evaluates("--save", saved)
    assert code == 0
    assert len(model.seen) == CALLS_OF_AN_ANSWER
    assert "9 LLM calls" in out, "the total is that of both"
    assert "2 questions had been asked by an earlier run." in out
