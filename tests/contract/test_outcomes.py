"""Every outcome and reason of the contract (section 9), each from a scene in which a user would expect it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from model.messages import PlaceKind
from services.assistant.answering import GatingResult
from services.llm.endpoint import Unavailable
from tests.world import (
    ANNA,
    BEN,
    GUIDE,
    HELP,
    PAGE,
    ROBOT,
    TESS,
    Script,
    Shelf,
    World,
    answer,
    snowflake,
    thread,
)

CHATTER = GatingResult(is_question=False, is_answerable=True, rewrite_query=None, reason="chatter")
UNCLEAR = GatingResult(is_question=True, is_answerable=False, rewrite_query=None, reason="unclear")


async def asked(world: World, text: str = "How do I install it?") -> list[str]:
    """The story of one question, up to its end."""
    world.says(ANNA, text)
    await world.wait(300)
    return world.story


async def test_a_question_is_answered_once_the_asker_falls_quiet(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    message = world.says(ANNA, "How do I install it?")
    await world.wait(59.9)
    assert world.story == []
    await world.wait(0.2)
    assert world.story == ["replied"]
    assert world.replies == ["About: How do I install it?"]
    assert world.board.threads == [(HELP, message.id, "How do I install it?")]
    (outcome,) = world.outcomes
    assert (outcome.sources, outcome.reply_place_id, outcome.llm_calls) == ((GUIDE,), message.id, 3)
    assert (outcome.at, outcome.part.closed_at) == (message.at + 60, message.at + 60)


async def test_a_team_members_reply_is_captured(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    question = world.says(ANNA, "Why?")
    await world.wait(61)
    world.says(TESS, "Because.", to=question)
    await world.wait(61)
    assert world.story == ["replied", "captured"]
    assert [capture.messages[0].message_id for capture in world.captures] == [question.id]


@pytest.mark.parametrize("verdict", [CHATTER, UNCLEAR])
async def test_chatter_and_unclear_questions_are_not_answerable(tmp_path: Path, verdict: GatingResult) -> None:
    world = await World.begin(tmp_path, script=Script(verdict=verdict))
    assert await asked(world) == ["skipped: not answerable"]
    assert world.script.steps == ["gate"]


async def test_no_selected_source_means_no_sources(tmp_path: Path) -> None:
    assert await asked(await World.begin(tmp_path, script=Script(picks=[]))) == ["skipped: no sources"]


async def test_an_empty_library_means_no_sources_and_costs_no_selection(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, shelf=Shelf({}))
    assert await asked(world) == ["skipped: no sources"]
    assert world.script.steps == ["gate"]


async def test_invented_ids_are_dropped_and_the_others_serve(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Pitfalls 17 and 44."""
    invented = "kb:http://169.254.169.254/latest"
    world = await World.begin(tmp_path, script=Script(picks=[invented, GUIDE, "kb:../.env", GUIDE]))
    assert await asked(world) == ["replied"]
    assert world.shelf.loaded == [GUIDE]
    assert "2 ids that are in no index" in caplog.text


async def test_invented_ids_alone_mean_no_sources(tmp_path: Path) -> None:
    """Pitfall 44."""
    world = await World.begin(tmp_path, script=Script(picks=["kb:made-up.md"]))
    assert await asked(world) == ["skipped: no sources"]
    assert world.shelf.loaded == []


async def test_selection_is_cut_to_the_configured_number_in_the_models_order(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, script=Script(picks=[PAGE, GUIDE]), ai_response={"max_sources": 1})
    assert await asked(world) == ["replied"]
    assert world.shelf.loaded == [PAGE]


async def test_one_source_that_cannot_be_loaded_is_left_out(tmp_path: Path) -> None:
    """Pitfall 44."""
    world = await World.begin(tmp_path, script=Script(picks=[PAGE, GUIDE]), shelf=Shelf(missing=frozenset({PAGE})))
    assert await asked(world) == ["replied"]
    assert world.script.asked[-1].sources == (GUIDE,)


async def test_sources_of_which_none_can_be_loaded_are_unavailable(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, shelf=Shelf(missing=frozenset({GUIDE})))
    assert await asked(world) == ["skipped: sources unavailable"]


@pytest.mark.parametrize("text", [None, "", "  \n", "null", " Null "])
async def test_no_answer_in_the_sources_means_silence(tmp_path: Path, text: str | None) -> None:
    world = await World.begin(tmp_path, script=Script(answers=[answer(text)]))
    assert await asked(world) == ["skipped: no answer in sources"]
    assert world.board.threads == []


async def test_an_answer_of_nothing_but_a_foreign_link_is_no_answer(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, script=Script(answers=[answer("https://evil.example/")]))
    assert await asked(world) == ["skipped: no answer in sources"]


async def test_an_answer_without_citation_is_skipped_when_citations_are_required(tmp_path: Path) -> None:
    script = Script(answers=[answer("So.", "kb:invented.md")])
    world = await World.begin(tmp_path, script=script, ai_response={"require_citations": True})
    assert await asked(world) == ["skipped: no citation"]


async def test_an_invented_citation_is_dropped_and_the_selection_shown_instead(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, script=Script(answers=[answer("So.", "kb:invented.md")]))
    assert await asked(world) == ["replied"]
    assert world.outcomes[0].sources == (GUIDE,)


async def test_an_answer_that_is_too_long_is_asked_for_once_more(tmp_path: Path) -> None:
    script = Script(answers=[answer("x" * 101), answer("y" * 100)])
    world = await World.begin(tmp_path, script=script, ai_response={"max_answer_chars": 100})
    assert await asked(world) == ["replied"]
    assert [each.was_too_long for each in script.asked if each.step == "generate"] == [False, True]
    assert world.replies == ["y" * 100]


async def test_an_answer_that_is_too_long_twice_is_skipped(tmp_path: Path) -> None:
    script = Script(answers=[answer("x" * 101), answer("y" * 101), answer("short")])
    world = await World.begin(tmp_path, script=script, ai_response={"max_answer_chars": 100})
    assert await asked(world) == ["skipped: too long"]
    assert script.steps.count("generate") == 2


async def test_links_do_not_count_as_length_of_the_answer(tmp_path: Path) -> None:
    script = Script(picks=[PAGE], answers=[answer("x" * 100, PAGE)])
    world = await World.begin(tmp_path, script=script, ai_response={"max_answer_chars": 100})
    assert await asked(world) == ["replied"]
    assert world.replies == ["x" * 100 + "\n\nLinks:\n<https://docs.example/page>"]


async def test_links_are_kept_when_a_source_the_team_or_the_asker_gave_them(tmp_path: Path) -> None:
    text = (
        "See https://docs.example/more and https://team.example/t and https://asker.example/a, "
        "not [that](https://evil.example/x)."
    )
    world = await World.begin(tmp_path, script=Script(picks=[PAGE], answers=[answer(text)]))
    earlier = world.says(TESS, "https://team.example/t is down")
    await world.wait(301)
    world.says(ANNA, "What about https://asker.example/a ?", mentions=((1, "Millrace"),), to=earlier)
    await world.wait(100)
    assert world.story[-1] == "replied"
    assert world.replies[0].startswith(
        "See https://docs.example/more and https://team.example/t and https://asker.example/a, not that."
    )


@pytest.mark.parametrize(
    ("step", "script"),
    [
        ("gate", Script(verdict=Unavailable("down"))),
        ("select", Script(picks=Unavailable("down"))),
        ("generate", Script(answers=[Unavailable("down")])),
        ("verify", Script(later={"verify": Unavailable("down")})),
    ],
)
async def test_a_failing_model_means_no_reply_and_names_the_step(tmp_path: Path, step: str, script: Script) -> None:
    world = await World.begin(tmp_path, script=script, ai_response={"enable_verification": True})
    assert await asked(world) == [f"failed: Unavailable at {step}"]
    assert world.replies == []


async def test_a_bug_in_one_item_does_not_disturb_the_next(tmp_path: Path) -> None:
    script = Script(verdict=ZeroDivisionError("a bug"))
    world = await World.begin(tmp_path, script=script)
    await asked(world)
    script.verdict = Script().verdict
    await asked(world)
    assert world.story == ["failed: ZeroDivisionError at gate", "replied"]


async def test_the_chain_has_its_time_from_the_start_of_its_gate(tmp_path: Path) -> None:
    """Waiting for the asker's turn does not count, and neither does the quiet window."""
    script = Script(seconds={"generate": 150})
    world = await World.begin(tmp_path, script=script, ai_response={"graph_timeout_seconds": 200})
    world.says(ANNA, "First?")
    await world.wait(61)
    world.says(ANNA, "Second?")  # its window closes while the first is being answered
    await world.wait(600)
    assert world.story == ["replied", "replied"]


async def test_a_chain_that_takes_too_long_fails(tmp_path: Path) -> None:
    script = Script(seconds={"gate": 120, "generate": 120})
    world = await World.begin(tmp_path, script=script, ai_response={"graph_timeout_seconds": 200})
    message = world.says(ANNA, "How?")
    await world.wait(600)
    assert world.story == ["failed: TookTooLong at generate"]
    assert world.outcomes[0].at == message.at + 60 + 200


async def test_reply_mode_off_and_mention_narrow_what_is_answered(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, discord={"reply_mode": "off", "channels": {HELP: {"reply_mode": "mention"}}})
    world.says(ANNA, "Plain?")
    world.says(BEN, "Mentioned?", mentions=((1, "Millrace"),))
    world.says(ANNA, "Elsewhere?", where=12, mentions=((1, "Millrace"),))
    await world.wait(61)
    assert sorted(world.story) == ["replied", "skipped: reply mode", "skipped: reply mode"]


async def test_a_reply_to_the_bot_counts_as_a_mention(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, discord={"reply_mode": "mention"})
    first = world.says(ANNA, "First?", mentions=((1, "Millrace"),))
    await world.wait(61)
    history = world.parts.services.history
    reply = history.recent(first.id)[-1]
    world.says(ANNA, "And then?", where=first.id, to=reply)
    world.says(ANNA, "Nobody asked you.", where=HELP)
    await world.wait(61)
    assert sorted(world.story) == ["replied", "replied", "skipped: reply mode"]


async def test_the_bot_keeps_out_where_the_team_has_just_helped(tmp_path: Path) -> None:
    """Pitfall 63: with or without a reply; whoever begins something else is answered."""
    world = await World.begin(tmp_path)
    question = world.says(ANNA, "Why?")
    await world.wait(61)
    world.says(TESS, "Because.", to=question)
    await world.wait(119)
    world.says(ANNA, "But why?")
    world.says(BEN, "And I?")
    await world.wait(130)
    assert world.story == ["replied", "captured", "ignored: not addressed", "replied"]
    world.says(ANNA, "But how?")
    await world.wait(600)
    assert world.story[4:] == ["ignored: not addressed"]
    world.says(ANNA, "Something else?")
    await world.wait(61)
    assert world.story[5:] == ["replied"]


async def test_the_team_is_still_answering_when_it_helps_again_while_the_question_waits(tmp_path: Path) -> None:
    """Pitfall 34: the help that came after the question must not hide the help that came before it."""
    world = await World.begin(tmp_path, discord={"team_active_seconds": 900})
    question = world.says(ANNA, "Why?")
    await world.wait(61)
    world.says(TESS, "Because.", to=question)
    await world.wait(601)
    world.says(ANNA, "I see. And how?")
    await world.wait(10)
    world.says(TESS, "One more word on the why.", to=question)
    await world.wait(121)
    assert sorted(world.story) == ["captured", "captured", "replied", "skipped: team is answering"]


async def test_a_mention_brings_the_bot_in_although_the_team_is_helping(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    question = world.says(ANNA, "Why?")
    await world.wait(61)
    world.says(TESS, "Because.", to=question)
    await world.wait(10)
    world.says(ANNA, "Bot, why?", mentions=((1, "Millrace"),))
    await world.wait(61)
    assert sorted(world.story) == ["captured", "replied", "replied"]


async def test_other_bots_and_webhooks_are_neither_users_nor_team(tmp_path: Path) -> None:
    """Pitfall 23: not even one that is listed as a team member."""
    world = await World.begin(tmp_path, discord={"team_member_ids": [TESS.id, ROBOT.id]})
    question = world.says(ANNA, "Why?")
    world.says(ROBOT, "Is this a question?")
    world.says(ROBOT, "Because.", to=question)
    await world.wait(61)
    assert world.story == ["ignored: bot", "ignored: bot", "replied"]


async def test_system_messages_are_no_questions(tmp_path: Path) -> None:
    """Pitfall 31."""
    world = await World.begin(tmp_path)
    world.says(ANNA, "anna started a thread", is_system=True)
    await world.wait(61)
    assert world.story == ["ignored: system"]


async def test_what_is_empty_is_ignored(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.says(ANNA, " \n ")
    await world.wait(61)
    assert world.story == ["ignored: empty"]


async def test_talk_between_people_is_not_addressed_to_the_bot(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.opens(thread(snowflake(1.6e9), owner=BEN))
    world.says(TESS, "Good morning")
    world.says(ANNA, "Hello Ben", to=world.says(BEN, "Hello?"))
    world.says(ANNA, "Between us?", where=snowflake(1.6e9))
    await world.wait(61)
    assert sorted(world.story) == ["ignored: not addressed"] * 3 + ["replied"]


async def test_what_goes_on_between_people_is_left_to_them_without_a_reply_as_well(tmp_path: Path) -> None:
    """Pitfall 63: once they have begun to talk, the bot comes in when it is mentioned."""
    world = await World.begin(tmp_path)
    world.says(ANNA, "Hello Ben", to=world.says(BEN, "Hello?"))
    await world.wait(100)
    world.says(BEN, "How do you install it?")
    world.says(ANNA, "ben: with pip?")
    await world.wait(100)
    assert world.story[2:] == ["ignored: not addressed"] * 2
    world.says(BEN, "Can it be had with pip?", mentions=((1, "Millrace"),))
    await world.wait(61)
    assert world.story[4:] == ["replied"]


async def test_a_reply_to_another_bot_is_left_to_people(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.says(ANNA, "Why that?", to=world.says(ROBOT, "Build failed"))
    await world.wait(61)
    assert world.story == ["ignored: bot", "ignored: not addressed"]


async def test_denied_channels_and_their_threads_are_not_read(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, discord={"channel_denylist": [HELP]})
    world.opens(thread(77))
    world.says(ANNA, "Here?")
    world.says(ANNA, "In the thread?", where=77)
    world.says(ANNA, "There?", where=12)
    await world.wait(61)
    assert world.story == ["ignored: not addressed"] * 2 + ["replied"]


async def test_only_allowed_channels_are_read(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, discord={"channel_allowlist": [HELP]})
    world.says(ANNA, "Here?")
    world.says(ANNA, "There?", where=12)
    await world.wait(61)
    assert world.story == ["ignored: not addressed", "replied"]


async def test_private_talk_of_the_team_is_not_captured_unless_that_is_wanted(tmp_path: Path) -> None:
    """Pitfall 47."""
    world = await World.begin(tmp_path, discord={"capture_channels": [12]})
    for channel_id in (HELP, 12):
        history = world.parts.services.history
        world.opens(replace(history.place(channel_id), kind=PlaceKind.CHANNEL, public=False))
        world.says(TESS, "Because.", where=channel_id, to=world.says(ANNA, "Why?", where=channel_id))
    await world.wait(61)
    assert sorted(world.story) == [
        "cancelled: team answered",
        "cancelled: team answered",
        "captured",
        "ignored: not addressed",
    ]


async def test_a_capture_that_fails_is_one_failed_outcome(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.captures = None  # pyright: ignore[reportAttributeAccessIssue] (the harness's archive now raises)
    world.says(TESS, "Because.", to=world.says(ANNA, "Why?"))
    await world.wait(61)
    assert sorted(world.story) == ["cancelled: team answered", "failed: AttributeError at archive"]
