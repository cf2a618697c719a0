"""What pages show, made of values: answers, knowledge and cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboard import views
from dashboard.display import HIDDEN_FILE, DisplayRules, ago, duration, link_to, size, whole_duration, without_invisible
from dashboard.flow import StepDuration
from reporting.cost import Expense, Price, Prices, costs
from reporting.reading import TimeSpan, VotedQuestion
from services.llm import StepTokens
from services.search import NOTHING
from tests.dashboard.made import AT, CAPTURED, FOUND, PAIR, PRICE, REPLIED, UNANSWERED, FakeTeam, showing

ENTRIES = [REPLIED, UNANSWERED, CAPTURED]


def test_rows_are_newest_first_with_pseudonyms_and_what_became_of_each() -> None:
    newest, _, oldest = views.part_rows(ENTRIES, showing())
    assert (newest.kind, newest.result, newest.who) == ("capture", "captured", "46629f10")
    assert (oldest.id, oldest.result, oldest.took, oldest.tokens) == ("a1", "replied", "1.5 s", 2310)
    assert oldest.where == "#channel-20"
    assert oldest.excerpt == ""


def test_what_only_points_says_so() -> None:
    assert views.part_row(replace(REPLIED, level="point"), showing()).reason == "only points"


@pytest.mark.parametrize(
    ("query", "texts", "ids"),
    [
        ("captured", False, ["c1"]),
        ("NO answer", False, ["b1"]),
        ("channel-20 restore.md", False, ["b1", "a1"]),
        ("quota", False, []),  # a word of a message must not be found where messages are not shown
        ("quota", True, ["b1"]),
        ("anna-private", False, []),
        ("anna-private", True, ["a1"]),
        ("qa_20260201", False, ["c1"]),
    ],
)
def test_a_search_finds_what_is_shown(query: str, texts: bool, ids: list[str]) -> None:
    assert [row.id for row in views.part_rows(ENTRIES, showing(texts=texts), query)] == ids


def test_parts_are_in_groups_replies_first() -> None:
    chatter = replace(UNANSWERED, question="", reason="not answerable")
    entries = [chatter, replace(CAPTURED, result="skipped"), REPLIED, UNANSWERED, replace(UNANSWERED, result="failed")]
    assert [views.group_of(entry) for entry in entries] == ["others", "captures", "replies", "unanswered", "unanswered"]
    assert next(iter(views.GROUPS)) == views.REPLIES
    assert {*map(views.group_of, entries), "all"} == set(views.GROUPS)


def test_votes_stand_beside_the_answer_that_they_are_about() -> None:
    vote = VotedQuestion(99, AT, "", (), 2, 1, asked_id=REPLIED.message_ids[-1])
    unknown = replace(vote, asked_id=None, ups=7)
    rows = views.part_rows(ENTRIES, showing(), votes=[unknown, vote])
    assert [row.votes for row in rows] == ["", "", "2 up, 1 down"]
    assert views.part_view(REPLIED, (), showing(), vote).row.votes == "2 up, 1 down"
    assert views.find_voted_part(ENTRIES, vote) is REPLIED
    assert views.find_voted_part(ENTRIES, unknown) is None


def test_the_time_taken_is_that_of_the_work() -> None:
    steps = (StepDuration("gate", 1.0), StepDuration("hold", 40.0), StepDuration("generate", 2.5))
    assert views.work_seconds(replace(REPLIED, seconds=900.0), steps) == 3.5
    held = replace(REPLIED, seconds=42.0, path={"hold": {"seconds": 40.0}})
    assert views.work_seconds(held, ()) == 2.0
    assert views.work_seconds(replace(held, path={"hold": {"seconds": "odd"}}), ()) == 42.0
    assert views.work_seconds(replace(REPLIED, path={"hold": 3}), ()) == 1.5
    # A recording without a model takes none of its own time.
    assert views.part_row(replace(REPLIED, seconds=0.0), showing()).took == ""


def test_a_path_names_each_step_with_its_decision_its_time_and_its_tokens() -> None:
    took = (
        StepDuration("gather", 0.002),
        StepDuration("gate", 0.25),
        StepDuration("generate", 1.0),
        StepDuration("generate", 0.5),
    )
    view = views.part_view(REPLIED, took, showing())
    steps = {step.name: step for step in view.steps}
    assert list(steps) == ["gather", "gate", "select", "load", "tools", "generate", "verify"]
    assert (steps["gate"].took, steps["gate"].tokens) == ("250 ms", "100 + 10")
    assert [fact.value for fact in steps["gate"].facts] == ["yes", "yes", "it is about restoring"]
    assert [(each.source, each.score, each.chosen) for each in steps["select"].ranked] == [
        ("kb:restore.md", "0.91", True),
        ("kb:faq.md", "0.40", False),
    ]
    assert steps["generate"].took == "1.5 s"
    assert steps["tools"].facts[0].value == "search"
    assert view.asked_at == "https://discord.com/channels/1/20/162"
    assert view.sent_to == "https://discord.com/channels/1/162"


def test_texts_and_names_of_peoples_files_are_shown_only_where_that_is_asked_for() -> None:
    hidden, shown = (views.part_view(REPLIED, (), showing(texts=texts)) for texts in (False, True))
    assert (hidden.question, hidden.reply) == (None, None)
    assert shown.question == REPLIED.question
    assert shown.reply == REPLIED.reply
    for view, file, issues in (
        (hidden, "a file of the thread", "1"),
        (shown, "anna-private.log:7", "it says restore twice"),
    ):
        facts = {(step.name, fact.name): fact.value for step in view.steps for fact in step.facts}
        assert facts["generate", "citations"] == f"kb:restore.md, {file}"
        assert facts["verify", "issues"] == issues
    assert "anna" not in str(hidden)


def test_odd_paths_are_shown_as_far_as_they_go() -> None:
    entry = replace(REPLIED, path={"select": {"ranked": [["kb:a", "x"], ["kb:b"]]}, "odd": 7, "load": {"loaded": []}})
    steps = {step.name: step for step in views.part_view(entry, (), showing()).steps}
    assert steps["select"].ranked == ()
    for ranked in (3, {"a": 1}, [7], "ab", [["kb:a", 1, 2]]):
        odd = replace(REPLIED, path={"select": {"ranked": ranked, "selected": 5}})
        assert views.ranked_of(odd, showing()) == ()
    some = replace(REPLIED, path={"select": {"ranked": [["kb:a", 1], ["kb:b"]], "selected": 5}})
    assert views.ranked_of(some, showing()) == (("kb:a", "1.00", False),)
    assert steps["odd"].facts == ()
    assert steps["load"].facts[0].value == "none"


def test_one_part_is_found_by_its_id() -> None:
    assert views.find_part(ENTRIES, "b1") is UNANSWERED
    assert views.find_part(ENTRIES, "ff") is None
    assert views.id_of(replace(REPLIED, message_ids=())) == "0"


def test_sources_tell_state_size_age_and_use_and_troubled_ones_come_first() -> None:
    good = views.KnownSource("kb:restore.md", "file", "indexed", False, 2048, AT - 7200, "About", AT - 60)
    bad = views.KnownSource("kb:https://example.org/a", "url", "not fetched: error", True, None, None, "")
    first, second = views.source_rows([good, bad], views.uses(ENTRIES), AT)
    assert (first.url, first.size, first.read, first.changed, first.used) == ("https://example.org/a", "–", "–", "–", 0)
    assert (second.url, second.size, second.read, second.changed, second.used) == (
        "",
        "2 KiB",
        "1 min ago",
        "2 h ago",
        2,
    )


def test_sources_are_filtered_by_words_and_state() -> None:
    good = views.KnownSource("kb:restore.md", "file", "indexed", False, 2048, AT, "About backups")
    bad = views.KnownSource("kb:https://example.org/a", "url", "not fetched: HTTP 404", True, None, None, "")
    rows = views.source_rows([good, bad], views.uses(ENTRIES), AT)

    def chosen(query: str, state: str = "") -> list[str]:
        return [row.id for row in views.chosen_sources(rows, query, state)]

    assert chosen("") == [bad.id, good.id]
    assert chosen("BACKUPS restore") == [good.id]
    assert chosen("404") == [bad.id]
    assert chosen("", "failing") == [bad.id]
    assert chosen("", "unused") == [bad.id]
    assert chosen("", "nonsense") == [bad.id, good.id]
    assert set(views.SOURCE_FILTERS) == {"", "failing", "unused"}


def test_a_search_is_shown_as_it_is_with_its_signs() -> None:
    view = views.search_view(FOUND, showing())
    assert (view.level, view.confidence, view.more) == ("answer", "60%", 0)
    assert [(hit.source, hit.score, hit.meaning, hit.words) for hit in view.hits] == [
        ("kb:restore.md", "0.90", "0.50", "1.25"),
        ("team:quota.txt", "0.70", "0.50", "1.25"),
    ]
    assert [hit.headings for hit in view.hits] == ["Guide › Quotas", ""]  # topics are made of messages
    assert [hit.text[:7] for hit in view.hits] == ["Restore", ""]
    assert showing().source("kb:diary-of-anna.log:7") == HIDDEN_FILE  # a file may be called so
    assert views.search_view(FOUND, showing(texts=True)).hits[1].text == "My quota is full"
    assert views.search_view(NOTHING, showing()).why == []


def test_long_passages_are_cut_and_words_alone_are_told() -> None:
    signals = FOUND.signals
    assert signals is not None
    long = FOUND.hits[0]._replace(passage=FOUND.hits[0].passage._replace(text="x" * 5000), cosine=None)
    view = views.search_view(FOUND._replace(hits=(long,), signals=signals._replace(best_cosine=None)), showing())
    assert len(view.hits[0].text) < 1000
    assert view.hits[0].meaning == "–"
    assert view.why[0][1] == "words only"


async def test_topics_have_their_pairs_and_where_each_came_from() -> None:
    team = FakeTeam()
    held = await team.overview()
    shown = views.team_view(held, views.uses(ENTRIES), showing())
    assert shown.summary == "1 topic with 2 conversations; 4 captured in all; 1 to be filed; 1 could not be filed"
    assert [(topic.name, topic.pairs, topic.description) for topic in shown.topics] == [("quota", 2, "")]
    view = views.topic_view(held, "quota", team.address, showing())
    assert view is not None
    assert [pair.link for pair in view.pairs] == ["https://discord.com/channels/1/20/2", ""]
    assert view.pairs[0].notes == [
        "replaces qa_20250101_000000.000000",
        "superseded in part by qa_20260202_031057.000000",
    ]
    assert "quota is full" not in str(view)
    told = views.topic_view(held, "quota", team.address, showing(texts=True))
    assert told is not None
    assert told.pairs[0].turns[0].text == PAIR.turns[0].text
    assert told.pairs[0].notes[1].endswith(": snapshots are pruned by themselves")
    assert views.topic_view(held, "none", team.address, showing()) is None


def test_cost_adds_up_by_day_step_and_channel() -> None:
    days = {
        "2026-02-01": {"gate": StepTokens(1, 1000, 100)},
        "2026-02-02": {"gate": StepTokens(2, 1_000_000, 0), "summarise": StepTokens(1, 500, 500)},
    }
    period = TimeSpan(AT - 30 * 86_400, AT + 86_400)
    view = views.cost_view(costs(days, ENTRIES, period, Prices(PRICE, Price(0.0, 20.0))), showing())
    assert (view.total.calls, view.total.prompt, view.total.completion) == (4, 1_001_500, 600)
    assert view.total.money == "2.01"
    assert [row.money for row in view.by_step] == ["2.00", "0.01"]
    assert [(row.name, row.share) for row in view.by_day] == [("2026-02-02", 100), ("2026-02-01", 0)]
    assert [(row.name, row.calls) for row in view.by_step] == [("gate", 3), ("summarise", 1)]
    assert [(row.name, row.calls, row.prompt) for row in view.by_channel] == [
        ("#channel-20", 6, 200),
        ("all else", 0, 1_001_300),
    ]


def test_channels_of_one_name_have_a_row_each() -> None:
    spent = costs({}, [], TimeSpan(AT, AT + 1), Prices())
    spent.channels = {1: Expense(1, 100, 0), 2: Expense(1, 900, 0)}
    named = DisplayRules(False, str, lambda _: "#help")
    assert [(row.name, row.prompt) for row in views.cost_view(spent, named).by_channel] == [
        ("#help", 100),
        ("#help", 900),
    ]


def test_without_a_price_there_is_no_money_and_of_nothing_there_is_nothing() -> None:
    days = {"2026-02-01": {"gate": StepTokens(1, 1000, 100), "summarise": StepTokens(1, 10, 0)}}
    period = TimeSpan(AT - 30 * 86_400, AT + 86_400)
    view = views.cost_view(costs(days, [], period, Prices(answering=PRICE)), showing())
    assert (view.has_prices, view.total.money, [row.money for row in view.by_step]) == (False, "", ["0.0030", ""])
    nothing = views.cost_view(costs({}, [], period, Prices()), showing())
    assert (nothing.by_day, nothing.by_channel) == ([], [])


def test_durations_sizes_and_ages_are_short() -> None:
    assert [duration(each) for each in (None, 0.0004, 1.25, 90)] == ["–", "0 ms", "1.2 s", "1.5 min"]
    assert [duration(each) for each in (3600, 200_000)] == ["1.0 h", "2.3 d"]
    assert [whole_duration(each) for each in (59, 3599, 3600, 86_399, 172_800)] == ["", "59 min", "1 h", "23 h", "2 d"]
    assert [size(each) for each in (None, 5, 2048, 3 * 1024 * 1024)] == ["–", "5 B", "2 KiB", "3.0 MiB"]
    assert [ago(AT - past, AT) for past in (5, 120, 90_000, -5)] == ["just now", "2 min ago", "1 d ago", "just now"]
    assert link_to(None, 5) == ""
    assert without_invisible("a\u202eb\x1b\n") == "ab\n"


def test_who_is_mentioned_in_a_question_is_a_pseudonym() -> None:
    most = "<@18446744073709551615> <@99999999999999999999>"
    asked = replace(UNANSWERED, question=f"<@!171> is it there, {most}?")
    row = views.part_row(asked, showing(texts=True))
    assert row.excerpt.startswith("@abababab is it there, @ffffffff @")
    assert "<@" not in (views.part_view(asked, (), showing(texts=True)).question or "<@")
    assert views.part_row(asked, showing()).excerpt == ""
    assert views.part_rows([asked], showing(texts=True), "abababab")
