"""Which output of a running bot may hold what: canaries are put everywhere, everything goes wrong, and each output is
searched for them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from assembly.answering import ModelOptions
from commands.live import LiveOptions
from tests.attacks.stage import (
    ASKS,
    FILE,
    HOOK,
    KEY,
    OTHER_KEY,
    PRIVATE,
    RUNBOOK,
    SECRETS,
    STAFF,
    TOKEN,
    WITHIN,
    Stage,
    staged,
)
from tests.loopback import llm_scenes as scenes
from tests.loopback.fixtures import hurried_discord
from tests.loopback.llm_scenes import Body, Scene
from tests.root_logger import logging_restored

__all__ = ["hurried_discord", "logging_restored"]

QUESTION, OPTED_OUT = "canary-public-question", "canary-opted-out"
"""What a member has asked in public; what somebody wrote who wants to be left alone."""
ALL = SECRETS | PRIVATE | {QUESTION, OPTED_OUT}

MAY_HOLD: Mapping[str, frozenset[str]] = {
    # What a model's server says is logged at DEBUG only, and servers repeat what they are asked.
    "log": frozenset(),
    "log at DEBUG": frozenset({QUESTION}),
    "metrics": frozenset(),
    # The names of threads.
    "Discord": frozenset({QUESTION}),
    # Questions with what answers them. A key goes there as a header, which is no part of this.
    "model": frozenset({FILE, RUNBOOK, QUESTION}),
    "llm.jsonl": frozenset({FILE, RUNBOOK, QUESTION}),
    # The live stream as it was, of everybody who has not opted out.
    "live.jsonl": frozenset({STAFF, QUESTION}),
    "live.jsonl.attachments": frozenset({FILE}),
    "evidence": frozenset({FILE}),
    "runbooks": frozenset({RUNBOOK}),
    # Questions beside the posts that answer them.
    "state": frozenset({QUESTION}),
    # Conversations of the team in public.
    "team-knowledge": frozenset({QUESTION}),
    "documents": frozenset(),
    "knowledge-base": frozenset(),
}
"""What each output may hold: none a secret of the configuration. Files go by the first folder below the data folder."""


def echoing(status: int) -> Scene:
    """A server that refuses and repeats the key and the prompt, as some do."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        said = f"{request.headers['Authorization']} is not allowed: {json.dumps(body['messages'])[-200:]}"
        return web.json_response({"error": {"message": said, "code": said}}, status=status, headers={"X-Key": said})

    return play


def repeating(form: str) -> Scene:
    """A model that says its own key, in the `form` of no answer."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        return await scenes.saying(form.replace("KEY", request.headers["Authorization"]))(request, body)

    return play


FAILURES: Mapping[str, Scene] = {
    "refuses the key": echoing(401),
    "refuses the request": echoing(400),
    "is overloaded": echoing(429),
    "breaks": echoing(500),
    "hangs": scenes.slow(math.inf),
    "drops the connection": scenes.drop(),
    "says its key and no JSON": repeating("My key is KEY."),
    "says its key as a field": repeating('{"KEY": "KEY"}'),
    "says its key as a wrong type": repeating('{"is_question": "KEY", "answer": {"KEY": 1}, "citations": "KEY"}'),
    "gives half a completion": scenes.raw('{"choices": [{"message": '),
}


def searched(outputs: Mapping[str, str]) -> list[str]:
    """What is found where it may not be; the outputs by their names."""
    return sorted(
        f"{where} holds {value}" for where, text in outputs.items() for value in ALL - MAY_HOLD[where] if value in text
    )


def outputs_of(stage: Stage, metrics: str, level: str) -> dict[str, str]:
    outputs: dict[str, str] = {
        "log at DEBUG" if level == "DEBUG" else "log": stage.log,
        "metrics": metrics,
        "Discord": "\n".join(f"{each.path} {json.dumps(each.body)}" for each in stage.server.requests),
        "model": "\n".join(json.dumps(each.body) for each in stage.model.requests),
    }
    for path, content in stage.files().items():
        if path.endswith((".env", "outside.txt", "bot.log")) or "/sources/" in path:
            continue  # put there, or the log
        above = path.removeprefix("data/").partition("/")[0]
        where = "state" if path == f"data/{above}" else above  # right in the data folder are the lock and the votes
        outputs[where] = outputs.get(where, "") + content.decode(errors="replace")
    return outputs


async def life(stage: Stage) -> None:
    """Everybody uses the bot, and everything goes wrong."""
    server, bot = stage.server, stage.bot
    stage.model.otherwise = scenes.good()
    lobby, asker = server.add_channel("help"), server.add_member("asker")
    shy = server.add_member("shy")
    left_alone = await server.say(
        lobby, shy, f"!nobot {OPTED_OUT}: {ASKS}", attachments=[("a.log", OPTED_OUT.encode(), None)]
    )
    await server.until_told(await server.call(lobby, shy, "privacy opt-out"))
    later = await server.say(lobby, shy, f"{OPTED_OUT}: {ASKS}")
    question = await server.say(lobby, asker, f"{QUESTION}: {ASKS}")
    asked = await server.call(lobby, stage.vera, "ask", question="To restore a backup, what do I say?")
    await bot.until_ended(left_alone, later, question, within=WITHIN)
    await server.until_told(asked)
    for number, scene in enumerate(FAILURES.values()):
        stage.model.otherwise = scene
        who = server.add_member(f"unlucky-{number}")
        unlucky = await server.say(lobby, who, f"{QUESTION}: {ASKS}", attachments=[("b.log", b"ERROR x\n", None)])
        taught = await stage.teach(lobby, f"As ever, number {number}.", question)
        await bot.until_ended(unlucky, taught, within=WITHIN)
    stage.model.otherwise = scenes.good()
    for number, status in enumerate((400, 401, 403, 404, 500)):
        server.fail_next("POST", "/(messages|threads)$", status=status, times=9, body={"message": f"no {TOKEN}"})
        refused = await server.say(lobby, server.add_member(f"refused-{number}"), f"{QUESTION}: {ASKS}")
        await bot.until_ended(refused, within=WITHIN)
        server.forget_failures()


@pytest.mark.real_time
@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
async def test_each_output_holds_only_what_it_may(
    level: str, tmp_path: Path, hurried_discord: None, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    """Pitfalls 22 and 47."""
    home = tmp_path / "home"
    options = LiveOptions(record=home / "live.jsonl", models=ModelOptions(record=home / "llm.jsonl"))
    metrics: dict[str, Any] = {"port": unused_tcp_port}
    # A disk that is too small, and nobody who takes the alert.
    alerts: dict[str, Any] = {"webhook_url": f"http://127.0.0.1:9/{HOOK}", "disk_free_mb": 10**9}
    async with staged(
        tmp_path, monkeypatch, (), options=options, level=level, model_seconds=2.0, metrics=metrics, alerts=alerts
    ) as stage:
        await life(stage)
        async with aiohttp.ClientSession() as web, web.get(f"http://127.0.0.1:{unused_tcp_port}/metrics") as said:
            scraped = await said.text()
        await stage.bot.stop()
        outputs = outputs_of(stage, scraped, level)
    assert "ai_requests_total" in scraped
    assert (
        "alerts.webhook_url: not posted (it cannot be reached" in outputs["log at DEBUG" if level == "DEBUG" else "log"]
    )
    assert searched(outputs) == []
    # Each has come as far as it may: else nothing of this was tried.
    assert [(where, value) for where in outputs for value in MAY_HOLD[where] if value not in outputs[where]] == []
    assert outputs.keys() | {"log", "log at DEBUG", "documents"} == MAY_HOLD.keys()
    keys = {each.headers["Authorization"] for each in stage.model.requests}
    assert {f"Bearer {KEY}", f"Bearer {OTHER_KEY}"} <= keys


def test_the_search_finds_what_is_where_it_may_not_be() -> None:
    for where, may_hold in MAY_HOLD.items():
        assert searched({where: " ".join(may_hold)}) == []
        assert searched({where: " ".join(ALL)}) == sorted(f"{where} holds {value}" for value in ALL - may_hold)
