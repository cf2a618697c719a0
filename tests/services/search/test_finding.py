"""Words and meaning together, over one store or several."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.search import NOTHING, Level, PassageStore, PreparedSource, QueryVector, find, retrieval
from services.search.retrieval import MAX_HITS, MAX_TERMS, Signals, is_worth_naming, judge_pages, query_terms
from services.search.text.article import Passage, Section
from tests.services.quickly import QUICKLY

NOWHERE = Section((), "", ())
ID = "a model"
ENGLISH = frozenset({"en"})
SOURCES = {
    "kb:mill.md": "the mill has a wheel that turns",
    "kb:press.md": "the press has a lever that is pulled",
    "kb:ship.md": "the ship has an anchor and a wheel",
    "team:mill.txt": "the wheel of the mill was mended",
}


def holding(texts: Mapping[str, str]) -> PassageStore:
    kept = PassageStore(None)
    kept.change(
        [
            PreparedSource(name, "", text, "", "", "en", [Passage(0, (), text)], [NOWHERE])
            for name, text in texts.items()
        ]
    )
    return kept


def meaning(*values: float, calibrated: bool = True) -> QueryVector:
    return QueryVector(np.array(values, dtype=np.float32), ID, calibrated)


def give(kept: PassageStore, vectors: Mapping[str, tuple[float, float]]) -> None:
    """Vectors to passages, by their texts."""
    left = kept.unembedded(ID, 1000)
    kept.store_vectors(ID, {key: np.array(vectors[text], dtype=np.float32) for key, text in left if text in vectors})


def ids(kept: PassageStore, query: str, asked: QueryVector | None = None) -> list[str]:
    return [hit.source_id for hit in find([kept], query, asked).hits]


def test_by_words_alone_what_holds_most_of_the_rare_ones_comes_first() -> None:
    found = find([holding(SOURCES)], "which lever of the press is pulled?", None)
    assert [hit.source_id for hit in found.hits] == ["kb:press.md"]
    assert found.hits[0].cosine is None
    assert found.hits[0].score == 1
    assert found.hits[0].keywords > 1


def test_by_meaning_what_shares_no_word_is_found() -> None:
    """Pitfall 55: a question in the words of people."""
    texts = {"kb:mill.md": "the mill has a wheel", "kb:ship.md": "the ship has an anchor"}
    kept = holding(texts)
    give(kept, {texts["kb:mill.md"]: (1, 0), texts["kb:ship.md"]: (0, 1)})
    assert ids(kept, "harbour weight") == []
    found = find([kept], "harbour weight", meaning(0, 1))
    assert [hit.source_id for hit in found.hits] == ["kb:ship.md"]
    assert found.hits[0].cosine == 1


def test_words_and_meaning_count_together() -> None:
    texts = {"kb:a.md": "wheel and lever", "kb:b.md": "wheel and anchor", "kb:c.md": "rope and sail"}
    kept = holding(texts)
    give(kept, dict(zip(texts.values(), ((0.6, 0), (0.5, 0), (0.2, 0)), strict=True)))
    assert ids(kept, "wheel", meaning(1, 0)) == ["kb:a.md", "kb:b.md"]
    assert ids(kept, "sail", meaning(1, 0)) == ["kb:a.md", "kb:b.md", "kb:c.md"]
    assert ids(kept, "rope anchor", meaning(1, 0))[0] == "kb:b.md"


def test_cosines_count_only_when_nearly_all_passages_have_a_vector() -> None:
    """Until then those that are embedded already would always win."""
    texts = {f"kb:{number:02}.md": f"page {number} on wheels" for number in range(20)}
    kept = holding({**texts, "kb:lever.md": "one on levers"})
    give(kept, dict.fromkeys(list(texts.values())[:5], (1.0, 0.0)))
    assert ids(kept, "lever", meaning(1, 0)) == ["kb:lever.md"]
    assert find([kept], "lever", meaning(1, 0)).hits[0].cosine is None
    give(kept, dict.fromkeys(texts.values(), (0.5, 0.5)))
    found = find([kept], "lever", meaning(1, 0))
    assert len(found.hits) > 1
    [missing] = [hit for hit in found.hits if hit.source_id == "kb:lever.md"]
    assert missing.cosine == pytest.approx((5 * 1 + 15 * 0.5) / 20)  # the mean of those that are known


@given(st.lists(st.sampled_from(sorted(SOURCES)), unique=True), st.sampled_from(["the wheel", "mill lever", "anchor?"]))
@QUICKLY
def test_two_stores_are_searched_as_if_they_were_one(first: list[str], query: str) -> None:
    parts = [{name: SOURCES[name] for name in SOURCES if (name in first) is inside} for inside in (True, False)]
    apart = find([holding(part) for part in parts], query, None)
    together = find([holding({**parts[0], **parts[1]})], query, None)
    assert [(hit.source_id, hit.score, hit.keywords) for hit in apart.hits] == [
        (hit.source_id, hit.score, hit.keywords) for hit in together.hits
    ]
    assert apart.confidence == together.confidence


def test_on_a_tie_the_team_comes_first_and_then_the_earlier_passage() -> None:
    texts = dict.fromkeys(("kb:a.md", "kb:b.md", "team:c.txt"), "one wheel")
    for order in itertools.permutations(texts):
        kept = holding({name: texts[name] for name in order})
        pages = [name for name in order if name.startswith("kb:")]
        assert ids(kept, "wheel") == ["team:c.txt", *pages]


def test_only_what_is_allowed_is_found_however_much_else_is_better() -> None:
    texts = {f"kb:{number}.md": f"wheel wheel {number}x" for number in range(5 * MAX_HITS)}
    kept = holding({**texts, "kb:weak.md": "a wheel among a great many other words that say nothing of it at all"})
    assert "kb:weak.md" not in ids(kept, "wheel")
    found = find([kept], "wheel", None, {"kb:weak.md", "kb:unknown.md"})
    assert [hit.source_id for hit in found.hits] == ["kb:weak.md"]
    assert find([kept], "wheel", None, ()) == NOTHING


def test_no_more_than_a_fixed_number_of_passages_is_looked_at() -> None:
    kept = holding({f"kb:{number:03}.md": f"wheel {number}x" for number in range(3 * MAX_HITS)})
    assert len(find([kept], "wheel", None).hits) == MAX_HITS


def test_the_pages_are_the_best_passage_of_each_source() -> None:
    kept = PassageStore(None)
    held = [Passage(0, (), "a wheel among many other things"), Passage(1, (), "wheel, wheel, wheel")]
    kept.change(
        [
            PreparedSource("kb:a.md", "", "", "", "", "en", held, [NOWHERE, NOWHERE]),
            PreparedSource("kb:b.md", "", "", "", "", "en", held[:1], [NOWHERE]),
        ]
    )
    pages = find([kept], "wheel", None).pages
    assert [(hit.source_id, hit.passage.section) for hit in pages] == [("kb:a.md", 1), ("kb:b.md", 0)]


def test_without_passages_or_words_nothing_is_found() -> None:
    assert find([holding({})], "wheel", None) == NOTHING
    assert find([], "wheel", None) == NOTHING
    assert find([holding(SOURCES)], "and the?", None) == NOTHING
    assert find([holding(SOURCES)], "zeppelin", None).hits == ()
    assert find([holding(SOURCES)], "zeppelin", None).level is Level.SILENCE


def test_each_store_is_asked_in_the_languages_of_all_of_them() -> None:
    """Pitfall 57."""
    german = PassageStore(None)
    text = "die zusätzlichen Schlüssel liegen im Ordner"
    german.change([PreparedSource("kb:de.md", "", "", "", "", "de", [Passage(0, (), text)], [NOWHERE])])
    found = find([holding(SOURCES), german], "wo liegt der zusätzliche Schlüssel?", None)
    assert [hit.source_id for hit in found.hits] == ["kb:de.md"]


def test_the_words_of_a_query_are_looked_for_once_each_and_of_an_endless_one_the_first() -> None:
    assert query_terms("wheel and wheels of mills", ENGLISH, "en") == ["wheel", "mill"]
    assert len(query_terms(" ".join(f"word{n}x" for n in range(500)), ENGLISH, "en")) <= 3 * MAX_TERMS
    assert query_terms("wheel", frozenset(), "en") == ["wheel"]


def signals(**changed: float | None) -> Signals:
    usual = Signals(
        best_cosine=0.4, mean_cosine=0.1, keywords=0.5, absent=0.2, agreement=1, coverage=0.4, size=7.0, length=2.4
    )
    return usual._replace(**changed)


def test_the_more_the_signs_say_the_higher_the_level() -> None:
    levels = [judge_pages(signals(best_cosine=c, coverage=b, agreement=a), calibrated=True)[1] for c, b, a in
              ((0.3, 0.3, 0), (0.5, 0.4, 2), (0.8, 0.9, 4))]  # fmt: skip
    assert levels == [Level.SILENCE, Level.POINT, Level.ANSWER]
    given = [signals(best_cosine=None, keywords=k, absent=b, coverage=c) for k, b, c in
             ((0.3, 0.8, 0.2), (1.8, 0.3, 0.6), (2.5, 0.0, 1.0))]  # fmt: skip
    levels = [judge_pages(each, calibrated=True)[1] for each in given]
    assert levels == [Level.SILENCE, Level.POINT, Level.ANSWER]


@pytest.mark.parametrize(
    "says_less",
    [
        {"best_cosine": 0.45},
        {"mean_cosine": 0.4},
        {"absent": 0.5},
        {"coverage": 0.2},
        {"size": 9.0},
        {"length": 0.7},
        {"stranger": True},
    ],
    ids=str,
)
def test_each_sign_can_keep_it_from_answering(says_less: dict[str, float]) -> None:
    sure = signals(best_cosine=0.6, coverage=0.6, agreement=3)
    assert judge_pages(sure, calibrated=True)[1] is Level.ANSWER
    assert judge_pages(sure._replace(**says_less), calibrated=True)[1] is not Level.ANSWER


@pytest.mark.parametrize(
    ("asked", "names_one"),
    [
        ("which lever of the press is pulled?", False),
        ("which lever of the Heidelberger press is pulled?", True),
        ("Which lever of the Press is pulled?", False),
        ("which lever of the heidelberger press is pulled?", False),
        ("which lever of the `Heidelberger` press is pulled?", False),
        (f"the press {' '.join(f'word{n}x' for n in range(2 * MAX_TERMS))} and the Heidelberger", False),
    ],
    ids=["none", "one", "a known one", "in small letters", "as code", "too late to be looked for"],
)
def test_a_name_that_occurs_nowhere_is_a_sign_of_another_subject(
    asked: str, names_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = holding(SOURCES)
    few = find([kept], asked, None).signals
    assert few is not None
    assert not few.stranger, "among few passages that says nothing"
    monkeypatch.setattr(retrieval, "MIN_SIZE", 1)
    many = find([kept], asked, None).signals
    assert many is not None
    assert many.stranger is names_one


def test_what_is_far_from_everything_is_not_even_named() -> None:
    assert is_worth_naming(0.05, signals(), calibrated=True)
    assert not is_worth_naming(0.01, signals(), calibrated=True)
    assert is_worth_naming(0.01, signals(), calibrated=False)
    assert is_worth_naming(0.01, signals(best_cosine=None), calibrated=True)


@given(
    st.builds(
        Signals,
        best_cosine=st.none() | st.floats(-1, 1),
        mean_cosine=st.floats(-1, 1),
        keywords=st.floats(0, 20),
        absent=st.floats(0, 1),
        agreement=st.integers(0, 5),
        coverage=st.floats(0, 1),
        size=st.floats(0, 12),
        length=st.floats(0, 4),
    ),
    st.booleans(),
)
@QUICKLY
def test_confidence_is_a_probability_and_grows_with_what_speaks_for_an_answer(sign: Signals, calibrated: bool) -> None:
    confidence, _ = judge_pages(sign, calibrated=calibrated)
    assert 0 <= confidence <= 1
    for better in (sign._replace(keywords=sign.keywords + 1), sign._replace(absent=0.0), sign._replace(coverage=1.0)):
        assert judge_pages(better, calibrated=calibrated)[0] >= confidence


def test_cosines_of_another_model_say_nothing_about_confidence() -> None:
    """They mean something else with every model, and in every language."""
    low, high = signals(best_cosine=0.1), signals(best_cosine=0.9)
    assert judge_pages(low, calibrated=False) == judge_pages(high, calibrated=False)
    assert judge_pages(low, calibrated=True) < judge_pages(high, calibrated=True)


def test_a_question_in_the_words_of_a_page_is_answered_and_one_about_something_else_is_not() -> None:
    kept = holding(SOURCES)
    assert find([kept], "which lever of the press is pulled?", None).level is Level.ANSWER
    assert find([kept], "which pizza turns out best?", None).level is Level.SILENCE
