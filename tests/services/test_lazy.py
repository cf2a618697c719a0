from __future__ import annotations

import re

from services import LazyPattern, lazy_pattern


def test_a_lazy_pattern_is_compiled_when_it_is_asked() -> None:
    pattern = LazyPattern("a(b+)", re.IGNORECASE)
    assert "compiled" not in vars(pattern)
    assert pattern.search("xABB").group(1) == "BB"
    assert vars(pattern)["search"] == pattern.compiled.search


def test_a_method_may_be_kept_before_the_pattern_is_compiled() -> None:
    pattern = LazyPattern("a+", 0)
    is_word = pattern.fullmatch
    assert "compiled" not in vars(pattern)
    assert is_word("aa")
    assert not is_word("ab")


def test_a_lazy_pattern_is_what_re_makes_of_it() -> None:
    lazy, usual = lazy_pattern("(?P<key>a)|b", re.MULTILINE), re.compile("(?P<key>a)|b", re.MULTILINE)
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (usual.pattern, usual.flags, usual.groupindex)
    assert lazy.sub("-", "abc") == usual.sub("-", "abc") == "--c"
