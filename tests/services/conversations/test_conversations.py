"""People, posts, budgets, marks, state files and contexts: the small services that the graph asks."""

# pyright: reportPrivateUsage=false
# Whether memory is given back cannot be seen from outside.

from __future__ import annotations

import json
import tracemalloc
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.events import Posted, Ready
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind, snowflake_at, snowflake_time
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed
from services.conversations import people as people_module
from services.conversations import posts as records_module
from services.conversations.context import Context, ContextRules
from services.conversations.history import History
from services.conversations.people import TeamActivity
from services.conversations.posts import (
    Post,
    Posts,
    ShownPair,
    Watermark,
    Watermarks,
    read_posts,
    read_watermarks,
    render_post,
    render_watermarks,
)
from services.conversations.tracking import ConversationTracker
from services.discord.protocols import LookupFailed
from services.llm.usage import Budget, BudgetLimits, Spent, read_spent, render_spent
from services.storage import json_state
from tests.services.conversations.places import ANNA, BEN, EPOCH, TESS, FullList, message
from tests.services.quickly import QUICKLY
from tests.talk import people_of

TEAM = frozenset({TESS.id})
ROLE = frozenset({55})
PLACE = Place(1, PlaceKind.CHANNEL, guild_id=5)


def part_of(*messages: Message, number: int = 1) -> Part:
    place = replace(PLACE, id=messages[0].channel_id)
    return Part(number, messages, AuthorType.COMMUNITY_USER, place, messages[-1].at)


# People


async def test_people_known_from_history_are_looked_up_once_and_only_when_roles_matter() -> None:
    server = FullList.of([])
    server.roles[ANNA.id] = (54, 55)
    people = people_of(TEAM, ROLE, server)
    for _ in range(2):
        assert await people.look_up(ANNA, 5) is AuthorType.TEAM_MEMBER
        assert await people.look_up(BEN, 5) is AuthorType.COMMUNITY_USER
        assert await people.look_up(TESS, 5) is AuthorType.TEAM_MEMBER
    assert server.calls == ["member 101", "member 102"]
    assert await people_of(TEAM, frozenset(), server).look_up(ANNA, 5) is AuthorType.COMMUNITY_USER
    assert await people_of(TEAM, ROLE, server).look_up(BEN, None) is AuthorType.COMMUNITY_USER
    assert len(server.calls) == 2


async def test_a_failed_look_up_of_a_member_is_not_remembered() -> None:
    server = FullList.of([])
    server.roles[ANNA.id], server.broken = (55,), True
    people = people_of(TEAM, ROLE, server)
    with pytest.raises(LookupFailed):
        await people.look_up(ANNA, 5)
    assert not await people.is_team_member(ANNA.id, 5)
    server.broken = False
    assert await people.is_team_member(ANNA.id, 5)
    assert await people.look_up(ANNA, 5) is AuthorType.TEAM_MEMBER


def test_types_of_people_are_remembered_as_seen_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 23."""
    monkeypatch.setattr(people_module, "KNOWN_PEOPLE", 2)
    people = people_of(TEAM, ROLE, None)
    people.observe(Ready(EPOCH, 1, "M"))
    assert people.type_of(replace(ANNA, role_ids=(55,)), 5) is AuthorType.TEAM_MEMBER
    assert people.is_team(ANNA, 5)
    assert people.type_of(replace(ANNA, role_ids=()), 5) is AuthorType.COMMUNITY_USER
    assert not people.is_team(ANNA, 5)
    people.type_of(replace(ANNA, role_ids=(55,)), 5)
    for user_id in (7, 8):
        people.type_of(Author(user_id, "", role_ids=()), 5)
    assert people.type_of(ANNA, 5) is AuthorType.COMMUNITY_USER  # forgotten
    assert people.type_of(replace(TESS, is_bot=True), 5) is AuthorType.BOT
    assert people.type_of(Author(1, ""), 5) is AuthorType.BOT


# Posts


def post(number: int, place_id: int, asked_in: int = 1, asker: int = ANNA.id) -> Post:
    return Post(float(number), number, place_id, asked_in, asker, number, place_id != asked_in, "q", ("kb:a",))


def test_forgotten_posts_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread whose last post was forgotten is no thread to go on in, whatever was asked where."""
    monkeypatch.setattr(records_module, "KEPT_POSTS", 2)
    opened, followed_up = post(1, 10), post(2, 10, asked_in=10)
    posts = Posts([opened, followed_up])
    assert posts.reusable_thread(1, ANNA.id, 0.0) == 10
    posts = Posts([opened, followed_up, post(3, 30, asker=9), post(4, 40, asker=9)])
    assert posts.reusable_thread(1, ANNA.id, 0.0) is None
    assert (posts.has_posted_in(10), posts.find(1), posts.has_answered(2)) == (False, None, False)
    assert (posts.has_posted_in(40), posts.has_answered(4)) == (True, True)


def test_the_newest_post_of_a_thread_is_the_last_recorded_there() -> None:
    posts = Posts([post(1, 10), post(2, 20), post(3, 10, asked_in=10)])
    assert [posts.newest_in(place_id) for place_id in (10, 20, 30)] == [3, 2, 0]


def test_each_piece_of_a_post_leads_to_it_until_it_is_forgotten() -> None:
    long = replace(post(3, 10), earlier_ids=(1, 2))
    posts = Posts([long])
    assert [posts.find(number) for number in (1, 2, 3, 4)] == [long, long, long, None]
    posts.forget(ANNA.id, 2**63)
    assert [posts.find(number) for number in (1, 2, 3)] == [None, None, None]


def test_a_post_keeps_what_it_shows_and_those_of_earlier_versions_are_read(tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    shown = replace(post(3, 10), shown_pairs=(ShownPair(None, "qa_1"), ShownPair(7, "qa_2")), earlier_ids=(1, 2))
    earlier = (
        b'{"at": 4.0, "message_id": 4, "place_id": 10, "asked_in": 1, "asker_id": 311, "last_asked_id": 4, '
        b'"opened_thread": true, "question": "q", "sources": ["kb:a"]}\n'
    )
    path.write_bytes(render_post(shown) + earlier)
    first, second = read_posts(path)
    assert first == shown
    assert (second.sources, second.shown_pairs, second.piece_ids) == (("kb:a",), (), (4,))


def test_what_is_remembered_of_a_post_is_small() -> None:
    first = 1_500_000_000_000_000_000
    tracemalloc.start()
    posts = Posts(post(number, number, asker=number) for number in range(first, first + 5_000))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    last = first + 4_999
    assert posts.latest_for(last, last) == post(last, last, asker=last)
    assert held / 5_000 < 800


def test_when_a_person_was_helped_takes_little() -> None:
    history = History(None)
    team = TeamActivity(history)
    asked = [message(number, Author(number, "")) for number in range(1_000, 3_000)]
    for each in asked:
        history.observe(Posted(each.at, each))
    helping = [message(each.id + 5_000, TESS, to=each.id) for each in asked]
    tracemalloc.start()
    for each in helping:
        team.observe(each)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    first = helping[0].at
    assert team.has_helped(asked[0].channel_id, asked[0].author.id, first, first)
    assert held / len(asked) < 500


async def test_what_was_asked_before_its_asker_was_forgotten_is_not_recorded_afterwards(
    tmp_path: Path,
) -> None:
    """Pitfall 67: a piece may wait for Discord for minutes, and the wish is carried out meanwhile."""
    posts, asked, later = Posts(path=tmp_path / "posts.jsonl"), snowflake_at(EPOCH), snowflake_at(EPOCH + 120)
    posts.forget(ANNA.id, snowflake_at(EPOCH + 60))
    for each in (post(1, 10), post(2, 20, asker=BEN.id), post(3, 30)):
        await posts.add(replace(each, last_asked_id=later if each.message_id == 3 else asked))
    assert [each.message_id for each in read_posts(tmp_path / "posts.jsonl")] == [2, 3]
    assert [posts.find(number) is None for number in (1, 2, 3)] == [True, False, False]


async def test_posts_for_a_person_who_is_forgotten_are_dropped() -> None:
    posts = Posts([post(1, 10), post(2, 20, asker=BEN.id), post(3, 10, asked_in=10)])
    posts.forget(ANNA.id, 2**63)
    assert posts.reusable_thread(1, ANNA.id, 0.0) is None
    assert [posts.find(number) is None for number in (1, 2, 3)] == [True, False, True]
    assert posts.has_posted_in(20)
    assert not posts.has_posted_in(10)


def test_the_records_of_posts_have_the_new_ids_of_sources() -> None:
    posts = Posts([replace(post(1, 10), sources=("team:a.txt", "kb:b.md")), post(2, 20)])
    posts.rename_sources({"team:a.txt": "team:c.txt"})
    renamed = posts.find(1)
    assert renamed is not None
    assert renamed.sources == ("team:c.txt", "kb:b.md")
    assert posts.find(2) == post(2, 20)


def test_the_latest_reply_to_an_asker_is_found_in_the_thread_and_where_they_asked() -> None:
    first, bens, followed_up = post(1, 10), post(2, 10, asked_in=10, asker=BEN.id), post(3, 10, asked_in=10)
    posts = Posts([first, bens])
    assert posts.latest_for(10, ANNA.id) == posts.latest_for(1, ANNA.id) == first
    assert (posts.latest_for(10, BEN.id), posts.latest_for(1, BEN.id)) == (bens, None)
    assert posts.latest_for(11, ANNA.id) is None
    posts = Posts([first, bens, followed_up, post(4, 40)])
    assert posts.latest_for(10, ANNA.id) == followed_up
    assert posts.latest_for(1, ANNA.id) == posts.latest_for(40, ANNA.id) == post(4, 40)


async def test_the_latest_reply_is_forgotten_with_its_asker_and_with_age(monkeypatch: pytest.MonkeyPatch) -> None:
    first, bens = post(1, 10), post(2, 10, asked_in=10, asker=BEN.id)
    posts = Posts([first, bens])
    posts.forget(ANNA.id, 2**63)
    assert (posts.latest_for(10, ANNA.id), posts.latest_for(1, ANNA.id)) == (None, None)
    assert posts.latest_for(10, BEN.id) == bens
    monkeypatch.setattr(records_module, "KEPT_POSTS", 2)
    posts = Posts([first, bens, post(3, 10, asked_in=10)])
    assert posts.latest_for(10, ANNA.id) == post(3, 10, asked_in=10)
    posts = Posts([first, bens, post(3, 30, asker=9), post(4, 40, asker=9)])
    assert not posts._last_for.keys() & {(10, ANNA.id), (10, BEN.id)}


def test_a_thread_is_used_again_while_its_last_post_is_younger_than_the_limit() -> None:
    posts = Posts([post(100, 10), post(200, 10, asked_in=10)])
    assert posts.reusable_thread(1, ANNA.id, since=199.9) == 10
    assert posts.reusable_thread(1, ANNA.id, since=200.0) is None
    assert posts.reusable_thread(1, BEN.id, since=0.0) is None


# Budget

HOURLY = "limits.chains_per_user_per_hour"


@QUICKLY
@given(st.lists(st.tuples(st.integers(1, 2), st.floats(0, 2000)), max_size=30), st.integers(1, 4))
async def test_no_hour_holds_more_chains_of_a_user_than_allowed(steps: list[tuple[int, float]], limit: int) -> None:
    budget, at = Budget(BudgetLimits(limit)), 0.0
    begun: dict[int, list[float]] = {1: [], 2: []}
    for user, pause in steps:
        at += pause
        room = sum(1 for earlier in begun[user] if earlier > at - 3600) < limit
        assert (await budget.begin_chain(user, at) is None) == room
        if room:
            begun[user].append(at)


async def test_days_turn_at_midnight_utc_and_idle_people_are_forgotten() -> None:
    budget = Budget(BudgetLimits(5, answers_per_day=1, tokens_per_day=10), Spent(day=0))
    assert await budget.begin_chain(1, 86_000.0) is None
    budget.answered(86_399.0)
    assert await budget.begin_chain(1, 86_399.9) == "limits.answers_per_day"
    assert await budget.begin_chain(2, 86_400.0) is None
    budget.used(10, 86_401.0)
    assert await budget.begin_chain(2, 86_402.0) == "limits.tokens_per_day"
    assert await budget.begin_chain(3, 2 * 86_400.0) is None
    assert set(budget.spent.chains) == {"3"}


async def test_who_has_begun_a_chain_is_kept_for_an_hour_by_a_name_that_does_not_tell(tmp_path: Path) -> None:
    """Pitfall 49: so that forgetting gives nobody an hour's chains anew."""
    budget = Budget(BudgetLimits(1), name_of=lambda user: f"p{user * 7}")
    assert [await budget.begin_chain(user, 10.0 + user) for user in (1, 1, 2)] == [None, HOURLY, None]
    path = tmp_path / "usage.json"
    path.write_bytes(render_spent(budget.spent))
    assert json.loads(path.read_bytes())["begun"] == {"p7": [11.0], "p14": [12.0]}
    spent = read_spent(path)
    assert spent == budget.spent
    spent.keep_recent(11.0 + 3600)
    assert set(spent.chains) == {"p14"}
    assert await budget.begin_chain(3, 12.0 + 3600) is None
    assert set(budget.spent.chains) == {"p21"}


async def test_who_has_begun_chains_while_the_clock_was_a_year_ahead_may_begin_one_once_it_is_right() -> None:
    budget = Budget(BudgetLimits(1), name_of=str)
    year = 365 * 86_400.0
    assert [await budget.begin_chain(1, year + at) for at in (0.0, 1.0)] == [None, HOURLY]
    assert [await budget.begin_chain(1, at) for at in (10.0, 11.0)] == [None, HOURLY]
    assert await budget.begin_chain(1, 11.0 - 3600) == HOURLY, "set back by an hour only"


def test_counts_that_an_earlier_program_kept_by_the_ids_of_people_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "usage.json"
    path.write_text('{"day": 3, "answers": 2, "tokens": 1, "chains": {"42": [5.0]}}')
    assert read_spent(path) == Spent(3, 2, 1)


async def test_a_clock_set_back_over_midnight_gives_no_budget_a_second_time() -> None:
    budget = Budget(BudgetLimits(0, answers_per_day=1, tokens_per_day=10), Spent(day=3))
    midnight = 3 * 86_400.0
    budget.answered(midnight + 1800)
    assert await budget.begin_chain(1, midnight - 1800) == "limits.answers_per_day"
    assert await budget.begin_chain(1, midnight + 3600) == "limits.answers_per_day"
    assert await budget.begin_chain(1, midnight + 86_400) is None


async def test_a_day_that_was_far_ahead_does_not_hold_budgets_up() -> None:
    budget = Budget(BudgetLimits(0, answers_per_day=1), Spent(day=40_000, answers=1))
    assert await budget.begin_chain(1, 20_000 * 86_400.0) is None
    assert budget.spent.day == 20_000


def test_a_refusal_is_told_once_per_user_and_window() -> None:
    budget = Budget(BudgetLimits())
    daily = "limits.answers_per_day"
    told = [budget.first_time(HOURLY, user, at) for user, at in ((1, 0.0), (1, 3599.0), (2, 0.0), (1, 3600.0))]
    assert told == [True, False, True, True]
    assert [budget.first_time(daily, 1, at) for at in (0.0, 86_399.0, 86_400.0)] == [True, False, True]


# Watermarks


@QUICKLY
@given(
    st.lists(st.tuples(st.sampled_from(["arrives", "ignored", "removed", "skipped", "shutdown"]), st.integers(10, 16)))
)
def test_the_mark_never_passes_a_message_without_an_end(steps: list[tuple[str, int]]) -> None:
    """Pitfall 8, against sets."""
    changes: list[None] = []
    seen = Watermarks({1: Watermark(9)}, on_change=lambda: changes.append(None))
    arrived, ended = set[int](), set[int]()
    for what, number in steps:
        if what == "arrives":
            seen.note_arrival(1, number)
            if number > seen.by_place()[1]:  # what comes below the mark has been overtaken: the mark does not go back
                arrived.add(number)
        elif number in arrived:
            match what:
                case "ignored":
                    seen.note_result(Ignored(Reason.NOT_ADDRESSED, 1, (number,)))
                case "removed":
                    seen.note_result(Removed(1, number))
                case "skipped":
                    seen.note_result(Outcome(part_of(message(number)), 0.0, OutcomeKind.SKIPPED, Reason.BUDGET))
                case _:
                    seen.note_result(Outcome(part_of(message(number)), 0.0, OutcomeKind.CANCELLED, Reason.SHUTDOWN))
            if what != "shutdown":
                ended.add(number)
        below = seen.by_place()[1]
        assert all(each in ended or each > below for each in arrived)
        assert all(seen.has_outcome(1, each) for each in ended)
        assert not any(seen.has_outcome(1, each) for each in arrived - ended if each > below)
    assert bool(changes) == bool(ended)


def test_the_mark_follows_the_first_message_without_an_end() -> None:
    seen = Watermarks({1: Watermark(9)})
    for number in (10, 12, 11, 14):
        seen.note_arrival(1, number)
    below: list[int] = []
    for number in (11, 10, 14, 12):
        seen.note_result(Removed(1, number))
        below.append(seen.by_place()[1])
    assert below == [9, 11, 11, 14]
    assert seen.marks() == {1: Watermark(14)}


def test_the_mark_of_a_guild_stands_where_the_bot_met_it() -> None:
    changes: list[None] = []
    seen = Watermarks(on_change=lambda: changes.append(None))
    since = 1_800_000_000 << 22
    seen.note_guild(5, snowflake_time(since))
    seen.note_guild(5, snowflake_time(since) + 60.0)  # after a reconnect
    assert seen.by_place() == {-5: since}
    assert len(changes) == 1
    seen.note_guild(6, 0.0)  # a clock from before there was Discord
    assert seen.by_place()[-6] == 0


def test_marks_of_places_that_fell_quiet_are_dropped_but_not_those_with_work_nor_a_guilds() -> None:
    minute = 60_000 << 22
    old, late, newest = message(minute), message(10 * minute), 11 * minute
    marks = {
        1: Watermark(1),
        2: Watermark(1, {5}),
        4: Watermark(late.id),
        5: Watermark(1, {late.id}),
        6: Watermark(newest),
        -7: Watermark(1),
    }
    seen = Watermarks(marks)
    seen.note_arrival(3, old.id)
    seen.forget_quiet(120)
    assert sorted(seen.marks()) == [-7, 3, 4, 5, 6]


def test_ends_in_unknown_places_change_nothing() -> None:
    seen = Watermarks()
    seen.note_result(Removed(3, 5))
    assert (seen.by_place(), seen.has_outcome(3, 5)) == ({}, False)


# State files


@QUICKLY
@given(
    st.dictionaries(st.integers(1), st.builds(Watermark, st.integers(0), st.frozensets(st.integers(0)).map(set))),
    st.builds(
        Spent,
        st.integers(0),
        st.integers(0),
        st.integers(0),
        st.dictionaries(st.text(), st.lists(st.floats(0, 1e10), min_size=1).map(deque[float])),
    ),
)
def test_marks_and_budgets_read_back_as_written(marks: dict[int, Watermark], spent: Spent) -> None:
    class InMemory:
        def __init__(self, content: bytes) -> None:
            self.content = content

        def read_text(self, **_: str) -> str:
            return self.content.decode()

    def path(content: bytes) -> Path:
        return InMemory(content)  # pyright: ignore[reportReturnType] (all that is asked of the path)

    assert read_watermarks(path(render_watermarks(marks))) == marks
    assert read_spent(path(render_spent(spent))) == spent


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"x": 1}', "null", '{"1": {"below": "x", "done": []}}', "\x00\xff"])
def test_damaged_state_is_taken_for_empty(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(damage)
    assert read_watermarks(path) == {}
    assert read_spent(path) == Spent()
    assert read_posts(tmp_path / "none.jsonl") == []


def test_one_damaged_mark_does_not_cost_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "seen.json"
    path.write_text('{"1": {"below": "5", "done": ["7"]}, "2": {"below": []}}')
    assert read_watermarks(path) == {1: Watermark(5, {7})}
    assert "place '2' is damaged" in caplog.text


@pytest.mark.parametrize("damage", ['{"begun": []}', '{"day": "x"}', '{"begun": {"1": 5}}'])
def test_damaged_budgets_start_at_zero(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "usage.json"
    path.write_text(damage)
    assert read_spent(path) == Spent()


def test_a_post_with_an_id_that_is_none_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    lines = (render_post(replace(post(number, 10), asker_id=number)) for number in (1, -1, 2**64, 2**64 - 1))
    path.write_bytes(b"".join(lines))
    posts = Posts(read_posts(path))
    assert [posts.find(number) is not None for number in (1, -1, 2**64, 2**64 - 1)] == [True, False, False, True]


async def test_posts_are_kept_and_a_torn_line_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "state" / "posts.jsonl"
    posts = Posts(path=path)
    await posts.add(post(1, 10))
    await posts.add(post(2, 10))
    with path.open("a") as file:
        file.write('{"at": 3.0, "messag')
    assert read_posts(path) == [post(1, 10), post(2, 10)]
    assert "line 3" in caplog.text
    await Posts(path=path).add(post(3, 10))
    assert read_posts(path) == [post(1, 10), post(2, 10), post(3, 10)]


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\x1e", "\r\n"])
async def test_a_post_is_read_back_whatever_line_ends_its_question_has(
    tmp_path: Path, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "posts.jsonl"
    asked = [replace(post(1, 10), question=f"It says{end}E7."), post(2, 10)]
    posts = Posts(path=path)
    for each in asked:
        await posts.add(each)
    assert read_posts(path) == asked
    assert not caplog.messages


async def test_a_post_that_cannot_be_noted_down_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await Posts(path=tmp_path).add(post(1, 10))
    assert "was not recorded" in caplog.text


def test_ids_of_people_who_opted_out_may_be_numbers_or_texts(tmp_path: Path) -> None:
    path = tmp_path / "opt-outs.json"
    assert json_state.read_ids(path) == set()
    path.write_text(json.dumps(["5", 6]))
    assert json_state.read_ids(path) == {5, 6}
    assert json_state.render_ids({10, 9}) == b'[\n"9",\n"10"\n]\n'


# Context, of messages from before the start; test_context.py has those that were followed


def gathering(server: FullList, depth: int = 20) -> Context:
    history = History(server)
    history.observe(Ready(EPOCH, 1, "M"))
    return Context(history, people_of(TEAM, frozenset(), server), ConversationTracker(), ContextRules(depth))


async def test_a_long_thread_of_replies_costs_at_most_five_calls() -> None:
    """Pitfall 30."""
    thread = Place(7, PlaceKind.THREAD, guild_id=5, parent_id=1)
    messages = [message(8, ANNA, place_id=7)]
    for number in range(9, 8 + 200):
        author = (ANNA, BEN, TESS)[number % 3]
        messages.append(message(number, author, place_id=7, to=number - 1))
    server = FullList.of([message(7, place_id=1), *messages])
    context = gathering(server)
    found = await context.thread(thread)
    replies = await context.replies(messages[-1:])
    assert [each.id for each in found] == list(range(7, 208))
    assert {each.id for each in replies} <= {each.id for each in found}
    await context.conversation(found, frozenset({207}), {})
    assert len(server.calls) <= 5


async def test_a_chain_of_replies_is_followed_to_its_depth_and_no_further() -> None:
    chain = [message(1)] + [message(number, (ANNA, BEN)[number % 2], to=number - 1) for number in range(2, 40)]
    context = gathering(FullList.of(chain), depth=20)
    assert [each.id for each in await context.replies(chain[-1:])] == list(range(19, 40))


async def test_each_message_on_a_chain_is_widened_by_its_authors_adjacent_ones() -> None:
    said = [
        message(1, BEN),
        message(2, ANNA, at=EPOCH - 400),
        message(3, ANNA),
        message(4, ANNA, to=1),
        message(5, ANNA),
        message(6, BEN),
        message(7, ANNA),
        message(9, TESS, to=4),
    ]
    context = gathering(FullList.of(said))
    assert [each.id for each in await context.replies(said[-1:])] == [1, 3, 4, 5, 9]


async def test_replies_out_of_a_thread_are_followed_and_each_message_appears_once() -> None:
    thread = Place(7, PlaceKind.THREAD, guild_id=5, parent_id=1)
    elsewhere = message(3, BEN)
    inside = replace(message(9, ANNA, place_id=7), reply_to=message(0, to=3).reply_to)
    context = gathering(FullList.of([elsewhere, message(7, place_id=1), message(8, place_id=7), inside]))
    assert [each.id for each in await context.thread(thread)] == [3, 7, 8, 9]


async def test_a_reply_to_what_is_gone_ends_the_chain() -> None:
    said = [message(2, to=1), message(3, BEN, to=2)]
    assert [each.id for each in await gathering(FullList.of(said)).replies(said[-1:])] == [2, 3]


async def test_a_failed_look_up_is_raised_and_not_taken_for_the_end_of_a_chain() -> None:
    """Pitfall 28."""
    server = FullList.of([])
    server.broken = True
    with pytest.raises(LookupFailed):
        await gathering(server).replies([message(2, to=1)])


async def test_roles_of_turns_and_what_is_left_out() -> None:
    context = gathering(FullList.of([]))
    context._people.observe(Ready(EPOCH, 1, "M"))
    said = [
        message(1, ANNA),
        message(2, TESS),
        message(3, Author(1, "M", is_bot=True)),
        message(4, Author(9, "other", is_bot=True)),
        replace(message(5), text=" "),
    ]
    turns = (await context.conversation(said, frozenset({1}), {})).turns
    assert [(turn.role, turn.from_team, turn.asked_now) for turn in turns] == [
        ("user", False, True),
        ("assistant", True, False),
        ("assistant", False, False),
    ]


async def test_replies_in_a_replay_come_from_the_recording() -> None:
    history = History(None)
    history.observe(Posted(0.0, message(2, BEN, to=1), quoted=message(1)))
    context = Context(history, people_of(TEAM, frozenset(), None), ConversationTracker(), ContextRules())
    assert [each.id for each in await context.replies([message(3, to=2)])] == [1, 2, 3]
