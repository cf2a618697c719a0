"""The work that sorts the archive, over files on disk and on the virtual clock."""

from __future__ import annotations

import asyncio
import logging
import tracemalloc
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from reactivex.subject import Subject

from clock import DAY, now, rfc3339
from model.conversations import REPLY, TAUGHT
from services.assistant.curator import ClassificationResult
from services.assistant.describing import NotDescribed
from services.assistant.extractive.describing import ExtractiveTopicDescriber
from services.conversations import PersonalWork
from services.llm.endpoint import BadOutput, Rejected, TimedOut, Unavailable
from services.llm.usage import Usage
from services.storage import files
from services.team import archive, archive_files, overview, rebuilding, removals, skipped_for
from services.team.archive import REMOVED, Pair, PairTurn, Speaker, qa_id
from services.team.captures import Capture, CapturedMessage, RecentCaptures
from services.team.decisions import Action, Actor, Decision
from services.team.filing import has_changed
from services.team.library import TeamLibrary
from sinks.team import RawArchive
from streams.curation import CurationRules, CurationServices, NewDescription, curation
from tests.services.team.pairs import added, decided, everything, is_whole, noted, opened, places_in, store, topic_files
from tests.services.team.test_library import block_of
from tests.team import SKIP, ScriptedCurator, kept, named, pair

TICK = 300.0


@dataclass
class Describing:
    """Implements `services.assistant.describing.Describer`; an exception instead of a text is raised."""

    says: Callable[[str], str | Exception] = lambda text: f"{text.count('--- QA ---')} conversations."
    key: str = "key"
    asked: list[str] = field(default_factory=list[str])

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        _ = timeout_seconds
        self.asked.append(source_id)
        said = self.says(text)
        if isinstance(said, Exception):
            raise said
        return said


class Team:
    """An archive, and the work on it."""

    def __init__(
        self,
        folder: Path,
        curator: ScriptedCurator | None = None,
        describing: Describing | None = None,
        *,
        finish_all: bool = True,
        settle_seconds: float = 0.0,
        last_said: Callable[[int], float | None] = lambda _message_id: None,
        is_private: Callable[[Pair], bool] = lambda _pair: False,
        personal_work: PersonalWork | None = None,
        is_spent: Callable[[], Coroutine[Any, Any, bool]] | None = None,
    ) -> None:
        self.folder = folder
        self.curator = curator or ScriptedCurator()
        self.describing = describing or Describing()
        self.usage = Usage()
        self.library: TeamLibrary = opened(folder)
        self.captures: Subject[object] = Subject()
        self.taught: Subject[Pair] = Subject()
        self.heard: list[Decision | NewDescription] = []
        self.done = asyncio.Event()
        self.in_flight: dict[str, int] = {}
        parts = CurationServices(
            self.library,
            self.curator,
            self.describing,
            self.usage,
            self.in_flight.__setitem__,
            last_said,
            is_private,
            personal_work,
            self.taught,
            is_spent,
        )
        rules = CurationRules(TICK, 60, finish_all, settle_seconds)
        self.subscription = curation(self.captures, parts, rules, self.heard.append).subscribe(
            on_completed=self.done.set
        )

    async def hears(self, *pairs: Pair) -> None:
        await asyncio.to_thread(store, self.folder, *pairs)
        self.captures.on_next(None)

    async def closes(self) -> None:
        self.captures.on_completed()
        await self.done.wait()

    @property
    def decided(self) -> list[tuple[str, Action]]:
        return [(each.qa_id, each.action) for each in noted(self.folder)]

    @property
    def index(self) -> str:
        return places_in(self.folder).index.read_text()


async def test_what_the_last_run_left_is_decided_at_the_start_oldest_first(tmp_path: Path) -> None:
    pairs = [pair(n) for n in range(1, 6)]
    store(tmp_path, *pairs)
    team = Team(tmp_path)
    await asyncio.sleep(1)
    assert team.decided == [(each.id, Action.ADDED) for each in pairs]
    assert list(topic_files(tmp_path)) == ["things.txt"]
    assert is_whole(tmp_path, team.library)
    await team.closes()


async def test_each_capture_is_decided_when_it_is_stored_and_its_topic_described(tmp_path: Path) -> None:
    team = Team(tmp_path)
    await team.hears(pair(1))
    await asyncio.sleep(1)
    assert team.index == "team:things.txt\n1 conversations.\n"
    await team.hears(pair(2))
    await asyncio.sleep(1)
    assert team.index == "team:things.txt\n2 conversations.\n"
    assert [type(each) for each in team.heard] == [Decision, NewDescription, Decision, NewDescription]
    assert team.usage.calls == {"classify": 2, "integrate": 1}
    await team.closes()


async def test_what_is_taught_is_decided_at_once_and_holds_up_no_end(tmp_path: Path) -> None:
    team = Team(tmp_path, settle_seconds=600, finish_all=False)
    await asyncio.sleep(1)
    taught = replace(pair(1), conversation_id=TAUGHT.make_id(1))
    await asyncio.to_thread(store, tmp_path, taught)
    team.taught.on_next(taught)
    await asyncio.sleep(1)
    assert team.decided == [(taught.id, Action.ADDED)]
    assert team.library.decision_about(taught) == noted(tmp_path)[0]
    assert team.library.decision_about(pair(2)) is None
    await team.closes()
    assert not team.taught.observers


async def test_while_pairs_wait_a_topic_is_described_at_its_first_and_when_they_have_doubled(tmp_path: Path) -> None:
    store(tmp_path, *(pair(n) for n in range(1, 20)))
    described: list[int] = []

    def says(text: str) -> str:
        described.append(text.count("--- QA ---"))
        return f"{described[-1]} conversations."

    team = Team(tmp_path, describing=Describing(says))
    await team.closes()
    assert described == [1, 2, 4, 8, 16, 19]
    assert [entry.description for entry in team.curator.indices[2]] == ["2 conversations."]
    assert team.index == "team:things.txt\n19 conversations.\n"


async def test_a_topic_that_a_crash_has_left_without_a_description_gets_one_before_the_next_pair(
    tmp_path: Path,
) -> None:
    store(tmp_path, *(pair(n) for n in range(1, 4)))
    library = opened(tmp_path)
    library.decide(added(pair(1), "things"))
    team = Team(tmp_path)
    await team.closes()
    assert [entry.description for entry in team.curator.indices[0]] == ["1 conversations."]


async def test_a_topic_that_is_gone_before_it_could_be_described_is_let_be(tmp_path: Path) -> None:
    store(tmp_path, pair(1), pair(2))
    answers = [Unavailable("down")]
    team = Team(tmp_path, describing=Describing(lambda _text: answers.pop() if answers else "Fine."))
    await asyncio.sleep(0.5)
    team.library.decide(decided(pair(1), Action.REMOVED, by=Actor.OPERATOR))
    await asyncio.sleep(5)
    assert team.decided[-1] == (pair(2).id, Action.ADDED)
    assert team.describing.asked == ["team:things.txt"] * 2
    await team.closes()


async def test_a_tick_finds_what_nobody_has_told_of(tmp_path: Path) -> None:
    team = Team(tmp_path)
    await asyncio.sleep(1)
    store(tmp_path, pair(1))
    await asyncio.sleep(TICK - 2)
    assert team.decided == []
    await asyncio.sleep(2)
    assert team.decided == [(pair(1).id, Action.ADDED)]
    await team.closes()


async def test_captures_meanwhile_wait_their_turn(tmp_path: Path) -> None:
    team = Team(tmp_path, ScriptedCurator(seconds=10))
    pairs = [pair(n) for n in range(1, 8)]
    for each in pairs:
        await team.hears(each)
        await asyncio.sleep(3)
    await team.closes()
    assert [qa_id for qa_id, _ in team.decided] == [each.id for each in pairs]


async def test_an_outage_of_twenty_minutes_costs_nothing_but_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 7: 30 answers are captured while the endpoint is down; all are classified afterwards, in order."""
    began = now()
    down = Unavailable("connection refused")
    curator = ScriptedCurator(topic_for=lambda _: down if now() - began < 1200 else named("things"))
    team = Team(tmp_path, curator)
    pairs = [pair(n) for n in range(1, 31)]
    for each in pairs:
        await team.hears(each)
        await asyncio.sleep(40)
    assert team.decided == []
    assert {what for _, what in curator.asked} == {pairs[0].id}
    gaps = [round(after - before) for before, after in zip(curator.at, curator.at[1:], strict=False)]
    assert gaps == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300][: len(gaps)]
    await asyncio.sleep(TICK)
    assert team.decided == [(each.id, Action.ADDED) for each in pairs]
    assert is_whole(tmp_path, team.library)
    assert "team knowledge: Unavailable: connection refused; continues in 256 s" in caplog.text
    await team.closes()


async def test_the_pause_begins_anew_after_a_success_and_is_as_long_as_was_asked_for(tmp_path: Path) -> None:
    answers: list[Exception | None] = [TimedOut("slow"), TimedOut("slow"), None, Unavailable("429", retry_after=50)]
    curator = ScriptedCurator(topic_for=lambda _: (answers.pop(0) if answers else None) or named("things"))
    store(tmp_path, pair(1), pair(2))
    team = Team(tmp_path, curator)
    await asyncio.sleep(100)
    classified = [at for (step, _), at in zip(curator.asked, curator.at, strict=True) if step == "classify"]
    assert [round(at - classified[0]) for at in classified] == [0, 1, 3, 3, 53]
    await team.closes()


async def test_an_archive_write_does_not_wait_for_a_hundred_pairs_and_a_slow_model(tmp_path: Path) -> None:
    """Pitfall 7."""
    store(tmp_path, *(pair(n) for n in range(1, 101)))
    team = Team(tmp_path, ScriptedCurator(seconds=30), finish_all=False)
    await asyncio.sleep(100)
    archive = RawArchive(places_in(tmp_path).raw, RecentCaptures())
    said = (
        CapturedMessage(5, 1, PairTurn(Speaker.USER, "Why?")),
        CapturedMessage(6, 50, PairTurn(Speaker.TEAM, "So.")),
    )
    began = now()
    written = await archive.store_late(Capture(None, "thread_5", said))
    team.captures.on_next(written)
    assert now() - began < 0.05
    assert len(team.decided) < 5
    await team.closes()


async def test_what_has_just_been_stored_is_not_read_again_before_it_is_decided_about(tmp_path: Path) -> None:
    team = Team(tmp_path)
    await team.hears(pair(1))
    await asyncio.sleep(1)
    archive = RawArchive(places_in(tmp_path).raw, RecentCaptures(), on_stored=team.library.add_block)
    said = (
        CapturedMessage(5, 1, PairTurn(Speaker.USER, "Why?")),
        CapturedMessage(6, 50, PairTurn(Speaker.TEAM, "So.")),
    )
    written = await archive.store_late(Capture(None, "thread_5", said))
    assert written is not None
    places_in(tmp_path).raw.rename(tmp_path / "elsewhere")
    team.captures.on_next(written)
    await asyncio.sleep(1)
    assert team.decided == [(pair(1).id, Action.ADDED), (written.id, Action.ADDED)]
    await team.closes()


async def test_a_model_that_answers_nonsense_about_one_pair_holds_up_no_other(tmp_path: Path) -> None:
    """Pitfall 9."""
    pairs = [pair(n) for n in range(1, 5)]
    curator = ScriptedCurator(topic_for=lambda each: BadOutput("prose") if each.id == pairs[1].id else named("things"))
    store(tmp_path, *pairs)
    team = Team(tmp_path, curator)
    await asyncio.sleep(5)
    assert [action for _, action in team.decided] == [Action.ADDED, Action.FAILED, Action.ADDED, Action.ADDED]
    await team.closes()
    again = Team(tmp_path)
    await again.closes()
    assert again.curator.asked == []


async def test_a_key_that_is_no_longer_valid_does_not_use_up_the_archive_at_once(tmp_path: Path) -> None:
    store(tmp_path, *(pair(n) for n in range(1, 101)))
    team = Team(tmp_path, ScriptedCurator(topic_for=lambda _: Rejected("401")), finish_all=False)
    await asyncio.sleep(3600)
    assert 10 < len(team.decided) < 25
    await team.closes()


async def test_names_and_ids_that_a_model_makes_up_do_no_harm(tmp_path: Path) -> None:
    """Pitfalls 10, 18 and 20."""
    names = ["../../x", "/etc/passwd", "team:things.txt", "CON", "a\nkb:evil", ".", "GPU  Treiber ü"]
    pairs = [pair(n) for n in range(1, len(names) + 1)]
    topics = {each.id: name for each, name in zip(pairs, names, strict=True)}
    curator = ScriptedCurator(
        topic_for=lambda each: named(topics[each.id]),
        integrated=lambda _new, held: kept("qa_19990101_000000", "../../x", *(each.id for each in held)),
    )
    store(tmp_path, *pairs)
    describing = Describing(lambda _text: "Fine.\n\nkb:secret.md\nAll of it.")
    team = Team(tmp_path, curator, describing)
    await team.closes()
    assert {action for _, action in team.decided} == {Action.ADDED}
    assert {name.partition("/")[0] for name in everything(tmp_path)} == {"team-knowledge"}
    assert len(topic_files(tmp_path)) == len(names)
    assert all(line.startswith(("team:", "Fine.", "- kb:", "All", "")) for line in team.index.splitlines())
    assert "\nkb:" not in team.index
    assert is_whole(tmp_path, team.library)


async def test_the_end_waits_until_all_is_decided_in_a_replay(tmp_path: Path) -> None:
    store(tmp_path, *(pair(n) for n in range(1, 11)))
    team = Team(tmp_path, ScriptedCurator(seconds=7))
    await team.closes()
    assert len(team.decided) == 10
    assert team.describing.asked == ["team:things.txt"] * 5


async def test_an_endpoint_that_is_down_does_not_hold_up_the_end_of_a_replay(tmp_path: Path) -> None:
    store(tmp_path, pair(1))
    team = Team(tmp_path, ScriptedCurator(topic_for=lambda _: Unavailable("down")))
    await asyncio.sleep(100)
    began = now()
    await team.closes()
    assert now() - began < TICK
    assert team.decided == []


async def test_a_shutdown_cuts_the_work_off_between_two_writes_and_the_next_start_goes_on(tmp_path: Path) -> None:
    """Pitfalls 8 and 14."""
    pairs = [pair(n) for n in range(1, 6)]
    store(tmp_path, *pairs)
    team = Team(tmp_path, ScriptedCurator(seconds=10), finish_all=False)
    await asyncio.sleep(25)
    began = now()
    await team.closes()
    assert now() == began
    done = len(team.decided)
    assert 0 < done < 5
    again = Team(tmp_path)
    await again.closes()
    assert again.curator.asked[0] == ("classify", pairs[done].id)
    assert again.decided == [(each.id, Action.ADDED) for each in pairs]
    assert is_whole(tmp_path, again.library)


async def test_a_disk_that_is_full_stops_the_work_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(tmp_path, pair(1), pair(2))
    team = Team(tmp_path)
    decide = team.library.decide
    full = [True]

    def refusing(decision: Decision, each: Pair | None = None, **options: bool) -> frozenset[str]:
        if full[0]:
            raise OSError(28, "No space left on device")
        return decide(decision, each, **options)

    monkeypatch.setattr(team.library, "decide", refusing)
    await asyncio.sleep(20)
    assert team.decided == []
    full[0] = False
    await asyncio.sleep(20)
    assert team.decided == [(pair(1).id, Action.ADDED), (pair(2).id, Action.ADDED)]
    await team.closes()


async def test_a_topic_that_cannot_be_described_keeps_no_other_from_its_description(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store(tmp_path, pair(1, "bad one?"), pair(2, "good one?"))
    curator = ScriptedCurator(topic_for=lambda each: named("bad" if "bad" in each.turns[0].text else "good"))
    describing = Describing(lambda text: BadOutput("prose") if "bad one" in text else "Good.")
    team = Team(tmp_path, curator, describing)
    await asyncio.sleep(5 * TICK)
    assert team.index == "team:bad.txt\nbad: bad one?\n\nteam:good.txt\nGood.\n"
    assert describing.asked.count("team:bad.txt") == 3
    assert "topic bad is not described: BadOutput: prose" in caplog.text
    describing.says = lambda _text: " \n"
    await team.hears(pair(3, "bad two?"))
    await asyncio.sleep(1)
    assert "topic bad is not described: NotDescribed: the description is empty" in caplog.text
    await team.closes()


async def test_a_bug_in_the_describer_is_told_with_its_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store(tmp_path, pair(1))
    await Team(tmp_path, describing=Describing(lambda _text: ZeroDivisionError("oh"))).closes()
    assert "Traceback" in caplog.text


async def test_descriptions_wait_while_the_endpoint_is_down(tmp_path: Path) -> None:
    store(tmp_path, pair(1))
    began = now()
    describing = Describing(lambda _text: Unavailable("down") if now() - began < 60 else "Fine.")
    team = Team(tmp_path, describing=describing)
    await asyncio.sleep(120)
    assert team.index == "team:things.txt\nFine.\n"
    await team.closes()


async def test_it_can_be_seen_what_is_at_work_and_read_what_was_done(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store(tmp_path, pair(1), pair(2))
    team = Team(tmp_path)
    await team.closes()
    assert team.in_flight == {"classify": 0, "integrate": 0, "describe": 0}
    assert f"topic_file_updated things by {pair(2).id}" in caplog.text


async def test_extractive_descriptions_name_what_was_asked(tmp_path: Path) -> None:
    store(tmp_path, pair(1, "How do I skip a run?", "Set an unmounted path: it is skipped."))
    library = opened(tmp_path, key=ExtractiveTopicDescriber().key)
    parts = CurationServices(library, ScriptedCurator(), ExtractiveTopicDescriber())
    done = asyncio.Event()
    captures: Subject[object] = Subject()
    curation(captures, parts, CurationRules(finish_all=True)).subscribe(on_completed=done.set)
    captures.on_completed()
    await done.wait()
    assert "How do I skip a run?" in library.index()[0].description


# Conversations that go on


SETTLE = 600.0
NOON = 43_200.0
"""Of the first day of the virtual clock."""


def said(after: float, conversation: int, *, captured_after: float = 60.0, number: int = 0) -> Pair:
    """A capture of the conversation, whose last message was said so many seconds after noon."""
    spoken, stamp = (rfc3339(NOON + at, digits=6) for at in (after, after + captured_after))
    turns = pair(1, f"question {conversation}?", f"answer {number}.")
    ids = {"message_ids": (1000, 1001 + number), "conversation_id": f"reply_{conversation}"}
    return replace(turns, id=qa_id(stamp), timestamp=stamp, said_at=spoken, **ids)


def settling(folder: Path, *, finish_all: bool = False) -> Team:
    return Team(folder, finish_all=finish_all, settle_seconds=SETTLE)


async def at_noon(seconds: float = 0.0) -> None:
    await asyncio.sleep(NOON + seconds - now())


async def test_a_conversation_is_taken_up_when_it_has_been_quiet(tmp_path: Path) -> None:
    """Pitfall 72."""
    team = settling(tmp_path)
    await at_noon(60)
    one = said(0, 1)
    await team.hears(one)
    await at_noon(SETTLE - 1)
    assert team.curator.asked == []
    await at_noon(SETTLE + 1)
    assert team.decided == [(one.id, Action.ADDED)]
    assert team.curator.at == [NOON + SETTLE]
    await team.closes()


async def test_a_kind_that_does_not_settle_is_taken_up_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(REPLY), "settles", False)
    team = settling(tmp_path)
    await at_noon(60)
    await team.hears(said(0, 1))
    await asyncio.sleep(1)
    assert len(team.decided) == 1
    await team.closes()


async def test_what_is_said_after_the_capture_counts_as_well(tmp_path: Path) -> None:
    """Pitfall 72: an asker who goes on will be answered, and captured again."""
    asked_about: list[int] = []

    def last_said(message_id: int) -> float | None:
        asked_about.append(message_id)
        return NOON + 300

    team = Team(tmp_path, finish_all=False, settle_seconds=SETTLE, last_said=last_said)
    await at_noon(60)
    one = said(0, 1)
    await team.hears(one)
    await at_noon(300 + SETTLE - 1)
    assert team.curator.asked == []
    assert set(asked_about) == {one.message_ids[-1]}
    await at_noon(300 + SETTLE + 1)
    assert team.decided == [(one.id, Action.ADDED)]
    await team.closes()


async def test_one_that_grows_costs_its_calls_once(tmp_path: Path) -> None:
    """Pitfall 72."""
    team = settling(tmp_path)
    captures = [said(300 * number, 1, number=number) for number in range(4)]
    for number, each in enumerate(captures):
        await at_noon(300 * number + 60)
        await team.hears(each)
    await at_noon(900 + SETTLE - 1)
    assert team.curator.asked == []
    assert team.decided == [(each.id, Action.SKIPPED) for each in captures[:-1]]
    assert noted(tmp_path)[0].reason == f"{captures[1].id} is a later capture of the same conversation"
    await at_noon(900 + SETTLE + 1)
    assert team.curator.asked == [("classify", captures[-1].id)]
    assert team.decided[-1] == (captures[-1].id, Action.ADDED)
    assert team.library.oldest_undecided() is None
    assert is_whole(tmp_path, team.library)
    await team.closes()


async def test_one_that_goes_on_holds_up_no_other(tmp_path: Path) -> None:
    team = settling(tmp_path)
    first, second, third = said(0, 1), said(100, 2), said(500, 1, number=1)
    for each, seconds in ((first, 60), (second, 160), (third, 560)):
        await at_noon(seconds)
        await team.hears(each)
    await at_noon(100 + SETTLE + 1)
    assert [asked for _, asked in team.curator.asked] == [second.id]
    await at_noon(500 + SETTLE + 1)
    assert [asked for step, asked in team.curator.asked if step == "classify"] == [second.id, third.id]
    await team.closes()


async def test_after_a_restart_quiet_is_what_the_archive_says(tmp_path: Path) -> None:
    store(tmp_path, said(-3600, 1), said(-SETTLE + 5, 2), said(-1, 3))
    await at_noon()
    team = settling(tmp_path)
    await asyncio.sleep(1)
    assert len(team.decided) == 1
    await at_noon(6)
    assert len(team.decided) == 2
    await at_noon(SETTLE)
    assert len(team.decided) == 3
    await team.closes()


async def test_what_was_said_long_ago_and_is_captured_now_is_quiet(tmp_path: Path) -> None:
    await at_noon()
    team = settling(tmp_path)
    await team.hears(said(-86_400, 1, captured_after=86_400))
    await asyncio.sleep(1)
    assert len(team.decided) == 1
    await team.closes()


async def test_a_clock_that_is_ahead_of_its_time_holds_nothing_up_for_longer(tmp_path: Path) -> None:
    await at_noon()
    team = settling(tmp_path)
    await team.hears(said(3600, 1, captured_after=-3600))
    await at_noon(SETTLE + 1)
    assert len(team.decided) == 1
    await team.closes()


async def test_after_the_clock_was_set_back_an_hour_between_two_runs_a_capture_waits_no_longer(tmp_path: Path) -> None:
    """Its time of capture is ahead now; Discord's times, which are its messages', are not."""
    store(tmp_path, said(-30, 1, captured_after=3600))
    await at_noon()
    team = settling(tmp_path)
    await at_noon(SETTLE - 31)
    assert team.decided == []
    await at_noon(SETTLE)
    assert len(team.decided) == 1
    # What is captured now has a later id all the same, or it would count as filed.
    said_now = (
        CapturedMessage(5, 1, PairTurn(Speaker.USER, "Why?")),
        CapturedMessage(6, 50, PairTurn(Speaker.TEAM, "So.")),
    )
    written = await RawArchive(places_in(tmp_path).raw, RecentCaptures()).store_late(
        Capture(None, "thread_5", said_now)
    )
    assert written is not None
    assert written.id > said(-30, 1, captured_after=3600).id
    await team.closes()


async def test_at_the_end_of_a_replay_everything_is_quiet(tmp_path: Path) -> None:
    await at_noon(120)
    team = settling(tmp_path, finish_all=True)
    await asyncio.sleep(0.001)  # the look at the start is over, and does not race with what is stored
    await team.hears(said(0, 1), said(30, 1, number=1), said(60, 2))
    began = now()
    await team.closes()
    assert now() == began
    assert [action for _, action in team.decided] == [Action.SKIPPED, Action.ADDED, Action.ADDED]


async def test_at_a_shutdown_what_is_not_quiet_is_left_to_the_next_start(tmp_path: Path) -> None:
    await at_noon(120)
    team = settling(tmp_path)
    await team.hears(said(0, 1))
    await asyncio.sleep(1)
    await team.closes()
    assert team.decided == []
    assert team.library.oldest_undecided() is not None


async def test_without_a_wait_a_growing_conversation_is_filed_at_once_and_replaced(tmp_path: Path) -> None:
    team = Team(tmp_path)
    first, second = said(0, 1), said(30, 1, number=1)
    for each in (first, second):
        await team.hears(each)
        await asyncio.sleep(1)
    assert team.decided == [(first.id, Action.ADDED), (second.id, Action.ADDED)]
    assert list(team.library.topics["things"].pairs) == [second]
    await team.closes()


async def test_a_year_of_silence_is_not_spent_on_looking_for_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 69: a topic that nobody can describe is tried three times; then nothing is due until something comes."""
    team = Team(tmp_path, describing=Describing(lambda _: ValueError("no description")))
    looks: list[int] = []
    undecided = TeamLibrary.oldest_undecided

    def seen(library: TeamLibrary, *arguments: Any) -> Pair | None:
        looks.append(1)
        return undecided(library, *arguments)

    monkeypatch.setattr(TeamLibrary, "oldest_undecided", seen)
    await team.hears(pair(1))
    await asyncio.sleep(365 * 86_400)
    assert team.decided == [(pair(1).id, Action.ADDED)]
    assert len(team.describing.asked) == 3
    assert len(looks) < 20
    await team.hears(pair(2))
    await asyncio.sleep(10 * TICK)
    assert [qa_id for qa_id, _ in team.decided] == [pair(1).id, pair(2).id]
    assert len(team.describing.asked) == 6
    await team.closes()


def taken_back(at: Pair, number: int, *, text: str = REMOVED) -> Pair:
    """A later capture of the conversation, with this text of the team."""
    asked, answered = at.turns
    later = pair(number)
    return replace(at, id=later.id, timestamp=later.timestamp, turns=(asked, replace(answered, text=text)))


async def test_what_was_taken_back_leaves_its_topic_although_no_model_can_be_asked(tmp_path: Path) -> None:
    filed, down = pair(1), Unavailable("down")
    curator = ScriptedCurator(topic_for=lambda each: named("things") if each.id == filed.id else down)
    team = Team(tmp_path, curator, finish_all=False)
    await team.hears(filed)
    await asyncio.sleep(1)
    await team.hears(taken_back(filed, 2, text="Ask me in private."))
    await asyncio.sleep(1)
    assert team.decided == [(filed.id, Action.ADDED), (filed.id, Action.REMOVED)]
    assert noted(tmp_path)[-1].by is Actor.DISCORD
    assert topic_files(tmp_path) == {}
    assert [each for each in curator.asked if each[0] == "classify"][1:] != []
    await team.closes()
    again = Team(tmp_path)
    await again.closes()
    assert [action for _, action in again.decided][2:] == [Action.ADDED]
    assert "Ask me in private." in topic_files(tmp_path)["things.txt"]


async def test_of_what_is_no_question_and_answer_any_more_no_model_is_asked(tmp_path: Path) -> None:
    store(tmp_path, pair(1), taken_back(pair(1), 2))
    team = Team(tmp_path)
    await team.closes()
    assert team.decided == [(pair(1).id, Action.SKIPPED), (pair(2).id, Action.SKIPPED)]
    assert team.curator.asked == []
    assert topic_files(tmp_path) == {}
    planned = rebuilding.plan([pair(1), taken_back(pair(1), 2)], noted(tmp_path))
    assert (planned.tasks, planned.wordless_count) == ((), 1)


async def test_what_an_operator_removed_stays_out_whatever_is_captured_of_the_conversation_later(
    tmp_path: Path,
) -> None:
    first, edited = pair(1), taken_back(pair(1), 2, text="so!")
    grown = replace(edited, id=pair(3).id, timestamp=pair(3).timestamp, conversation_id="reply_77")
    team = Team(tmp_path)
    await team.hears(first)
    await asyncio.sleep(1)
    removals.remove(team.library, first.id, rfc3339(now()))
    await team.hears(edited)
    await asyncio.sleep(1)
    await team.closes()
    store(tmp_path, grown)  # the same answer, found below another message
    planned = rebuilding.plan([first, edited, grown], noted(tmp_path))
    assert planned.tasks == ()
    again = Team(tmp_path)
    await again.closes()
    assert again.decided[2:] == [(edited.id, Action.REMOVED), (grown.id, Action.REMOVED)]
    assert {each.by for each in noted(tmp_path)[1:]} == {Actor.OPERATOR}
    assert topic_files(tmp_path) == {}
    assert {qa_id for _, qa_id in again.curator.asked} == set()

    assert overview(places_in(tmp_path), "", now()).removed == ((grown.id, "things"),)
    with pytest.raises(removals.RemovalRefused, match=f"--kb restore {grown.id} takes both back"):
        removals.restore(again.library, edited.id, rfc3339(now()))
    assert removals.restore(again.library, grown.id, rfc3339(now())) == f"{grown.id} is in things again."
    assert overview(places_in(tmp_path), "", now()).removed == ()
    later = replace(grown, id=pair(4).id, timestamp=pair(4).timestamp)
    planned = rebuilding.plan([first, edited, grown, later], noted(tmp_path))
    assert [task.pair.id for task in planned.tasks] == [later.id]
    store(tmp_path, later)
    last = Team(tmp_path)
    await last.closes()
    assert list(last.library.topics["things"].pairs) == [later]


async def test_what_is_removed_while_a_model_decides_about_a_later_capture_stays_out(tmp_path: Path) -> None:
    team = Team(tmp_path, ScriptedCurator(seconds=10))
    await team.hears(pair(1))
    await asyncio.sleep(60)
    await team.hears(taken_back(pair(1), 2, text="so, and more"))
    await asyncio.sleep(5)
    library = team.library
    library.decide(Decision(pair(1).id, rfc3339(now()), Action.REMOVED, Actor.OPERATOR))
    await team.closes()
    assert (team.decided[-1], topic_files(tmp_path)) == ((pair(2).id, Action.REMOVED), {})


async def test_while_the_tokens_of_the_day_are_used_up_no_model_is_asked_and_what_was_taken_back_goes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else whoever was answered once could have their conversation filed anew with each message that they delete."""
    spent = [False]

    async def is_spent() -> bool:
        return spent[0]

    store(tmp_path, pair(1))
    team = Team(tmp_path, finish_all=False, is_spent=is_spent)
    await asyncio.sleep(1)
    spent[0] = True
    again = taken_back(pair(1), 2, text="Ask me in private.")
    await team.hears(again, pair(3))
    await asyncio.sleep(3_000)
    assert team.decided == [(pair(1).id, Action.ADDED), (pair(1).id, Action.REMOVED)]
    assert topic_files(tmp_path) == {}
    assert [line for line in caplog.messages if "tokens_per_day" in line] == [
        "team knowledge: limits.tokens_per_day is used up; what waits is filed on the next day"
    ]
    spent[0] = False
    await asyncio.sleep(301)
    assert team.decided[2:] == [(again.id, Action.ADDED), (pair(3).id, Action.ADDED)]
    spent[0] = True
    await team.closes()


async def test_what_was_forgotten_is_not_taken_back_by_a_later_capture(tmp_path: Path) -> None:
    forgotten = taken_back(pair(1), 1)
    assert not has_changed(taken_back(pair(1), 2, text="more."), forgotten)
    assert has_changed(taken_back(pair(1), 2, text="more."), pair(1))


def test_what_is_doubted_has_changed_once() -> None:
    doubted = replace(pair(2), doubted_ids=pair(2).message_ids[-1:])
    assert has_changed(doubted, replace(doubted, doubted_ids=()))
    assert not has_changed(doubted, doubted)


@pytest.mark.parametrize("is_filed", [True, False])
async def test_what_is_taken_back_is_known_at_once_though_many_wait_to_be_read(tmp_path: Path, is_filed: bool) -> None:
    """As after an import, or a restart while the endpoint is down."""
    store(tmp_path, pair(1))
    if is_filed:
        await Team(tmp_path).closes()
    store(tmp_path, *(pair(number) for number in range(2, 40)))
    team = Team(tmp_path, ScriptedCurator(seconds=600), finish_all=False)
    await asyncio.sleep(1)
    taken = pair(1) if is_filed else pair(30)
    team.library.add_block(block_of(tmp_path, taken_back(taken, 50)))
    team.captures.on_next(None)
    await asyncio.sleep(600 * 100)
    mine = [action for qa_id, action in team.decided if qa_id == taken.id]
    assert mine == ([Action.ADDED, Action.REMOVED] if is_filed else [Action.SKIPPED])
    at = [qa_id for qa_id, _ in team.decided].index(taken.id, 1) if is_filed else 0
    assert at < 4
    await team.closes()


@pytest.mark.parametrize("is_filed", [True, False])
async def test_what_was_taken_back_before_a_restart_is_known_at_once_though_many_wait(
    tmp_path: Path, is_filed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_files, "CHUNK_BYTES", 1)
    store(tmp_path, pair(1), pair(2))
    if is_filed:
        await Team(tmp_path).closes()
    taken = [pair(2) if is_filed else pair(30), pair(1) if is_filed else pair(31)]
    store(
        tmp_path,
        *(pair(number) for number in range(3, 40)),
        *(taken_back(each, 50 + n) for n, each in enumerate(taken)),
    )
    team = Team(tmp_path, ScriptedCurator(seconds=600), finish_all=False)
    await asyncio.sleep(1)
    if is_filed:
        assert team.decided[2:] == [(each.id, Action.REMOVED) for each in reversed(taken)]
    later = pair(35)
    team.library.add_block(block_of(tmp_path, taken_back(later, 60)))
    team.captures.on_next(None)
    await asyncio.sleep(600 * 100)
    skipped = [qa_id for qa_id, action in team.decided if action is Action.SKIPPED]
    assert {later.id, *(() if is_filed else (each.id for each in taken))} <= set(skipped)
    assert later.id not in {what for _, what in team.curator.asked}
    await team.closes()


def test_a_library_knows_of_many_that_wait_their_ids_alone(tmp_path: Path) -> None:
    store(tmp_path, *(pair(number, "x" * 20_000) for number in range(1, 101)))
    tracemalloc.start()
    library = opened(tmp_path)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert library.later_undecided(pair(1)) is None
    assert held < 500_000


def doubted(at: Pair, number: int) -> Pair:
    """A later capture of the conversation, whose answer somebody has doubted since."""
    later = pair(number)
    return replace(at, id=later.id, timestamp=later.timestamp, doubted_ids=at.message_ids[-1:])


@pytest.mark.parametrize("alone", [True, False])
async def test_a_doubt_costs_no_call_and_waits_for_nothing(tmp_path: Path, alone: bool) -> None:
    """Else whoever doubts answers could have them filed anew by the model."""
    spoken: list[float] = []
    first, others = said(0, 1), [] if alone else [said(60, 2, number=1)]
    team = Team(tmp_path, settle_seconds=SETTLE, last_said=lambda _: max(spoken, default=None))
    await at_noon(120)
    await team.hears(first, *others)
    await at_noon(2 * SETTLE)
    calls, described, index = list(team.curator.asked), list(team.describing.asked), team.index
    assert (len(calls), len(described)) == ((1, 1) if alone else (3, 2))
    spoken.append(now())  # the doubt is a part of the conversation, which may go on
    again = doubted(first, 2)
    again = replace(again, id=said(2 * SETTLE, 1).id, timestamp=said(2 * SETTLE, 1).timestamp)
    await team.hears(again)
    await asyncio.sleep(1)
    ended = [(each.id, Action.ADDED) for each in (first, *others)]
    assert team.decided == [*ended, (first.id, Action.REMOVED), (again.id, Action.ADDED)]
    assert "(doubted)" in topic_files(tmp_path)["things.txt"]
    assert (team.curator.asked, team.describing.asked, team.index) == (calls, described, index)
    assert is_whole(tmp_path, team.library)
    await team.closes()


def asked_as(at: Pair, number: int, text: str) -> Pair:
    """A later capture of the conversation, with this text of the user."""
    later, (asked, answered) = pair(number), at.turns
    return replace(at, id=later.id, timestamp=later.timestamp, turns=(replace(asked, text=text), answered))


async def test_words_that_are_taken_out_again_and_again_cost_no_calls(tmp_path: Path) -> None:
    """Else one account could have the model file its old questions anew, past all limits."""
    first = asked_as(pair(1), 1, "How do I switch my lantern on in the cold room?")
    team = Team(tmp_path)
    await team.hears(first)
    await asyncio.sleep(1)
    calls = list(team.curator.asked)
    assert len(team.describing.asked) == 1
    words = first.turns[0].text.split()
    for number in range(2, 8):
        await team.hears(asked_as(first, number, " ".join([*words[: 10 - number], "…"])))
        await asyncio.sleep(600)
    assert team.curator.asked == calls
    assert len(team.describing.asked) == 2, "for what was taken out a topic is described once a day"
    assert "User: How do I …" in topic_files(tmp_path)["things.txt"]
    assert "lantern" not in topic_files(tmp_path)["things.txt"] + str(team.index)
    assert is_whole(tmp_path, team.library)
    await asyncio.sleep(DAY)
    await team.hears(asked_as(first, 9, "How …"))
    await asyncio.sleep(1)
    assert (team.curator.asked, len(team.describing.asked)) == (calls, 3)
    await team.closes()


async def test_where_a_shared_topic_is_named_after_words_that_were_taken_out_the_model_files_anew(
    tmp_path: Path,
) -> None:
    first = asked_as(pair(1), 1, "I am Olsen. How do I switch it on?")
    again = asked_as(first, 2, "… How do I switch it on?")
    curator = ScriptedCurator(topic_for=lambda each: named("lantern" if each.id == again.id else "olsen-lantern"))
    team = Team(tmp_path, curator)
    await team.hears(first, pair(5))
    await asyncio.sleep(1)
    await team.hears(again)
    await asyncio.sleep(1)
    assert list(topic_files(tmp_path)) == ["lantern.txt", "olsen-lantern.txt"]
    await team.closes()


async def test_what_users_take_out_costs_no_call(tmp_path: Path) -> None:
    """Else an account could have each of its old questions filed anew by the model, word by word."""
    team = Team(tmp_path)
    first, other = pair(1, "Why is it, Ben Olsen of 12 Harbour Street asks?"), pair(2)
    await team.hears(first, other)
    await asyncio.sleep(1)
    calls = list(team.curator.asked)
    texts = ["Why is it, … of 12 Harbour Street asks?", "Why is it, … asks?", "[removed]"]
    for number, text in enumerate(texts):
        asked, answered = first.turns
        again = pair(10 + number)
        again = replace(first, id=again.id, timestamp=again.timestamp, turns=(replace(asked, text=text), answered))
        await team.hears(again)
        await asyncio.sleep(1)
        assert team.decided[-1] == (again.id, Action.ADDED)
        assert {pair.id for pair in team.library.topics["things"].pairs} == {again.id, other.id}
        assert "Olsen" not in topic_files(tmp_path)["things.txt"]
    assert team.curator.asked == calls
    assert is_whole(tmp_path, team.library)
    alone = pair(15, "Why does the printer of Olsen hum?")
    team.curator.topic_for = lambda _: named("printer-olsen")
    await team.hears(alone)
    await asyncio.sleep(1)
    turns = (replace(alone.turns[0], text="Why does the printer of … hum?"), alone.turns[1])
    await team.hears(replace(alone, id=pair(16).id, timestamp=pair(16).timestamp, turns=turns))
    await asyncio.sleep(1)
    assert list(topic_files(tmp_path)) == ["printer.txt", "things.txt"]
    calls = list(team.curator.asked)
    await team.hears(taken_back(other, 20, text="So, and more."))
    await asyncio.sleep(1)
    assert len(team.curator.asked) > len(calls), "what the team changes is news"
    await team.closes()


@pytest.mark.parametrize("how", ["doubted", "question deleted", "answer deleted", "answer edited"])
async def test_what_an_answer_had_replaced_comes_back_only_by_the_team(tmp_path: Path, how: str) -> None:
    """Else any three words of a stranger would have the withdrawn answer quoted again."""
    first, second, third = pair(1), pair(2), pair(3)
    curator = ScriptedCurator(integrated=lambda new, held: kept(*(each.id for each in held if new == second)))
    team = Team(tmp_path, curator)
    await team.hears(first, second)
    await asyncio.sleep(1)
    assert list(team.library.topics["things"].pairs) == [second]
    calls = list(curator.asked)
    match how:
        case "doubted":
            again, back = doubted(second, 3), []
        case "question deleted":
            gone = tuple(replace(turn, text=REMOVED) for turn in second.turns)
            again, back = replace(taken_back(second, 3), turns=gone), []
        case "answer deleted":
            again, back = taken_back(second, 3), [first.id]
        case _:
            again, back = taken_back(second, 3, text="so, and more."), [first.id]
    await team.hears(again)
    await asyncio.sleep(1)
    left = [third.id] if how in {"doubted", "answer edited"} else []
    topic = team.library.topics.get("things")
    assert [each.id for each in topic.pairs if topic] == back + left if topic else not back + left
    assert (curator.asked == calls) is (how != "answer edited")
    if how == "doubted":
        last = noted(tmp_path)[-1]
        assert (last.action, last.remove_ids, last.replaces, last.by) == (Action.ADDED, (), (second.id,), Actor.LLM)
        removals.remove(team.library, third.id, rfc3339(now()))
        assert [each.id for each in team.library.topics["things"].pairs] == [first.id]
    await team.closes()


async def test_what_was_not_worth_keeping_is_not_asked_about_again_when_it_is_doubted(tmp_path: Path) -> None:
    team = Team(tmp_path, ScriptedCurator(topic_for=lambda _pair: SKIP))
    await team.hears(pair(1))
    await asyncio.sleep(1)
    await team.hears(doubted(pair(1), 2))
    await asyncio.sleep(1)
    assert team.decided == [(pair(1).id, Action.SKIPPED), (pair(2).id, Action.SKIPPED)]
    assert team.curator.asked == [("classify", pair(1).id)]
    await team.closes()


@pytest.mark.parametrize("why", ["no decision", "failed", "obsolete", "more was said", "not decided"])
async def test_a_model_decides_about_what_is_doubted_where_nothing_was_decided_that_still_holds(
    tmp_path: Path, why: str
) -> None:
    store(tmp_path, pair(1))
    library, again = opened(tmp_path), doubted(pair(1), 3)
    if why == "failed":
        library.decide(decided(pair(1), Action.FAILED), pair(1))
    elif why != "no decision":
        library.decide(added(pair(1), "things"), pair(1))
    if why == "obsolete":
        store(tmp_path, pair(2))
        library.decide(added(pair(2), "things", remove_ids=(pair(1).id,)), pair(2))
    if why == "more was said":
        again = replace(again, turns=(again.turns[0], PairTurn(Speaker.TEAM, "so, and more.")))
    if why == "not decided":  # the last capture before it was not, as a later one came
        store(tmp_path, taken_back(pair(1), 2, text="more."))
        again = doubted(taken_back(pair(1), 2, text="more."), 3)
        library.decide(replace(decided(pair(2), Action.SKIPPED), reason=skipped_for(again.id)))
    store(tmp_path, again)
    team = Team(tmp_path)
    await team.closes()
    assert ("classify", again.id) in team.curator.asked
    assert team.decided[-1] == (again.id, Action.ADDED)
    if why == "no decision":
        assert team.decided[0] == (pair(1).id, Action.SKIPPED)


async def test_what_is_no_longer_public_is_withdrawn_also_from_a_rebuild_until_it_is_restored(tmp_path: Path) -> None:
    store(tmp_path, pair(1), pair(2))
    team = Team(tmp_path, is_private=lambda each: each.id == pair(1).id)
    await team.closes()
    assert team.decided == [(pair(1).id, Action.REMOVED), (pair(2).id, Action.ADDED)]
    planned = rebuilding.plan([pair(1), pair(2)], noted(tmp_path))
    assert [task.pair.id for task in planned.tasks] == [pair(2).id]
    assert [each.qa_id for each in planned.kept_decisions] == [pair(1).id]
    removals.restore(team.library, pair(1).id, rfc3339(now()))
    again = Team(tmp_path)
    await again.closes()
    assert again.decided[-1] == (pair(1).id, Action.ADDED)


async def test_a_conversation_is_not_asked_about_with_the_words_of_whom_was_forgotten_meanwhile(tmp_path: Path) -> None:
    personal_work, shown, one = PersonalWork(), list[Pair](), pair(1)

    def classified(each: Pair) -> ClassificationResult:
        shown.append(each)
        return named("things")

    store(tmp_path, one)
    team = Team(
        tmp_path, ScriptedCurator(topic_for=classified, seconds=60), finish_all=False, personal_work=personal_work
    )
    await asyncio.sleep(1)
    with personal_work.forgetting(1):
        await asyncio.sleep(20)  # it tries again and again
        left = archive.render(archive.remove_texts(one, 1)).encode()
        await asyncio.to_thread(files.replace, places_in(tmp_path).raw / archive.week_file(one.key), left)
        await asyncio.to_thread(team.library.forget, 1)
    await asyncio.sleep(300)
    await team.closes()
    assert [each.turns[0].text for each in shown] == [archive.REMOVED]
    assert [step for step, _ in team.curator.asked] == ["classify"] * 2
    assert team.decided == [(one.id, Action.ADDED)]


async def test_a_topic_that_waits_for_its_description_is_shown_as_it_is_when_its_turn_comes(tmp_path: Path) -> None:
    one, two, shown = pair(1, "red?"), pair(2, "blue?"), list[str]()
    store(tmp_path, one, two)
    before = opened(tmp_path)
    for each, name in ((one, "reds"), (two, "blues")):
        before.decide(added(each, name))
        before.describe(before.topics[name], "Colours.", "the key of an earlier prompt")

    def says(text: str) -> str | Exception:
        shown.append(text)
        if len(shown) == 1:
            left = "".join(archive.render(archive.remove_texts(each, 1)) for each in (one, two))
            files.replace(places_in(tmp_path).raw / archive.week_file(one.key), left.encode())
            team.library.forget(1)
        return NotDescribed("it is empty")

    team = Team(tmp_path, describing=Describing(says))
    await team.closes()
    assert "blue?" in shown[0]
    assert not any("?" in text for text in shown[1:])
