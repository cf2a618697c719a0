"""No pattern of the product makes what it reads cost more than in proportion to its length (Pitfall 64)."""

from __future__ import annotations

import importlib
import re
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from services.discord.text import READ_FOR_NAME_CHARS
from services.documents.tools.libraries import MAX_QUESTION_CHARS
from tests.patterns.finding import Found, kept, made, within
from tests.patterns.judging import LONGEST, dear, hungry, steep
from tests.patterns.pumping import pumps


class Bound(NamedTuple):
    """How long a text may be. `what`: which text, and where its length is bounded. `asked`: how, where the pattern is
    handed on under another name, or a search that fails ends the reading.
    """

    chars: int
    what: str
    asked: str = ""


QUESTION = Bound(MAX_QUESTION_CHARS, "a question: services.documents.tools.core")
MESSAGE = Bound(4_000, "what somebody writes: Discord")
ANSWER = Bound(4_000, "an answer, after its length is looked at: operators.answering")
BEGINNING = Bound(5_000, "the beginning of a file: services.documents.reading.preparing")
LINE = Bound(4_000, "a line, cut before it is read")
BOUNDED = {
    "services.assistant.addresses._LINK": ANSWER,
    "services.assistant.extractive.curator._NOISE": MESSAGE,
    "services.assistant.extractive.describing._WORD": Bound(
        100_000, "the beginning of a source: services.assistant.extractive.describing"
    ),
    "services.assistant.citations._DEBRIS": ANSWER,
    "services.assistant.citations._DEFINITION": ANSWER,
    "services.assistant.citations._HOST_LIKE": ANSWER,
    "services.assistant.citations._INLINE": ANSWER,
    "services.assistant.citations._LONE_LINE": ANSWER,
    "services.assistant.citations._URL": Bound(100_000, "a source that was loaded: services.knowledge.excerpts"),
    "services.discord.text.BLANK_LINES": Bound(ANSWER.chars, "an answer", "match"),
    "services.discord.text.FENCE": Bound(4_000, "a line of an answer", "match"),
    "services.discord.text.GAP": Bound(ANSWER.chars, "an answer", "match"),
    "services.discord.text.PAIRED": Bound(READ_FOR_NAME_CHARS, "a line: services.discord.text.READ_FOR_NAME_CHARS"),
    "services.discord.text.PREFIX": MESSAGE,
    "services.documents.asking.names._FILE_LIKE": QUESTION,
    "services.documents.asking.grammar.ONE_LEVEL": QUESTION,
    "services.documents.asking.grammar._any_phrase": QUESTION,
    "services.documents.asking.vocabulary._IN_KEYS": QUESTION,
    "services.documents.asking.vocabulary._IN_LOGS": QUESTION,
    "services.documents.asking.names._ASKED_ABOUT": QUESTION,
    "services.documents.asking.names._ASKED_FOR": QUESTION,
    "services.documents.asking.names._HOST": QUESTION,
    "services.documents.asking.plan._BEFORE_DAY": QUESTION,
    "services.documents.asking.plan._UNIT": QUESTION,
    "services.documents.asking.rewriting._NUMBER": QUESTION,
    "services.documents.asking.times._one_moment": QUESTION,
    "services.documents.asking.times._period": QUESTION,
    "services.documents.asking.exact._INDEX": Bound(400, "the path of a key, 64 levels deep"),
    "services.documents.reading.outlines._TOKEN": Bound(
        LONGEST, "a file, of which the first comment that never ends is refused", "match"
    ),
    "services.documents.reading.preparing._CODE": BEGINNING,
    "services.documents.reading.preparing._PROMETHEUS": Bound(
        BEGINNING.chars, "a line of the beginning of a file", "match"
    ),
    "services.documents.reading.preparing._TRACE": BEGINNING,
    "services.documents.reading.logs._VARIABLE": Bound(400, "the beginning of a line: services.documents.reading.logs"),
    "services.documents.store.schema._STAMP": Bound(2_000, "the beginning of a line: services.documents.store.schema"),
    "services.llm.prompting._MANY_BRACKETS": LINE,
    "services.privacy.text_match._PLACEHOLDER": MESSAGE,
    "services.redaction.named_secrets._is_description": Bound(200, "a name: services.redaction.named_secrets"),
    "services.redaction.named_secrets._is_file": Bound(1_000, "a value: services.redaction.named_secrets"),
    "services.redaction.named_secrets._WORDS_BEFORE": Bound(
        40, "what precedes a name: services.redaction.named_secrets"
    ),
    "services.search.languages._NOT_PROSE": Bound(8_000, "the beginning of a text: services.search.languages"),
    "services.search.questions._CONTINUES": MESSAGE,
    "services.search.questions._GREETING": MESSAGE,
    "services.search.questions._NOISE": MESSAGE,
    "services.search.questions._NOT_PROSE": MESSAGE,
    "services.search.replies._FAILED": MESSAGE,
    **dict.fromkeys(
        (
            "services.search.questions._NAMES",
            "services.search.replies._ASKS_BACK",
            "services.search.replies._COURTESY",
            "services.search.replies._OPENING",
            "services.search.replies._OWN_CASE",
            "services.search.replies._PLACEHOLDER",
            "services.search.replies._TO_SOMEBODY",
        ),
        MESSAGE,
    ),
    "services.search.text.markdown_html._IN_BRACES": Bound(
        1_500, "the inside of braces: services.search.text.markdown_html"
    ),
    "services.search.tokenizer._PIECE": Bound(1_000, "a word"),
    "services.team.archive._SNOWFLAKES": Bound(4_000, "a line of the archive, which the bot writes"),
}
"""What bounds the texts of patterns that cost more than in proportion to them. No pattern over a whole file is here."""

KEPT = frozenset(
    {
        "services.LazyPattern.compiled",
        "services.documents.asking.clauses._clause_start",
        "services.documents.asking.grammar._any_phrase",
        "services.documents.asking.vocabulary._compiled",
        "services.documents.asking.times._one_moment",
        "services.documents.asking.times._period",
        "services.documents.reading.times._format",
        "services.search.languages._too_many_marks",
    }
)
"""Functions that compile what a module keeps, or what is found by a call of them."""
MADE_FROM = {
    "assembly.data_folder.marker_pattern": "the characters of a marker, with bounded repeats between them",
    "services.documents.asking.names._pattern": QUESTION,
    "services.documents.asking.query_lines.values_of": "repeats of at most 200 characters",
    "services.documents.asking.rewriting.find_citations": "names of files, without repeats",
    "services.documents.asking.times._day": "what the period of a question names",
    "services.documents.asking.times._moment": "what the period of a question names",
    "services.assistant.citations._Trusted.is_foreign": "the target of a link as it is, without repeats",
    "services.discord.exports._with_mentions": "names as they are, without repeats",
    "services.documents.reading.preparing.cut_lines": "a bounded repeat, and one to the end of the line",
    "services.documents.store.searching.literally": "words as they are, with space between them",
    "services.knowledge.file_selection._compile": "names of files",
    "services.redaction.redactor.Redactor.__init__": "secrets as they are, without repeats",
    "services.search.text.markdown_html._closing": "the name of an element, and one repeat behind it",
}
"""Functions that compile what depends on their input: the repeats in it, or what it is asked of."""


@cache
def found() -> list[Found]:
    written_out = [
        Found(each.where, re.compile(each.pattern), each.methods) for each in made() if each.pattern is not None
    ]
    return [*kept(), *written_out]


def test_every_pattern_that_a_function_compiles_is_accounted_for() -> None:
    assert {each.where for each in made() if each.pattern is None} == KEPT | set(MADE_FROM)


PARTS = 4
"""A test has four minutes (`faulthandler_timeout`): each judges a part of the patterns."""


def judged(part: int) -> list[Found]:
    return [each for each in found() if each.where not in BOUNDED][part::PARTS]


def test_there_are_hundreds_of_patterns() -> None:
    assert len(found()) > 400


@pytest.mark.parametrize("part", range(PARTS))
def test_time_grows_no_faster_than_the_text(part: int) -> None:
    """Pitfall 64."""
    assert [(each.where, pump) for each in judged(part) if (pump := steep(each.pattern, each.methods))] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_character_more_costs_memory(part: int) -> None:
    """Pitfall 64: what repeats alternatives keeps a state for each."""
    assert [(each.where, pump) for each in judged(part) if (pump := hungry(each.pattern, each.methods))] == []


@pytest.mark.slow
def test_what_is_bounded_costs_no_more_than_a_scan_of_a_file() -> None:
    """Pitfall 64: at the bound that its text has."""
    bounded = [(each, bound) for each in found() if (bound := BOUNDED.get(each.where))]
    slow = [
        (each.where, pump)
        for each, bound in bounded
        if (pump := dear(each.pattern, {bound.asked} if bound.asked else each.methods, bound.chars))
    ]
    assert slow == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_line_costs_no_more_than_a_scan_of_a_file(part: int) -> None:
    """Pitfall 64: what is linear may still try thousands of ways at each character."""
    assert [(each.where, pump) for each in judged(part) if (pump := dear(each.pattern, each.methods, LINE.chars))] == []


def test_a_planted_pattern_is_found_dear_at_its_bound() -> None:
    assert dear(re.compile(r"(?:0:){2,7}(?::?[0-9a]{1,4}){1,7}(?![\w:])"), {"search"}, LINE.chars) is not None
    assert dear(re.compile(r"\s+$"), {"search"}, 8_000) is not None
    assert dear(re.compile(r"\s+$"), {"search"}, 400) is None


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
    module = importlib.import_module("services.redaction.redactor")

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
