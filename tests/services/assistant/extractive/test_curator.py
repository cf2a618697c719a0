"""Sorting captures without a model."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.conversations import REPLY, Conversation, Image, Role, Turn
from services.assistant.curator import Curator, IntegrationResult
from services.assistant.extractive import curator as curator_module
from services.assistant.extractive import curator as subjects_module
from services.assistant.extractive.curator import ExtractiveCurator, Subject, TopicVectors, subject_of
from services.assistant.extractive.describing import ExtractiveTopicDescriber, describe_topic
from services.knowledge import PairTurn, Speaker, TopicBlock, topic_blocks
from services.knowledge.topic_files import read_topic
from services.llm.usage import Usage
from services.team.archive import REMOVED, Pair, is_exchange
from services.team.decisions import Actor
from services.team.topics import Topic
from tests.services.assistant.extractive.marlstow_team import ANSWERED
from tests.services.quickly import QUICKLY
from tests.team import pair

SKIPS = ("How do I skip a run while my usb disk is not mounted?", "Set unmounted = skip for that path in agent.toml.")
AGAIN = (
    "Is there a way to skip the run while the usb disk is unplugged and not mounted?",
    "Yes: set unmounted = skip for that path.",
)
PORTS = (
    "Which port must the firewall open for the server?",
    "Open port 8443 for agents; the web interface listens on 8080.",
)


class Shelf:
    """Topics in memory, as decisions would make them."""

    def __init__(self) -> None:
        self.topics: dict[str, list[Pair]] = {}
        self.curator = ExtractiveCurator(lambda: self.topics)

    async def files(self, one: Pair) -> str:
        """The topic that a pair goes into; empty when it is left out."""
        found = await self.curator.classify(one, [], Usage())
        if found.skip:
            return ""
        others = [each for each in self.topics.get(found.topic_name, []) if each.conversation_id != one.conversation_id]
        result = await self.curator.integrate(one, found.topic_name, others, Usage())
        for name, held in self.topics.items():
            gone = {each.id for each in held if each.conversation_id == one.conversation_id}
            self.topics[name] = [each for each in held if each.id not in gone | set(result.remove_ids)]
        if not result.skip:
            self.topics.setdefault(found.topic_name, []).append(one)
        return found.topic_name


async def integrated(new: tuple[str, str], *held: tuple[str, str]) -> IntegrationResult:
    curator: Curator = ExtractiveCurator(dict)
    pairs: Sequence[Pair] = [pair(number, *each) for number, each in enumerate(held)]
    return await curator.integrate(pair(9, *new), "topic", pairs, Usage())


async def test_what_is_alike_goes_into_one_topic_and_what_is_not_into_another() -> None:
    shelf = Shelf()
    first = await shelf.files(pair(1, *SKIPS))
    assert await shelf.files(pair(2, *PORTS)) != first
    assert await shelf.files(pair(3, *AGAIN)) == first
    assert shelf.curator.actor is Actor.EXTRACTIVE


async def test_a_new_topic_is_named_by_words_of_the_question_that_the_answer_takes_up() -> None:
    assert await Shelf().files(pair(1, *PORTS)) == "port-firewall-open-server"
    assert await Shelf().files(pair(1, *SKIPS)) == "skip-run-usb-disk"


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("Thanks a lot!", "You are welcome, have a nice day everybody."),
        ("It does not start, why?", "Which version is it? What does the log say?"),
        ("Why?", "Because the certificate of the server has expired."),
        ("How do I skip a run of the agent?", "No idea."),
        ("", "Set unmounted = skip for that path in agent.toml."),
    ],
)
async def test_what_would_help_nobody_else_is_skipped(asked: str, answered: str) -> None:
    assert await Shelf().files(pair(1, asked, answered)) == ""


async def test_a_link_is_an_answer() -> None:
    assert await Shelf().files(pair(1, "How do I set up the agent on Windows?", "https://docs.example/windows")) != ""


async def test_a_conversation_that_goes_on_stays_in_its_topic() -> None:
    shelf = Shelf()
    topic = await shelf.files(pair(1, *SKIPS, conversation=7))
    await shelf.files(pair(2, *PORTS))
    assert await shelf.files(pair(3, PORTS[0], PORTS[1], conversation=7)) == topic


async def test_what_a_topic_says_already_is_not_added() -> None:
    result = await integrated(SKIPS, PORTS, SKIPS)
    assert (result.skip, result.remove_ids) == (True, [])


async def test_a_fuller_answer_to_the_same_question_makes_the_older_one_obsolete() -> None:
    fuller = (SKIPS[0], f"{SKIPS[1]} It needs agent 3.3, and a log line says that the path was left out.")
    assert await integrated(fuller, SKIPS, PORTS) == IntegrationResult(skip=False, remove_ids=[pair(0).id])


async def test_a_newer_answer_to_the_same_question_holds() -> None:
    newer = (SKIPS[0], "That option is gone since version 4: disks that are missing are always left out.")
    assert (await integrated(newer, SKIPS)).remove_ids == [pair(0).id]


async def test_whoever_asks_again_does_not_cost_the_full_answer() -> None:
    """It stays, and the operator sees that there are two."""
    for thin in (
        "As I told somebody yesterday, it is in the FAQ.",
        "I told somebody yesterday that our FAQ covers runs.",
    ):
        result = await integrated((SKIPS[0], thin), SKIPS)
        assert (result.skip, result.remove_ids, [each.id for each in result.conflicts]) == (False, [], [pair(0).id])
    shown = (SKIPS[0], "Run `agent --skip`.")
    assert (
        await integrated((SKIPS[0], "I told somebody yesterday to read the FAQ about disks."), shown)
    ).remove_ids == []
    assert (await integrated((SKIPS[0], "That option no longer exists."), SKIPS)).remove_ids == [pair(0).id]


def among_others(number: int, asked: str, answered: str) -> Pair:
    """A pair in which another user has asked something before."""
    said = ((1, "ok?"), (2, asked), (50, answered))
    turns = tuple(PairTurn(Speaker.TEAM if who == 50 else Speaker.USER, text) for who, text in said)
    return replace(pair(number), message_ids=(1, 2, 3), author_ids=(1, 2, 50), turns=turns)


async def test_what_the_team_said_to_whom_is_not_known_replaces_nothing_and_stands_for_nothing() -> None:
    curator = ExtractiveCurator(dict)
    fuller = (SKIPS[0], f"{SKIPS[1]} It needs agent 3.3, and a log line says that the path was left out.")
    new = among_others(9, *fuller)
    assert await Shelf().files(new) != ""
    assert await curator.integrate(new, "topic", [pair(0, *SKIPS)], Usage()) == IntegrationResult(
        skip=False, remove_ids=[]
    )
    assert not (await curator.integrate(pair(9, *SKIPS), "topic", [among_others(0, *fuller)], Usage())).skip
    assert (await curator.integrate(new, "topic", [among_others(0, *fuller)], Usage())).skip


ENABLES = ("How do I enable telemetry of the agent on Windows?", "Set telemetry in agent.toml, then restart the agent.")


@pytest.mark.parametrize(
    ("held", "new"),
    [
        (ENABLES, "Do not set telemetry in agent.toml, and restart the agent."),
        (("How long does the agent keep logs on disk?", "For 5 days."), "For 7 days."),
        (
            ("How do I check the agent's port settings?", "Run `agent check`, it prints them."),
            "Run `agent show`, it prints them.",
        ),
        (
            ("Where can I read the agent's manual for Windows servers?", "Here: https://a.example/1"),
            "Here: https://a.example/2",
        ),
    ],
)
async def test_a_correction_in_nearly_the_same_words_is_filed(held: tuple[str, str], new: str) -> None:
    result = await integrated((held[0], new), held)
    assert (result.skip, result.remove_ids) == (False, [pair(0).id])


@pytest.mark.parametrize(
    "asked",
    [
        "How do I disable telemetry of the agent on Windows?",
        "How do I enable telemetry of the agent on Linux?",
        "How do I enable telemetry of the agent on Windows 11?",
    ],
)
async def test_the_answer_to_another_question_costs_no_answer(asked: str) -> None:
    fuller = f"{ENABLES[1]} It takes a minute."
    assert await integrated((asked, fuller), ENABLES) == IntegrationResult(skip=False, remove_ids=[])


TURNED = "Open the settings page of the project and choose {} in the list of actions, then restart the service."


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("How do I turn on the alarm in the panel?", "How do I turn off the alarm in the panel?"),
        ("How do I opt in to tracking for the project?", "How do I opt out of tracking for the project?"),
        (
            "How do I move the mill data from Postgres to MySQL?",
            "How do I move the mill data from MySQL to Postgres?",
        ),
        ("How do I delete all wheels of the mill?", "How do I delete one wheel of the mill?"),
        (
            "How do I enable the wheel option of the mill?",
            "How do I enable the wheel option of the mill for all users?",
        ),
        ("How do I reset the cache on the server?", "How do I reset the cache on the server? How do I move it?"),
        (
            "How do I enable the wheel option in the panel?",
            "How do I enable the wheel option in the panel or the lever?",
        ),
    ],
)
async def test_a_question_that_differs_in_a_particle_direction_or_matter_costs_no_answer(
    first: str, second: str
) -> None:
    result = await integrated((second, TURNED.format("Wheel")), (first, TURNED.format("Lever")))
    assert (result.skip and "?" not in second[:-1], result.remove_ids) == (False, [])


async def test_what_asks_more_and_answers_that_replaces_nothing_though_it_says_that_something_has_changed() -> None:
    asked = "How do I enable the wheel option of the mill in the panel?"
    held = (asked, "Open the settings and choose Wheel.")
    more = asked.replace("mill", "mill lever")
    about_it = await integrated((more, "The lever has moved since version 4: run `lever` and delete the folder."), held)
    assert (about_it.skip, about_it.remove_ids, [each.id for each in about_it.conflicts]) == (False, [], [pair(0).id])
    of_it = await integrated((more, "That has changed: open the menu and choose Start."), held)
    assert (of_it.skip, of_it.remove_ids) == (False, [pair(0).id])


@pytest.mark.parametrize(
    "newer",
    ["Choose Refresh in the list, not Wipe.", "Actually, choose Wipe and not Refresh.", "Choose Wipe in the menu."],
)
async def test_what_says_the_same_words_otherwise_is_no_repetition(newer: str) -> None:
    asked = "How do I reset the cache on the server?"
    held = (asked, "Choose Wipe in the list, not Refresh.")
    assert not (await integrated((asked, newer), held)).skip
    assert (await integrated((asked, "Choose Wipe there, and not Refresh."), held)).skip


@pytest.mark.parametrize("begin", ["", "That has changed. "])
async def test_a_newer_answer_to_the_same_question_with_another_word_replaces_the_older_one(begin: str) -> None:
    asked = "How do I reset the cache on the server?"
    result = await integrated((asked, begin + TURNED.format("Refresh")), (asked, TURNED.format("Wipe")))
    assert (result.skip, result.remove_ids) == (False, [pair(0).id])


async def test_another_question_leaves_a_topic_as_it_is() -> None:
    assert await integrated(PORTS, SKIPS) == IntegrationResult(skip=False, remove_ids=[])


async def test_a_days_answers_make_neither_one_topic_nor_one_for_each() -> None:
    shelf = Shelf()
    topics = Counter([await shelf.files(pair(number, *each)) for number, each in enumerate(ANSWERED)])
    assert topics.pop("") <= len(ANSWERED) // 4
    assert 3 <= len(topics) <= len(ANSWERED) * 2 // 3


@QUICKLY
@given(st.lists(st.lists(st.lists(st.integers(0, len(ANSWERED) - 1), max_size=4), min_size=3, max_size=3), max_size=6))
def test_vectors_that_are_kept_are_those_that_are_made_anew(steps: list[list[list[int]]]) -> None:
    known, asked = TopicVectors(), subject_of(pair(99, *PORTS))
    for step in steps:
        names = "abc" if len(step[0]) % 2 else "cba"
        topics = {name: [pair(n, *ANSWERED[n]) for n in held] for name, held in zip(names, step, strict=True)}
        fresh = TopicVectors()
        fresh.update(topics)
        known.update(topics)
        assert known.nearest(asked) == fresh.nearest(asked)
        assert known.name(asked) == fresh.name(asked)


async def test_a_pair_is_read_when_it_comes_and_not_again_with_each_of_those_that_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = Counter[str]()
    real = subjects_module.subject_of

    def counted(one: Pair) -> Subject:
        read[one.id] += 1
        return real(one)

    for module in (curator_module, subjects_module):
        monkeypatch.setattr(module, "subject_of", counted)
    topics: dict[str, list[Pair]] = {"things": []}
    curator = ExtractiveCurator(lambda: topics)
    for number in range(20):
        new = pair(number, *ANSWERED[number % len(ANSWERED)])
        await curator.classify(new, [], Usage())
        await curator.integrate(new, "things", topics["things"], Usage())
        topics["things"].append(new)
    assert max(read.values()) <= 4


async def test_images_are_named_as_nobody_looks_at_them() -> None:
    images = (Image("a.png", "image/png", b""), Image("b.png", "image/png", b""))
    conversation = Conversation((Turn(Role.USER, "See", images), Turn(Role.ASSISTANT, "So.")))
    curator = ExtractiveCurator(dict)
    result = await curator.summarise_images(conversation, (5, 6), Usage())
    assert [(each.message_id, each.image_index, each.summary) for each in result.summaries] == [
        ("5", 0, "a.png"),
        ("5", 1, "b.png"),
    ]


async def test_a_topic_is_described_by_what_was_asked_and_its_telling_words() -> None:
    text = (
        "--- QA ---\nid: qa_20260201_031057.000000\ntimestamp: 2026-02-01T03:10:57.000000Z\n"
        f"User: Hi all\n  {SKIPS[0]}\nTeam: {SKIPS[1]}\n\n"
    )
    describer = ExtractiveTopicDescriber()
    said = await describer.summarize_for_kb_index("team:usb-disk.txt", text, 5)
    assert said.startswith(f"Usb disk: {SKIPS[0]}")
    assert "Mentions" in said
    assert "agent.toml" in said
    assert "qa_2026" not in said
    assert await describer.summarize_for_kb_index("team:empty.txt", "", 5) == "Empty."
    assert describer.key


def test_several_questions_are_described_by_what_most_of_them_share() -> None:
    asked = ("How do I skip the usb disk?", "Why is my usb disk not found?", "Can two people use one usb disk?")
    text = "".join(
        f"--- QA ---\nid: qa_20260201_031057.00000{at}\ntimestamp: 2026-02-01T03:10:57.00000{at}Z\n"
        f"User: {each}\nTeam: Set unmounted = skip.\n\n"
        for at, each in enumerate(asked)
    )
    assert describe_topic("team:skip-usb.txt", text).startswith(f"Usb, disk: {asked[0]}, ")


@pytest.mark.parametrize(
    ("asked", "opening"),
    [
        (["Which port?", ""], "Port: Which port?, Open the port 8443. Mentions "),
        ([""], "Installer: Open the port 8443. Mentions firewall."),
    ],
)
def test_what_nobody_asks_any_more_is_described_by_its_answer(asked: list[str], opening: str) -> None:
    answered = PairTurn(Speaker.TEAM, "Open the port 8443. See firewall.")
    said = [(PairTurn(Speaker.USER, each), answered) if each else (answered,) for each in asked]
    text = "".join(TopicBlock("qa_1", "", None, turns).text for turns in said)
    assert describe_topic("team:installer.txt", text).startswith(opening)


async def test_a_kind_that_needs_no_question_is_filed_named_and_quoted_by_what_the_team_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forgotten = replace(pair(1, *PORTS), turns=(PairTurn(Speaker.USER, REMOVED), PairTurn(Speaker.TEAM, PORTS[1])))
    texts = (AGAIN[1], PORTS[1], f"{PORTS[1]} The router blocks both.", SKIPS[1])
    answer, note, again, other = (
        replace(pair(number), message_ids=(number,), author_ids=(50,), turns=(PairTurn(Speaker.TEAM, text),))
        for number, text in enumerate(texts, 2)
    )
    assert not is_exchange(answer.kind, answer.turns)
    assert await Shelf().files(answer) == ""
    text = Topic("net", (forgotten,)).text
    assert [section.quotable for section in read_topic(text).sections] == [False]

    monkeypatch.setitem(vars(REPLY), "needs_question", False)
    assert is_exchange(note.kind, note.turns)
    shelf = Shelf()
    name = await shelf.files(note)
    assert name == "open-port-agents"
    assert await shelf.files(again) == name
    assert shelf.topics[name] == [again]
    assert await shelf.files(other) not in {"", name}
    [block] = topic_blocks(Topic("net", (note,)).text)
    assert (block.speakers, block.needs_question) == (("Team",), False)
    assert [section.quotable for section in read_topic(block.text).sections] == [True]


async def test_a_topic_is_named_after_a_question_and_not_after_a_remark() -> None:
    asked = "rofl\nsorry, I was away\nIs bancontact impacted by the new rules?"
    assert await Shelf().files(pair(1, asked, PORTS[1])) == "bancontact-impacted-rules"


async def test_what_only_shares_words_that_everybody_uses_stays_alone() -> None:
    shelf = Shelf()
    first = await shelf.files(pair(1, "Is there a way to make the server faster?", "Add memory to the machine."))
    second = await shelf.files(pair(2, "Is there a way to make the server quiet?", "Set log level to error."))
    assert first != second


def test_what_is_kept_of_each_of_many_conversations_is_small() -> None:
    pairs = [pair(number, *(SKIPS, AGAIN, PORTS)[number % 3]) for number in range(303)]
    vectors = TopicVectors()
    vectors.update({"things": pairs[:3]})
    tracemalloc.start()
    vectors.update({"things": pairs})
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / 300 < 800


async def test_conversations_that_no_topic_took_are_not_remembered() -> None:
    curator = ExtractiveCurator(dict)

    async def look_at(numbers: range) -> None:
        for number in numbers:
            await curator.classify(pair(number, *SKIPS), [], Usage())

    def subjects() -> int:
        return sum(isinstance(each, Subject) for each in gc.get_objects())

    await look_at(range(50))
    before = subjects()
    await look_at(range(50, 350))
    assert subjects() <= before
