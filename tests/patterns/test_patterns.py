"""No pattern of the product makes what it reads cost more than in proportion to its length (Pitfall 64)."""

from __future__ import annotations

import importlib
import re
from types import SimpleNamespace

import pytest

from tests.patterns.finding import Found, kept, made, within
from tests.patterns.judging import hungry, steep
from tests.patterns.pumping import pumps

QUESTION = "a question, of at most 1,000 characters"
MESSAGE = "what somebody writes on Discord, 4,000 characters a message"
ANSWER = "the answer of a model, which is cut"
BEGINNING = "the first 5,000 characters of a file"
LINE = "a line of a file, cut before it is read"
BOUNDED = {
    "services.assistant.addresses._LINK": ANSWER,
    "services.assistant.extractive.curator._NOISE": MESSAGE,
    "services.assistant.extractive.describing._MARKUP": MESSAGE,
    "services.assistant.extractive.describing._WORD": MESSAGE,
    "services.assistant.extractive.looking_up._ASKING": QUESTION,
    "services.assistant.links._DEBRIS": ANSWER,
    "services.assistant.links._DEFINITION": ANSWER,
    "services.assistant.links._HOST_LIKE": ANSWER,
    "services.assistant.links._INLINE": ANSWER,
    "services.assistant.links._LONE_LINE": ANSWER,
    "services.assistant.links._URL": ANSWER,
    "services.assistant.telling._MARKUP": "a passage, of 1,000 characters",
    "services.conversations.thanks._FAILED": MESSAGE,
    "services.discord.text.BLANK_LINES": ANSWER,
    "services.discord.text.FENCE": "a line, in which it cannot fail",
    "services.discord.text.GAP": ANSWER,
    "services.discord.text.PAIRED": "500 characters of a line",
    "services.discord.text.PREFIX": MESSAGE,
    "services.documents.asking.files_named._FILE_LIKE": QUESTION,
    "services.documents.asking.grammar.ONE_LEVEL": QUESTION,
    "services.documents.asking.grammar._any_piece": QUESTION,
    "services.documents.asking.linear._TOKEN": "a pattern of 200 characters",
    "services.documents.asking.meanings._IN_KEYS": QUESTION,
    "services.documents.asking.meanings._IN_LOGS": QUESTION,
    "services.documents.asking.mentions._ASKED_ABOUT": QUESTION,
    "services.documents.asking.mentions._ASKED_FOR": QUESTION,
    "services.documents.asking.mentions._HOST": QUESTION,
    "services.documents.asking.plan._BESIDE_DAY": QUESTION,
    "services.documents.asking.plan._UNIT": QUESTION,
    "services.documents.asking.rewriting._NUMBER": QUESTION,
    "services.documents.asking.times._one_moment": QUESTION,
    "services.documents.asking.times._period": QUESTION,
    "services.documents.asking.vocabulary._WORD": QUESTION,
    "services.documents.asking.whole_files._INDEX": "the path of a key, 64 levels deep",
    "services.documents.indexing._HEADING": "the first 4,000 characters of a document",
    "services.documents.posted._BLOCK": MESSAGE,
    "services.documents.reading.json_outline._TOKEN": "the first comment that never ends is refused",
    "services.documents.reading.kinds._CODE": BEGINNING,
    "services.documents.reading.kinds._PROMETHEUS": BEGINNING,
    "services.documents.reading.kinds._TRACE": BEGINNING,
    "services.documents.reading.logs._VARIABLE": "the first 400 characters of a line",
    "services.documents.store.schema._STAMP": "the beginning of a line",
    "services.llm.prompting._MANY_BRACKETS": LINE,
    "services.privacy.text_match._PLACEHOLDER": MESSAGE,
    "services.redaction.names._describes": "names of at most 200 characters",
    "services.redaction.names._file": "the first 1,000 characters of a value",
    "services.redaction.scanner._WORDS_BEFORE": "40 characters",
    "services.search.languages._NOT_PROSE": "the first 8,000 characters of a text",
    "services.search.questions._CONTINUES": MESSAGE,
    "services.search.questions._GREETING": MESSAGE,
    "services.search.questions._NOISE": MESSAGE,
    "services.search.questions._NOT_PROSE": MESSAGE,
    "services.search.text.tags._IN_BRACES": "a tag, whose length is bounded",
    "services.search.words._PIECE": "a word",
    "services.team.archive._SNOWFLAKES": "a line of the archive, which the bot writes",
}
"""What bounds the texts of patterns that cost more than in proportion to them. No pattern over a whole file is here."""

KEPT = frozenset(
    {
        "services.conversations.thanks._any",
        "services.documents.asking.grammar._any_piece",
        "services.documents.asking.meanings._compiled",
        "services.documents.asking.times._one_moment",
        "services.documents.asking.times._period",
        "services.documents.reading.times._format",
        "services.redaction.runs.run_of",
        "services.redaction.shapes._shape",
    }
)
"""Functions that compile what a module keeps, or what is found by a call of them."""
MADE_FROM = {
    "services.documents.asking.files_named._pattern": QUESTION,
    "services.documents.asking.grouping.values_of": "repeats of at most 200 characters",
    "services.documents.asking.linear._is_bounded": "one character",
    "services.documents.asking.linear.compiled": "lines of 1,000 characters; it is judged before it is used",
    "services.documents.asking.rewriting.cited_in": "names of files, without repeats",
    "services.documents.asking.times._day": "what the period of a question names",
    "services.documents.asking.times._moment": "what the period of a question names",
    "services.documents.reading.decoding.cut_lines": "a bounded repeat, and one to the end of the line",
    "services.documents.store.searching.literally": "words as they are, with space between them",
    "services.knowledge.choosing._compiled": "names of files",
    "services.redaction.redactor.Redactor.__init__": "secrets as they are, without repeats",
    "services.search.text.elements._closing": "the name of an element, and one repeat behind it",
}
"""Functions that compile what depends on their input: the repeats in it, or what it is asked of."""


def found() -> list[Found]:
    written_out = [
        Found(each.where, re.compile(each.pattern), each.methods) for each in made() if each.pattern is not None
    ]
    return [*kept(), *written_out]


def test_every_pattern_that_a_function_compiles_is_accounted_for() -> None:
    assert {each.where for each in made() if each.pattern is None} == KEPT | set(MADE_FROM)


def test_time_grows_no_faster_than_the_text() -> None:
    """Pitfall 64."""
    patterns = found()
    assert len(patterns) > 400
    judged = [each for each in patterns if each.where not in BOUNDED]
    assert [(each.where, pump) for each in judged if (pump := steep(each.pattern, each.methods))] == []


def test_no_character_more_costs_memory() -> None:
    """Pitfall 64: what repeats alternatives keeps a state for each."""
    judged = [each for each in found() if each.where not in BOUNDED]
    assert [(each.where, pump) for each in judged if (pump := hungry(each.pattern, each.methods))] == []


def test_what_is_named_as_bounded_is_there() -> None:
    assert set(BOUNDED) <= {each.where for each in found()}


@pytest.mark.parametrize(
    "planted",
    [
        r"(a|b|ab)*c",
        r"(?:a+)+b",
        r"\s+$",
        r"\[([^\]]*)\]\(",
        r"[ab]*[bc]*d",
        r"x\w*\w*y",
        r"(?s:/\*.*?\*/)",
        r"[\w.-]*\w@",
    ],
)
def test_a_planted_pattern_is_found_steep(planted: str) -> None:
    assert steep(re.compile(planted), {"search"}) is not None


@pytest.mark.parametrize("planted", [r"(?>(?:[^\"\\]|\\.)*)", r"(?:ab)*", r"(?:\s+\w)*", r"(a|b)*", r"(-)\1{2,}"])
def test_a_planted_pattern_is_found_hungry(planted: str) -> None:
    assert hungry(re.compile(planted), {"match"}) is not None


@pytest.mark.parametrize(
    "plain",
    [r"\w+", r"\"[^\"]*+", r"(?<!\s)\s++$", r"a{3,9}b", r"(?>(?:[^\"\\]|\\.){0,500})", r"\bfoo\b|(?<!\d)\d++-\d++"],
)
def test_what_is_linear_is_found_to_be(plain: str) -> None:
    assert steep(re.compile(plain), {"search"}) is None
    assert hungry(re.compile(plain), {"search"}) is None


def test_patterns_are_found_wherever_they_are_kept() -> None:
    """In collections, classes, closures, functions with a default, and as methods of them."""
    pattern = re.compile("planted")
    module = importlib.import_module("services.redaction.shapes")

    def closed() -> re.Pattern[str]:
        return pattern

    def by_default(asked: re.Pattern[str] = pattern) -> re.Pattern[str]:
        return asked

    kind = type("Kind", (), {"asked": pattern, "__module__": module.__name__})
    for value in (pattern, pattern.search, {"a": [(pattern,)]}, closed, by_default, kind):
        assert [each for each, _ in within(value, module)] == [pattern]
    assert list(within(SimpleNamespace(asked=pattern), module)) == []  # of another house


def test_a_pump_repeats_what_a_pattern_repeats() -> None:
    made_of = pumps(re.compile(r"<a(?: b)*>"))
    assert any(pump.head == "<a" and pump.body == " b" for pump in made_of)
    assert any(pump.head == "" and pump.body == "<a b" for pump in made_of)
    assert pumps(re.compile("abc{2}"))[0].text(100).startswith("a")
