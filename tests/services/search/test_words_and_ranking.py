from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from services.search.ranking import Postings, rank

from services.search.questions import Query
from services.search.words import stem, terms
from tests.services.quickly import QUICKLY

texts = st.text(max_size=200)


def looking_for(words: Sequence[str]) -> Query:
    return Query(dict.fromkeys(words, 1.0), frozenset(words))


def test_forms_of_a_word_share_a_stem() -> None:
    for forms in (
        ("configure", "configured", "configuring", "configuration", "config"),
        ("install", "installing", "installation", "installed", "installs"),
        ("connect", "connection", "connected"),
        ("authenticate", "authentication", "auth"),
        ("backup", "backups"),
        ("run", "running"),
        ("policy", "policies"),
        ("box", "boxes"),
        ("watch", "watches"),
    ):
        assert len({stem(form) for form in forms}) == 1, forms


def test_different_words_keep_different_stems() -> None:
    words = ["install", "instance", "port", "post", "host", "user", "use", "bus", "access", "café"]
    assert len({stem(word) for word in words}) == len(words)


def test_identifiers_and_error_codes_are_terms_of_their_own_and_so_are_their_words() -> None:
    assert "e-1042" in terms("E-1042: locked")
    assert {"max-retries", "max"} < set(terms("set max_retries"))
    assert "0x80070005" in terms("(0x80070005)")
    assert {"httpserver", "http"} <= set(terms("HttpServer"))
    assert "c++" in terms("C++ and")
    assert "c#" in terms("C# code")


def test_stop_words_and_contractions_are_left_out() -> None:
    assert terms("How don't I get it to work, isn't it?") == []


@given(texts)
@QUICKLY
def test_any_text_has_terms_without_blanks(text: str) -> None:
    assert all(term and term == term.strip() and " " not in term for term in terms(text))


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=8), max_size=8), st.lists(st.sampled_from("abcxyz")))
@QUICKLY
def test_scores_are_positive_ordered_and_cover_at_most_the_query(documents: list[list[str]], query: list[str]) -> None:
    fits = rank(looking_for(query), [Postings(documents)])
    assert [(-fit.score, fit.place) for fit in fits] == sorted((-fit.score, fit.place) for fit in fits)
    assert {fit.place for fit in fits} == {place for place, words in enumerate(documents) if set(words) & set(query)}
    assert all(fit.score > 0 and 0 < fit.coverage <= 1 + 1e-9 for fit in fits)


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=8), min_size=2, max_size=8), st.integers(0, 8))
@QUICKLY
def test_corpora_rank_together_as_if_they_were_one(documents: list[list[str]], at: int) -> None:
    assert rank(looking_for("abc"), [Postings(documents[:at]), Postings(documents[at:])]) == rank(
        looking_for("abc"), [Postings(documents)]
    )


def test_the_score_is_bm25_over_the_documents_and_twelve_imagined_ones() -> None:
    [fit] = rank(looking_for(["cat"]), [Postings([["cat", "sat"], ["dog", "ran"]])])
    assert math.isclose(fit.score, math.log(1 + (14 - 1 + 0.5) / 1.5) / math.log(1 + 14.5 / 0.5))
