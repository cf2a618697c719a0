"""Exchanges with a model as JSON Lines, which `--llm-record` writes and `--llm-replay` answers from.

    {"step", "hash", "format", "people", "request": {"system", "user", "schema_name", "schema"},
     "response": {"text", "finish_reason"}, "usage": {"prompt_tokens", "completion_tokens"}}

`people`: the ids of the people in the conversation, and of those who posted the files that were read for it. By these
ids, lines are found when somebody is to be forgotten. `format`: a line without it was written by an earlier program,
which did not note who had posted files.

If tools were offered, the request also has "tools" and "rounds" (the calls so far), and the response "calls". A call
that failed has `"error": {"kind", "message"}` instead of response and usage, so that a replay fails where the recorded
run failed. A cancelled call leaves no line. Images are kept as their SHA-256.

The hash covers the step and the request as written. It leaves out the method, which does not change what the reply
means: a replay may run with another configuration.
"""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import json
import logging
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

import clock
from model.processes import UserError
from services.llm.endpoint import LLMError, Reply, Request, Round, UnknownRequest
from services.storage import files
from services.telemetry import current_people

log = logging.getLogger(__name__)

FORMAT = 2
"""The number of the format of a line; the first format had none."""

_KINDS: dict[str, type[LLMError]] = {kind.__name__: kind for kind in LLMError.__subclasses__()}


class UnreadableExchanges(UserError):
    """The file is missing or holds no exchange; the message names it."""


class Tokens(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Failure(BaseModel):
    kind: str
    message: str


class Exchange(BaseModel):
    """One line. Calls are found by `hash`; `request` only serves to show differences, so its text may be removed."""

    model_config = ConfigDict(defer_build=True)  # most runs read no exchange

    step: str
    hash: str
    request: dict[str, Any] = {}
    response: Reply | None = None
    usage: Tokens = Tokens()
    error: Failure | None = None

    @model_validator(mode="after")
    def _ended_one_way(self) -> Exchange:
        if (self.response is None) == (self.error is None):
            raise ValueError("wants a response or an error, and not both")
        return self

    def outcome(self) -> Reply:
        """Return the reply. Raises an `LLMError` of the recorded kind, if the call failed."""
        if self.error is not None:
            raise _KINDS.get(self.error.kind, LLMError)(self.error.message)
        return replace(self.response or Reply(""), **dict(self.usage))


def to_json(request: Request) -> dict[str, object]:
    plain: dict[str, object] = {
        "system": request.system,
        "user": [_without_data(part) for part in request.user],
        "schema_name": request.schema_name,
        "schema": request.schema,
    }
    # Left out if empty, so that recordings from before there were tools still match.
    if request.tools:
        plain["tools"] = [asdict(tool) for tool in request.tools]
    if request.rounds:
        plain["rounds"] = [{"text": each.text, "calls": list(_calls(each))} for each in request.rounds]
    return plain


def _calls(tool_round: Round) -> Iterator[dict[str, str]]:
    """Yield the calls of a round without their ids, which a server makes up anew each time."""
    for call, result in zip(tool_round.calls, tool_round.results, strict=True):
        yield {"name": call.name, "arguments": call.arguments, "result": result}


def _without_data(value: object) -> object:
    """Replace inline data by its hash, which tells images apart without lines of megabytes."""
    if isinstance(value, str) and value.startswith("data:"):
        head, _, data = value.partition(",")
        return f"{head},sha256:{_sha256(data)}"
    if isinstance(value, Mapping):
        return {key: _without_data(each) for key, each in cast("Mapping[str, object]", value).items()}
    return value


def request_hash(request: Request) -> str:
    return _sha256(json.dumps({"step": request.step, **to_json(request)}, sort_keys=True, ensure_ascii=False))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def render(request: Request, outcome: Reply | LLMError) -> str:
    """Write an exchange as one line, with its line end."""
    line: dict[str, object] = {"step": request.step, "hash": request_hash(request), "format": FORMAT}
    line["people"] = [str(each) for each in sorted(current_people.get() or ())]
    line["request"] = to_json(request)
    if isinstance(outcome, LLMError):
        line["error"] = {"kind": type(outcome).__name__, "message": str(outcome)}
    else:
        fields = asdict(outcome)
        line["response"] = {key: fields[key] for key in ("text", "finish_reason")}
        line["response"] |= {key: fields[key] for key in ("calls", "content") if fields[key]}
        line["usage"] = {key: fields[key] for key in Tokens.model_fields}
    # Escaped, so that no character of a message can end the line or fail to be written.
    return json.dumps(line) + "\n"


def read(path: Path) -> list[Exchange]:
    """All exchanges of a file, in order. Other lines are logged and left out. Raises UnreadableExchanges: the file
    cannot be read, or has no exchange.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UnreadableExchanges(f"{path} cannot be read ({error.strerror}); record it with --llm-record") from None
    exchanges: list[Exchange] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            # Pydantic's own parser refuses half of a surrogate pair, which prompts may hold.
            exchanges.append(Exchange.model_validate(json.loads(line)))
        except (ValueError, RecursionError) as error:
            log.warning("%s line %d is no exchange and is left out (%s)", path, number, _why(error))
    if not exchanges:
        raise UnreadableExchanges(f"{path} holds no exchange with an LLM; record it with --llm-record")
    return exchanges


def _why(error: Exception) -> str:
    """Say in a few words why a line was not read, without its text."""
    if not isinstance(error, ValidationError):
        return "it is no JSON"
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"


_MAX_COMPARED = 200
"""The nearest request is searched among so many of the same step."""
_MAX_SHOWN = 4
"""Differing lines that are shown of each side."""
_MAX_LINE_CHARS = 100


class Recording:
    """Appends exchanges to `path`, failures included.

    On a virtual loop the lines are in the order of the calls, and recording does not change the run; on an ordinary
    loop they are in the order in which the calls ended.

    Raises:
        OSError: on construction, if the file cannot be opened for appending.
    """

    def __init__(self, path: Path) -> None:
        self._turn = asyncio.Lock()
        self._path = path
        with path.open("ab+") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                # A line that a crash cut off must not spoil the next one.
                if file.read() != b"\n":
                    file.write(b"\n")

    async def add(self, request: Request, outcome: Reply | LLMError) -> None:
        """Append one exchange. Raises OSError."""
        line = render(request, outcome).encode()
        # The path is opened for each line, as forgetting a person replaces the file.
        if isinstance(asyncio.get_running_loop(), clock.VirtualLoop):
            # Not in a thread: other work would overtake, and no heartbeat waits here.
            files.append(self._path, line)
            return
        async with self._turn:
            await clock.run_blocking(files.append, self._path, line)

    async def aclose(self) -> None:
        """Wait for a write in progress."""
        async with self._turn:
            pass


class ReplayEndpoint:
    """Answers from a file. Equal requests get their answers in recorded order, then the last one again and again.

    A recorded failure is raised again. A request that is not in the file raises `UnknownRequest`, whose message shows
    the differences to the nearest recorded request of that step.

    Raises:
        UnreadableExchanges: on construction, if the file is missing or holds no exchange.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._by_hash: defaultdict[str, list[Exchange]] = defaultdict(list)
        self._by_step: defaultdict[str, list[Exchange]] = defaultdict(list)
        self._next: defaultdict[str, int] = defaultdict(int)
        for exchange in read(path):
            self._by_hash[exchange.hash].append(exchange)
            self._by_step[exchange.step].append(exchange)

    async def complete(self, request: Request) -> Reply:
        exchange = self._find(request)

        # Through real time like the recorded call, so that both runs do everything in the same order.
        async def answer() -> Reply:
            return exchange.outcome()

        return await clock.run_in_real_time(answer)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _find(self, request: Request) -> Exchange:
        key = request_hash(request)
        recorded = self._by_hash.get(key)
        if recorded is None:
            raise UnknownRequest(
                f"{self._path} holds no answer to this request of step {request.step}: {self._differs(request)}"
            )
        turn = self._next[key]
        self._next[key] = turn + 1
        return recorded[min(turn, len(recorded) - 1)]

    def _differs(self, request: Request) -> str:
        candidates = self._by_step.get(request.step, [])[:_MAX_COMPARED]
        if not candidates:
            return f"no exchange of that step is recorded, only of {', '.join(sorted(self._by_step))}"
        mine = list(_lines(to_json(request)))

        def likeness(theirs: Sequence[str]) -> float:
            return difflib.SequenceMatcher(None, mine, theirs, autojunk=False).ratio()

        nearest = max((list(_lines(each.request)) for each in candidates), key=likeness)
        changes = list(difflib.ndiff(nearest, mine))
        recorded, asked = ([line[2:] for line in changes if line.startswith(mark)] for mark in ("- ", "+ "))
        return f"the nearest one recorded says {_shown(recorded)}, this one says {_shown(asked)}"


def _lines(request: Mapping[str, object]) -> Iterator[str]:
    """Yield a request as lines of `key: text`, so that a change in a long prompt shows as the line it is in."""
    for key, value in request.items():
        parts = cast("list[object]", value) if isinstance(value, list) else [value]
        for part in parts:
            text = part if isinstance(part, str) else json.dumps(part, sort_keys=True, ensure_ascii=False)
            yield from (f"{key}: {line}" for line in text.replace("\\n", "\n").splitlines())


def _shown(lines: Sequence[str]) -> str:
    if not lines:
        return "nothing there"
    cut = [line if len(line) <= _MAX_LINE_CHARS else f"{line[:_MAX_LINE_CHARS]}…" for line in lines[:_MAX_SHOWN]]
    more = f" and {len(lines) - _MAX_SHOWN} more lines" if len(lines) > _MAX_SHOWN else ""
    return " | ".join(json.dumps(line, ensure_ascii=False) for line in cut) + more
