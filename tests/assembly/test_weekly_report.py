"""The report of the week, in Discord."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, cast

import pytest

from assembly.reports import LOOK_SECONDS, WEEK, WeeklyReport, post_weekly_reports, report_from_folder
from clock import VirtualLoop, now, rfc3339
from model.messages import Author, Message, Place, PlaceKind, snowflake_at
from model.outcomes import Reason
from reporting.reading import TimeSpan
from reporting.report import Report
from services.conversations import WorkCancelled
from services.conversations.posts import Post, render_post
from services.discord import DryRunPoster, Fetcher, PostFailed
from services.storage import DataFolder, files
from services.telemetry import render_part_outcome
from settings import Settings
from tests.reporting.asked import MONDAY, asked

CHANNEL, GUILD = 70, 1


class Discord(DryRunPoster):
    """One channel, and what was posted there.

    `refuses`: so many posts fail first. `cut`: so many are posted, and the answer to the last of them is lost.
    """

    def __init__(self, refuses: int = 0, cut: int = 0) -> None:
        super().__init__()
        self.written: list[Message] = []
        self.refuses, self.cut = refuses, cut
        self.gone = False
        self.viewable = False

    @property
    def posts(self) -> list[str]:
        return [message.text for message in self.written]

    async def place(self, place_id: int) -> Place | None:
        if self.gone:
            return None
        return Place(place_id, PlaceKind.CHANNEL, "staff", GUILD, public=False, viewable=self.viewable)

    async def messages(
        self, channel_id: int, *, limit: int = 100, after: int | None = None, **_: object
    ) -> list[Message]:
        assert (channel_id, limit) == (CHANNEL, 100)
        return [message for message in self.written if message.id > (after or 0)]

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        assert (place_id, reply_to, bool(nonce)) == (CHANNEL, None, True)
        if self.refuses:
            self.refuses -= 1
            raise PostFailed("Missing Access")
        bot = Author(9, "bot", is_bot=True)
        self.written.append(Message(snowflake_at(now()), CHANNEL, bot, f"{text} ", now()))
        if len(self.written) == self.cut:
            raise PostFailed("the connection is gone")
        return 1


def weekly(settings: Settings, discord: Discord) -> WeeklyReport:
    async def report(period: TimeSpan, guild_id: int) -> Report:
        return await report_from_folder(settings, period, guild_id=guild_id)

    return WeeklyReport(
        channel_id=CHANNEL,
        path=DataFolder(settings.app.data_dir).last_report,
        poster=discord,
        fetcher=cast("Fetcher", discord),
        report=report,
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    chosen = Settings.model_validate({"search": {"embeddings": "none"}, "report": {"channel_id": str(CHANNEL)}})
    ends = [
        asked("Does it run on <@42> Solaris? See https://evil.example/x", at=MONDAY + 60, llm_calls=2),
        asked("Whose secret is this?", at=MONDAY + 70, guild_id=2, llm_calls=5, channel_id=8),
    ]
    file = tmp_path / "data" / "state" / "outcomes" / f"{ends[0].day}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"".join(map(render_part_outcome, ends)))
    for message_id, entry in enumerate(ends, 900):
        post = Post(entry.at, message_id, 5, 7, 311, entry.message_ids[-1], True, entry.question, ("kb:a.md",))
        files.append(tmp_path / "data" / "state" / "posts.jsonl", render_post(post))
        vote = {"at": rfc3339(entry.at), "message_id": str(message_id), "voter": "v", "question": entry.question}
        row = json.dumps({**vote, "sources": [], "vote": "down"})
        files.append(tmp_path / "data" / "feedback.jsonl", f"{row}\n".encode())
    return chosen.resolve_paths(tmp_path)


def play(*works: Coroutine[Any, Any, object], at: float = MONDAY) -> list[object]:
    async def all_of_them() -> list[object]:
        return [await work for work in works]

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(at)) as runner:
        return runner.run(all_of_them())


def test_the_first_week_begins_with_the_first_start(settings: Settings, tmp_path: Path) -> None:
    discord = Discord()
    assert play(weekly(settings, discord).post_if_due()) == [False]
    assert json.loads((tmp_path / "data" / "state" / "report.json").read_text())["until"] == MONDAY
    assert play(weekly(settings, discord).post_if_due(), at=MONDAY + WEEK - 1) == [False]
    assert discord.posts == []


def test_a_week_later_the_report_is_posted_once_and_tells_of_its_own_server(settings: Settings) -> None:
    discord = Discord()
    play(weekly(settings, discord).post_if_due())
    later = MONDAY + WEEK
    assert play(*(weekly(settings, discord).post_if_due() for _ in range(2)), at=later) == [
        True,
        False,
    ]
    [post] = discord.posts
    assert post.count("Solaris") == 2  # asked, and voted down
    assert "**Calls to models**: 2," in post
    assert "secret" not in post
    assert "<@42>" not in post
    assert "evil" not in post
    assert "discord.com/channels/1/7/" in post


def test_in_a_channel_that_everybody_can_view_nothing_is_named_that_was_asked(settings: Settings) -> None:
    """Its records do not say who could read a question."""
    discord = Discord()
    discord.viewable = True
    play(weekly(settings, discord).post_if_due())
    assert play(weekly(settings, discord).post_if_due(), at=MONDAY + WEEK) == [True]
    [post] = discord.posts
    assert post.split("\n")[1:-1] == ["Questions are named where only the team sees this report."]
    assert "Solaris" not in post
    assert "**Calls to models**: 2," in post


def test_a_post_that_fails_is_tried_again_an_hour_later(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    discord = Discord(refuses=1)

    async def weeks() -> None:
        async with post_weekly_reports(settings, discord, cast("Fetcher", discord)):
            await asyncio.sleep(WEEK + 1.5 * LOOK_SECONDS)

    play(weeks())
    assert len(discord.posts) == 1
    assert "report.channel_id: the report was not posted: Missing Access" in caplog.text


def test_without_a_channel_nothing_is_posted(settings: Settings, tmp_path: Path) -> None:
    discord = Discord()
    nowhere = settings.model_copy(update={"report": settings.report.model_copy(update={"channel_id": None})})

    async def a_while() -> None:
        async with post_weekly_reports(nowhere, discord, cast("Fetcher", discord)):
            await asyncio.sleep(2 * WEEK)

    play(a_while())
    assert discord.posts == []
    assert not (tmp_path / "data" / "state" / "report.json").exists()


def test_a_clock_that_was_set_back_begins_a_new_week(settings: Settings) -> None:
    discord = Discord()
    play(weekly(settings, discord).post_if_due(), at=MONDAY + 9 * WEEK)
    play(weekly(settings, discord).post_if_due(), at=MONDAY)
    assert play(weekly(settings, discord).post_if_due(), at=MONDAY + WEEK) == [True]


def test_a_channel_that_is_gone_gets_no_report_of_all_servers(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    discord = Discord()
    discord.gone = True

    async def weeks() -> None:
        async with post_weekly_reports(settings, discord, cast("Fetcher", discord)):
            await asyncio.sleep(WEEK + 1.5 * LOOK_SECONDS)

    play(weeks())
    assert discord.posts == []
    assert "there is no channel 70 that the bot can see" in caplog.text


@pytest.fixture
def two_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(_: Report, **_more: object) -> str:
        return f"**The last week.** {'a' * 1500}\n{'b' * 1500}"

    monkeypatch.setattr("assembly.reports.render_message", said)


@pytest.mark.usefixtures("two_pieces")
def test_a_report_that_was_cut_off_is_finished_and_no_piece_is_posted_twice(settings: Settings) -> None:
    """Whether the first piece was posted is not known, as after a crash."""
    discord, later = Discord(cut=1), MONDAY + WEEK
    play(weekly(settings, discord).post_if_due())
    with pytest.raises(PostFailed, match="gone"):
        play(weekly(settings, discord).post_if_due(), at=later)
    assert play(weekly(settings, discord).post_if_due(), at=later + 60) == [True]
    assert [post[0:5] for post in discord.posts] == ["**The", "bbbbb"]
    assert play(weekly(settings, discord).post_if_due(), at=later + WEEK - 1) == [False]
    assert play(weekly(settings, discord).post_if_due(), at=later + WEEK) == [True]


@pytest.mark.usefixtures("two_pieces")
def test_a_piece_that_was_announced_and_not_posted_is_posted(settings: Settings) -> None:
    discord = Discord(refuses=1)
    play(weekly(settings, discord).post_if_due())
    with pytest.raises(PostFailed, match="Missing Access"):
        play(weekly(settings, discord).post_if_due(), at=MONDAY + WEEK)
    assert play(weekly(settings, discord).post_if_due(), at=MONDAY + WEEK + 60) == [True]
    assert len(discord.posts) == 2


def test_nothing_is_posted_that_could_not_be_written_down(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two processes that know of the same report, one has lost its right."""
    discord = Discord()
    play(weekly(settings, discord).post_if_due())

    def refused(*_: object) -> None:
        raise OSError("belongs to another process")

    monkeypatch.setattr(files, "replace", refused)
    with pytest.raises(OSError, match="another process"):
        play(weekly(settings, discord).post_if_due(), at=MONDAY + WEEK)
    assert discord.posts == []


def test_what_is_written_down_says_nothing_of_what_was_asked(settings: Settings, tmp_path: Path) -> None:
    discord = Discord(refuses=1)
    play(weekly(settings, discord).post_if_due())
    with pytest.raises(PostFailed):
        play(weekly(settings, discord).post_if_due(), at=MONDAY + WEEK)
    kept = json.loads((tmp_path / "data" / "state" / "report.json").read_text())
    assert kept["begun"]["until"] == MONDAY + WEEK
    assert "Solaris" not in json.dumps(kept)


def test_a_damaged_library_is_said_and_the_report_is_posted_once_it_is_mended(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    discord, state = Discord(), tmp_path / "data" / "team-knowledge" / "state.json"

    async def weeks() -> None:
        async with post_weekly_reports(settings, discord, cast("Fetcher", discord)):
            await asyncio.sleep(WEEK - LOOK_SECONDS)
            files.replace(state, b"{")
            await asyncio.sleep(1.5 * LOOK_SECONDS)
            assert discord.posts == []
            files.remove(state)
            await asyncio.sleep(LOOK_SECONDS)

    play(weeks())
    assert len(discord.posts) == 1
    assert "report.channel_id: the report was not posted: " in caplog.text
    assert "Traceback" not in caplog.text


async def test_a_bug_does_not_end_it_but_another_process_does(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    raised = iter([ValueError("a bug"), WorkCancelled(Reason.SHUTDOWN)])

    async def failing(_: WeeklyReport) -> bool:
        raise next(raised)

    monkeypatch.setattr(WeeklyReport, "post_if_due", failing)
    with pytest.raises(WorkCancelled):
        await weekly(settings, Discord()).keep_posting()
    assert "a bug" in caplog.text


@pytest.mark.usefixtures("two_pieces")
def test_a_piece_that_somebody_has_deleted_is_not_posted_again(settings: Settings) -> None:
    discord, later = Discord(cut=2), MONDAY + WEEK
    play(weekly(settings, discord).post_if_due())
    with pytest.raises(PostFailed):
        play(weekly(settings, discord).post_if_due(), at=later)
    del discord.written[0]
    assert play(weekly(settings, discord).post_if_due(), at=later + 60) == [True]
    assert len(discord.posts) == 1
