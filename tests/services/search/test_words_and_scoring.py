from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.search import rank
from services.search.scoring import Floats, Postings, bm25, scaled_to_one
from services.search.tokenizer import stem, terms
from tests.services.quickly import QUICKLY

texts = st.text(max_size=200)


def scored(documents: list[list[str]], query: list[str], imagined: int = 0) -> tuple[Floats, Floats]:
    held: list[Postings] = []
    for word in dict.fromkeys(query):
        places = [place for place, words in enumerate(documents) if word in words]
        times = np.array([documents[place].count(word) for place in places], dtype=np.float32)
        held.append(Postings(np.array(places, dtype=np.int64), times))
    return bm25(held, np.array([len(words) for words in documents], dtype=np.float32), imagined=imagined)


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


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), max_size=8), max_size=8),
    st.lists(st.sampled_from("abcxyz"), min_size=1),
)
@QUICKLY
def test_a_text_scores_if_it_holds_a_word_and_covers_at_most_the_query(
    documents: list[list[str]], query: list[str]
) -> None:
    scores, covered = scored(documents, query)
    for words, score, share in zip(documents, scores, covered, strict=True):
        assert (score > 0) == (share > 0) == bool(set(words) & set(query))
        assert share <= 1 + 1e-5
        if set(query) <= set(words):
            assert share == pytest.approx(1)


def test_the_score_is_bm25_over_the_texts_and_imagined_ones() -> None:
    scores, _ = scored([["cat", "sat"], ["dog", "ran"]], ["cat"], imagined=12)
    assert list(scores) == [pytest.approx(math.log(1 + (14 - 1 + 0.5) / 1.5)), 0]


def test_scores_of_two_kinds_are_spread_over_the_same_range() -> None:
    assert list(scaled_to_one(np.array([2, 4, 3, np.nan], dtype=np.float32))) == [0, 1, 0.5, 0]
    assert list(scaled_to_one(np.array([3, 3], dtype=np.float32))) == [1, 1]
    assert list(scaled_to_one(np.array([0, 0], dtype=np.float32))) == [0, 0]
    assert list(scaled_to_one(np.array([np.nan], dtype=np.float32))) == [0]


def test_a_few_texts_are_ranked_by_the_rare_words_that_they_share_with_another() -> None:
    texts = ["mill and wheel", "mill and lever", "mill", "nothing of it"]
    assert rank(texts, "the lever of the mill") == [1, 2, 0, 3]
    assert rank(texts, "???") == [0, 1, 2, 3]
    assert rank([], "mill") == []


@pytest.mark.parametrize("query", ['"', "gpu OR NEAR(", "a_b _ __", "\0gpu\0", "\ud800gpu", "x" * 100_000])
def test_any_text_can_be_compared(query: str) -> None:
    assert sorted(rank(["gpu", query], query)) == [0, 1]
