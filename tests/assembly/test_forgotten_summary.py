"""The summary for a person who was forgotten, and the renaming of topics in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import AsyncMock, MagicMock, Mock

from assembly.forgetting import (
    FORGET_SECONDS,
    MAX_OPT_INS,
    OPT_IN_SECONDS,
    Privacy,
    TeamKnowledgeFiles,
    not_too_often,
    summary,
)
from assembly.graph_parts import GraphParts
from model.servers import Servers
from services.conversations import InFlight, Posts, phrases
from services.conversations.posts import render_post
from services.discord.slash import Call, CommandRefused
from services.privacy import ForgetResult, TeamData
from services.storage import DataFolder, files
from sinks.results import OutcomeRecord
from tests.services.conversations.test_conversations import post

SAID = phrases("en")


def test_what_follows_later_is_not_concealed() -> None:
    told = summary(ForgetResult(posts=2, ends=1), SAID, is_complete=False)
    assert told.splitlines()[:3] == [
        "Removed:",
        "- 2 answers that I remembered giving you",
        "- 1 note of what became of a message of yours",
    ]
    assert SAID.rest_follows in told


def test_nobody_says_that_nothing_was_kept_before_all_have_looked() -> None:
    assert SAID.nothing_kept in summary(ForgetResult(), SAID)
    assert SAID.nothing_kept not in summary(ForgetResult(), SAID, is_complete=False)
    assert summary(ForgetResult(), SAID, is_complete=False).startswith(SAID.rest_follows)


async def test_a_topic_that_is_renamed_elsewhere_is_so_in_files_and_in_memory(tmp_path: Path) -> None:
    """Else the next vote would write the old name again."""
    folder, renamed = DataFolder(tmp_path), {"team:old.txt": "team:new.txt"}
    kept = replace(post(1, 10), sources=("team:old.txt",))
    files.replace(folder.posts, render_post(kept))
    state = SimpleNamespace(
        folder=folder, record=OutcomeRecord(None, str), budgets={}, forget_messages=Mock(), drafts=Mock()
    )
    services = SimpleNamespace(posts=Posts([kept]), in_flight=InFlight())
    parts = cast("GraphParts", SimpleNamespace(services=services, state=state, servers={}))
    privacy = Privacy(parts, Servers({None: TeamKnowledgeFiles(TeamData(folder, folder.team_raw))}))
    done = await privacy.remove(999, until=1, renamed=renamed)
    assert done.renamed == renamed
    assert services.posts.find(1) == replace(kept, sources=("team:new.txt",))
    assert json.loads(folder.posts.read_bytes())["sources"] == ["team:new.txt"]
    assert await privacy.planned_renames(999) == {}


async def test_who_was_forgotten_may_ask_again_after_a_while_and_at_once_if_it_failed() -> None:
    """Each removal reads every file of the data folder, while others wait for theirs."""
    told: Iterator[str | Exception] = iter(["done", "done", CommandRefused("failed"), "done"])

    async def removes(_call: Call) -> str:
        reply = next(told)
        if isinstance(reply, Exception):
            raise reply
        return reply

    forget = not_too_often(removes)

    async def answer(user_id: int) -> str:
        try:
            return await forget(Call(1, user_id, 2, 3, is_moderator=False, can_view=True))
        except CommandRefused as refused:
            return str(refused)

    assert [await answer(1), await answer(1)] == ["done", SAID.forgotten_lately]
    await asyncio.sleep(FORGET_SECONDS)
    assert [await answer(1), await answer(2), await answer(2)] == ["done", "failed", "done"]


async def test_who_opts_in_and_out_again_and_again_has_to_wait() -> None:
    """Answers of others begin again each time."""
    opt_outs = MagicMock(discard=AsyncMock())
    opt_outs.__contains__.return_value = True
    privacy = Privacy(cast("GraphParts", SimpleNamespace(state=Mock(opt_outs=opt_outs))), Mock())

    async def opt_in(user_id: int) -> str:
        try:
            return await privacy.opt_in(Call(1, user_id, 2, 3, is_moderator=False, can_view=True))
        except CommandRefused as refused:
            return str(refused)

    done = [*[SAID.opted_in] * MAX_OPT_INS, SAID.opted_in_lately]
    assert [await opt_in(1) for _ in done] == done
    assert await opt_in(2) == SAID.opted_in
    await asyncio.sleep(OPT_IN_SECONDS)
    assert await opt_in(1) == SAID.opted_in
