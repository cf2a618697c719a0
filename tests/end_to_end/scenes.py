"""Models for particular tests: what they say is made from what they are asked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tests.loopback.llm_answers import plausible, prompt, wanted
from tests.loopback.llm_scenes import Body, Scene, saying

CASE = re.compile(r"case-\d+")


def answering(**said: Mapping[str, Any]) -> Scene:
    """A plausible model, except where the schema's name is given another answer."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        name, _ = wanted(body)
        return await saying(json.dumps(plausible(body) | dict(said.get(name, {}))))(request, body)

    return play


def echoing() -> Scene:
    """Answers with every `case-N` that it was shown: whatever is crossed with something else tells on itself."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        said = plausible(body)
        if wanted(body)[0] == "AnswerResult":
            said["answer"] = "About " + " and ".join(sorted(set(CASE.findall(prompt(body))))) + "."
        return await saying(json.dumps(said))(request, body)

    return play
