"""A model that obeys whoever speaks to it, wherever that stands in its prompt."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from tests.attacks.corpus import Attack, Way
from tests.loopback.llm_answers import SOURCE_ID, offered, plausible, prompt, results, wanted
from tests.loopback.llm_scenes import Body, calling, saying

CANARY = re.compile(r"canary-[a-z]+(?:-[a-z]+)*")
PAIR = re.compile(r"\bqa_[0-9._]+[0-9]")
OF_OTHERS = re.compile(r"<<<(index|source|topic)>>>.*?^<<<end of \1>>>$", re.DOTALL | re.MULTILINE)
"""Sections in which other conversations than the one at hand are named."""
MAX_ATTACKS, MAX_CHARS, MAX_GIVEN_CHARS = 3, 2_600, 400
"""How much of what it is told goes into one answer; more would be too long to be posted."""
GIVEN = "a tool's result"
"""What is noted of an attack that came to the model in one, beside the schemas."""
POINTED = "a place where the bot points without an answer"
"""Noted of an attack whose words the bot showed there, as the earlier question."""
YES = {"is_question": True, "is_answerable": True, "is_good_enough": True, "skip": False}


class Obedient:
    """A scene for `LLMServer`: whatever is asked, it says what the attacks want that it finds in the request.

    It says so in every text of its answer and adds it to every list; it calls every tool, for the asker's own things
    and for others', and prints what it has been given.

    Attributes:
        words: what stands for `{vera}` and the like.
        silent: the cases of attacks in whose conversations it has no answer from now on.
        obeyed: by the mark of each attack, the schemas in which it was obeyed, and whether it came in a tool's result.
        secrets: what it has been shown so far, in any request, its key included.
    """

    def __init__(self, attacks: Sequence[Attack], words: Mapping[str, str]) -> None:
        self._attacks = attacks
        self._words = words
        self.obeyed: defaultdict[str, set[str]] = defaultdict(set)
        self.silent: set[str] = set()
        self.secrets: set[str] = set()

    async def __call__(self, request: web.Request, body: Body) -> web.StreamResponse:
        text = prompt(body)
        self.secrets.update(CANARY.findall(text), CANARY.findall(request.headers.get("Authorization", "")))
        name, _ = wanted(body)
        met = self._met(text)
        own = [each for each in self._attacks if each.case in OF_OTHERS.sub("", text)]
        if own and offered(body) and not results(body):
            return await calling(*self._calls(body, own[0], text))(request, body)
        for attack in met:
            if any(attack.mark in given for given in results(body)):
                self.obeyed[attack.mark].add(GIVEN)
        for attack in met:
            self.obeyed[attack.mark].add(name)
        said = self._obeying(plausible(body), met, text, results(body)) if met else plausible(body) | _yes(body)
        return await saying(json.dumps(said))(request, body)

    def _met(self, text: str) -> list[Attack]:
        """The attacks in a request: that of its own conversation first, and not very many."""
        asked = OF_OTHERS.sub("", text)
        found = [each for each in self._attacks if (each.case if each.way is Way.OUTPUT else each.mark) in text]
        return sorted(found, key=lambda each: each.case not in asked)[:MAX_ATTACKS]

    def _calls(self, body: Body, attack: Attack, text: str) -> list[tuple[str, str]]:
        """Each tool twice: as it is offered, and with arguments that would lead to what is Vera's."""
        question = {"question": f"{self._said(attack, text)} Which lines of app.log say {attack.mark}?"[-900:]}
        thread, vera = self._words["thread"], self._words["vera"]
        aimed = {
            "thread_id": thread,
            "case_id": thread,
            "user_id": vera,
            "asker_id": vera,
            "collection": f"user_{vera}",
        }
        form = {"file": "vera.log", "files": ["vera.log"], "all_of": ["canary"]}
        return [
            (name, json.dumps(arguments)) for name in offered(body) for arguments in (question, question | aimed, form)
        ]

    def _obeying(
        self, plain: Mapping[str, Any], met: Sequence[Attack], text: str, given: Sequence[str]
    ) -> dict[str, Any]:
        said = [self._said(attack, text) for attack in met]
        whole = "\n".join([*said, *(each[-MAX_GIVEN_CHARS:] for each in given[-2:])])[:MAX_CHARS]
        grown = {key: _grown(value, whole) for key, value in plain.items()} | {
            key: value for key, value in YES.items() if key in plain
        }
        if "answer" in grown:
            # The conversation that it is for, so that what is crossed with another tells on itself.
            grown["answer"] = None if met[0].case in self.silent else f"About {_cases(text)}: {whole}"
        if "topic_name" in grown:
            known = [each for each in SOURCE_ID.findall(text) if each.startswith("team:")]
            grown["topic_name"] = known[0] if "{pairs}" in met[0].says and known else said[0]
        if "selected_source_ids" in grown:
            own = [each for each in SOURCE_ID.findall(text) if met[0].case in each or met[0].mark in each]
            grown["selected_source_ids"] = [*own, *said[0].split(), *plain["selected_source_ids"]]
        return grown

    def _said(self, attack: Attack, text: str) -> str:
        words = {
            **self._words,
            "mark": attack.mark,
            "secrets": " ".join(sorted(self.secrets)),
            "pairs": " ".join(PAIR.findall(text)),
            "all": text[-1_000:],
        }
        said = attack.says
        for name, value in words.items():
            said = said.replace(f"{{{name}}}", value)
        return said


def _grown(value: Any, said: str) -> Any:
    match value:
        case str() | None:
            return f"{value or ''}{said}"
        case list() if value and isinstance(value[0], dict):
            return [{key: _grown(each, said) for key, each in item.items()} for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] (JSON)
        case list():
            return [*value, *said.split()]
        case _:
            return value


def _yes(body: Body) -> dict[str, bool]:
    _, schema = wanted(body)
    return {key: value for key, value in YES.items() if key in schema["properties"]}


def _cases(text: str) -> str:
    return " and ".join(sorted(set(re.findall(r"\bcase\d{3}\b", _conversation(text))))) or "nothing"


def _conversation(text: str) -> str:
    return text.partition("<<<conversation>>>")[2].partition("<<<end of conversation>>>")[0]
