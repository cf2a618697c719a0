"""Votes reach their sink one after another; one that fails is named in the log."""

from __future__ import annotations

import asyncio

import pytest

from model.events import Reaction
from operators.inferred_votes import InferredVote
from services.conversations.posts import Post
from streams.conversations import votes
from tests.marbles import play

REACTION = Reaction(1.0, 2, 30, 4, "👍", added=True)
POST = Post(50.0, 7, 3, 3, 4, 6, opened_thread=False, question="How?", sources=())
INFERRED = InferredVote(60.0, POST, worked=True)


async def test_votes_of_both_kinds_are_kept_in_order_and_waited_for() -> None:
    kept: list[Reaction | InferredVote] = []

    async def keep(vote: Reaction | InferredVote) -> None:
        await asyncio.sleep(2 if vote is REACTION else 1)
        kept.append(vote)

    assert await play("rvr|", lambda given: votes(given, keep), values={"r": REACTION, "v": INFERRED}) == "-----|"
    assert kept == [REACTION, INFERRED, REACTION]


async def test_a_vote_that_fails_is_named_and_the_next_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    kept: list[Reaction | InferredVote] = []

    async def keep(vote: Reaction | InferredVote) -> None:
        if not kept:
            kept.append(vote)
            return
        raise OSError("the disk is full")

    values = {"r": REACTION, "v": INFERRED}
    assert await play("rvr|", lambda given: votes(given, keep), values=values) == "---|"
    assert [record.getMessage() for record in caplog.records] == [
        "a vote about message 7 was not kept: the disk is full",
        "a vote about message 30 was not kept: the disk is full",
    ]
