"""Votes that people give, and votes that are taken from what they say."""

from __future__ import annotations

import json
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from model.events import Reaction
from model.servers import Servers
from operators.inferred_votes import InferredVote
from services.conversations.posts import Post, Posts
from services.discord.protocols import DryRunPoster, PostFailed
from services.storage.data_folder import DataFolder
from sinks.feedback import MAX_CHANGES, Feedback
from tests.services.storage.power import Machine
from tests.talk import ANN, BEN, THREAD, people_of
from tests.world import run

POST = Post(50.0, 7, THREAD.id, THREAD.id, ANN.id, 6, opened_thread=False, question="How?", sources=("kb:a",))


@dataclass
class Box:
    """Where votes go, about one answer to Ann."""

    folder: Path
    offered: bool = True
    inferring: bool = True
    opted_out: Container[int] = ()

    def __post_init__(self) -> None:
        self.data, self.posts = DataFolder(self.folder), Posts([POST])
        self.sink = self.opened()

    def opened(self) -> Feedback:
        people = people_of(frozenset(), frozenset(), None)
        kept = self.data, self.posts, people, DryRunPoster(), "🆘", Servers[int | None]({None: None})
        return Feedback(*kept, keeps_votes=self.offered, infers_votes=self.inferring, opted_out=self.opted_out)

    async def reacts(self, user_id: int, emoji: str, *, added: bool = True) -> None:
        await self.sink.handle(Reaction(60.0, THREAD.id, POST.message_id, user_id, emoji, added))

    async def says(self, *, worked: bool) -> None:
        await self.sink.handle(InferredVote(70.0, POST, worked))

    @property
    def rows(self) -> list[dict[str, Any]]:
        if not self.data.feedback.exists():
            return []
        return [json.loads(line) for line in self.data.feedback.read_text().splitlines()]

    @property
    def votes(self) -> list[tuple[str, bool]]:
        return [(row["vote"], row.get("inferred", False)) for row in self.rows]


async def test_an_inferred_vote_is_the_askers_and_says_that_it_is_inferred(tmp_path: Path) -> None:
    box = Box(tmp_path)
    await box.says(worked=False)
    await box.reacts(ANN.id, "👍")
    inferred, given = box.rows
    assert inferred == {
        "at": "1970-01-01T00:01:10.000Z",
        "message_id": "7",
        "voter": given["voter"],
        "question": "How?",
        "sources": ["kb:a"],
        "vote": "down",
        "inferred": True,
    }
    assert "inferred" not in given


@pytest.mark.parametrize("withdrawn", [False, True])
async def test_nothing_is_inferred_of_who_has_voted(tmp_path: Path, withdrawn: bool) -> None:
    box = Box(tmp_path)
    await box.reacts(ANN.id, "👎")
    if withdrawn:
        await box.reacts(ANN.id, "👎", added=False)
    before = box.votes
    await box.says(worked=True)
    assert box.votes == before


async def test_somebody_elses_vote_does_not_stand_for_the_askers(tmp_path: Path) -> None:
    box = Box(tmp_path)
    await box.reacts(BEN.id, "👎")
    await box.says(worked=True)
    assert box.votes == [("down", False), ("up", True)]


async def test_an_inferred_vote_is_written_when_it_changes(tmp_path: Path) -> None:
    box = Box(tmp_path)
    for worked in (True, True, False, False, True):
        await box.says(worked=worked)
    assert box.votes == [("up", True), ("down", True), ("up", True)]


@pytest.mark.parametrize(("offered", "inferring"), [(False, True), (True, False)])
async def test_nothing_is_inferred_without_votes_or_without_people_who_see_the_answer(
    tmp_path: Path, offered: bool, inferring: bool
) -> None:
    box = Box(tmp_path, offered, inferring)
    await box.says(worked=True)
    assert box.rows == []
    assert not box.data.feedback_key.exists()


async def test_nothing_is_written_of_who_was_forgotten_since_they_spoke(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.posts.forget(ANN.id, 2**63)
    await box.says(worked=True)
    assert box.rows == []


async def test_an_inferred_vote_that_could_not_be_written_may_be_given_again(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.data.feedback.mkdir(parents=True)
    with pytest.raises(OSError, match="feedback"):
        await box.says(worked=True)
    box.data.feedback.rmdir()
    await box.says(worked=True)
    assert box.votes == [("up", True)]


async def test_of_many_votes_the_oldest_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vote that is forgotten is still in the file, and can be withdrawn."""
    monkeypatch.setattr("sinks.feedback.REMEMBERED", 2)
    box = Box(tmp_path)
    for voter in (ANN.id, BEN.id, 77):
        await box.reacts(voter, "👍")
    await box.says(worked=False)
    await box.reacts(BEN.id, "👎", added=False)  # an up stands: this is a down of before
    await box.reacts(ANN.id, "👍", added=False)
    assert [vote for vote, _ in box.votes] == ["up", "up", "up", "down", "withdrawn"]


@pytest.mark.parametrize(("offered", "emoji"), [(True, "🎉"), (False, "👍"), (False, "🎉")])
async def test_no_vote_is_what_is_no_vote_or_not_asked_for(tmp_path: Path, offered: bool, emoji: str) -> None:
    box = Box(tmp_path, offered)
    await box.reacts(ANN.id, emoji)
    assert box.rows == []


class HelpChannel(DryRunPoster):
    """Keeps what is posted, or refuses it."""

    def __init__(self, *, refuses: bool = False) -> None:
        super().__init__()
        self.refuses, self.posts = refuses, list[tuple[int, str, str]]()

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        if self.refuses:
            raise PostFailed("Missing Access")
        self.posts.append((place_id, text, nonce))
        return await super().send(place_id, text, nonce=nonce, reply_to=reply_to)


@pytest.mark.parametrize("offered", [True, False])
async def test_who_asks_for_a_person_is_passed_on_once_they_ask_and_not_when_they_stop(
    tmp_path: Path, offered: bool, caplog: pytest.LogCaptureFixture
) -> None:
    box = Box(tmp_path, offered)
    poster = HelpChannel()
    people = people_of(frozenset({BEN.id}), frozenset({55}), None)
    sink = Feedback(
        box.data, box.posts, people, poster, "🆘", Servers({None: 31}), keeps_votes=offered, infers_votes=False
    )
    asked = Reaction(60.0, THREAD.id, POST.message_id, ANN.id, "🆘", added=True)
    for reaction in (
        asked,
        replace(asked, added=False),
        replace(asked, user_id=BEN.id),
        replace(asked, user_id=77, role_ids=(55,)),
        replace(asked, is_bot=True),
        replace(asked, message_id=8),
    ):
        await sink.handle(reaction)
    help_line = (31, f"Somebody asks for a person in <#{THREAD.id}>.", "7-help")
    assert poster.posts == [help_line]
    for at in (61.0, 3_659.0, 3_660.0):
        await sink.handle(replace(asked, at=at))
    assert poster.posts == [help_line, help_line], "one an hour"
    assert caplog.text.count("a user asks for a person") == 2, "nor does it fill the log"
    assert box.rows == []


async def test_a_call_for_help_that_cannot_be_posted_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    box = Box(tmp_path)
    poster = HelpChannel(refuses=True)
    sink = Feedback(
        box.data,
        box.posts,
        people_of(frozenset(), frozenset(), None),
        poster,
        "🆘",
        Servers({None: 31}),
        keeps_votes=True,
        infers_votes=True,
    )
    await sink.handle(Reaction(60.0, THREAD.id, POST.message_id, ANN.id, "🆘", added=True))
    assert f"a user asks for a person in thread {THREAD.id}" in caplog.text
    assert "discord.escalation_channel_id" in caplog.text


async def test_of_one_person_few_calls_for_help_in_an_hour_are_passed_on(tmp_path: Path) -> None:
    """Else anybody could call from each old thread at once."""
    poster, people = HelpChannel(), people_of(frozenset(), frozenset(), None)
    posts = Posts([replace(POST, message_id=100 + number, place_id=200 + number) for number in range(6)])
    sink = Feedback(
        DataFolder(tmp_path), posts, people, poster, "🆘", Servers({None: 31}), keeps_votes=False, infers_votes=False
    )
    for number in range(5):
        await sink.handle(Reaction(60.0, 200 + number, 100 + number, ANN.id, "🆘", added=True))
    assert len(poster.posts) == 3
    await sink.handle(Reaction(61.0, 205, 105, BEN.id, "🆘", added=True))
    await sink.handle(Reaction(3_700.0, 204, 104, ANN.id, "🆘", added=True))
    assert [text[-5:] for _, text, _ in poster.posts[3:]] == ["205>.", "204>."]


async def test_calls_for_help_while_the_clock_was_a_year_ahead_keep_none_back_once_it_is_right(tmp_path: Path) -> None:
    poster, people = HelpChannel(), people_of(frozenset(), frozenset(), None)
    sink = Feedback(
        DataFolder(tmp_path),
        Posts([POST]),
        people,
        poster,
        "🆘",
        Servers({None: 31}),
        keeps_votes=False,
        infers_votes=False,
    )
    for at in (365 * 86_400.0, 60.0, 61.0):
        await sink.handle(Reaction(at, THREAD.id, POST.message_id, ANN.id, "🆘", added=True))
    assert len(poster.posts) == 2


async def test_the_changes_of_one_voter_are_bounded(tmp_path: Path) -> None:
    box = Box(tmp_path)
    for _ in range(MAX_CHANGES):
        await box.reacts(ANN.id, "👍")
        await box.reacts(ANN.id, "👍", added=False)
    await box.reacts(BEN.id, "👍")
    assert len(box.rows) == MAX_CHANGES + 1


@pytest.mark.parametrize("who", [BEN.id, POST.asker_id])
async def test_nothing_is_kept_of_who_has_opted_out(tmp_path: Path, who: int) -> None:
    box = Box(tmp_path, opted_out={who})
    await box.reacts(BEN.id, "👍")
    assert box.rows == []


def test_a_crash_at_any_write_of_a_vote_costs_that_vote_at_most_and_no_other(tmp_path: Path) -> None:
    """Pitfalls 7 and 48."""

    async def votes(box: Box, voter: int) -> None:
        await box.reacts(voter, "👍")

    for last, partial in product(range(20), (None, 20)):
        box = Box(tmp_path / f"{last} {partial}")
        run(lambda box=box: votes(box, ANN.id))
        whole = Machine(last, partial).run(lambda box=box: run(lambda: votes(box, BEN.id)))
        box.sink = box.opened()
        run(lambda box=box: votes(box, 77))
        kept: list[str] = []
        for line in box.data.feedback.read_text().splitlines():
            with suppress(ValueError):
                kept.append(json.loads(line)["voter"])
        assert len(kept) == len(set(kept))
        assert len(kept) == 3 if whole else len(kept) in {2, 3}
