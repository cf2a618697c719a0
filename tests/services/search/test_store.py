"""The file that the passages of a library are kept in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from services.search import PassageStore, PreparedSource, StoredPassage, find, passage_store
from services.search.text.article import Passage, Section

ID = "a model"


def cut(name: str, *texts: str, stamp: str = "s1", heading: str = "") -> PreparedSource:
    """A source of one section for each text."""
    headings = (heading,) if heading else ()
    held = [Passage(place, headings, text) for place, text in enumerate(texts)]
    return PreparedSource(
        f"kb:{name}",
        stamp,
        f"hash of {texts}",
        heading,
        "",
        "en",
        held,
        [Section((), f"at-{n}", ()) for n in range(len(texts))],
    )


def names(kept: PassageStore, query: str) -> list[str]:
    return [hit.source_id.removeprefix("kb:") for hit in find([kept], query, None).hits]


def embed(kept: PassageStore, embedder_id: str = ID) -> list[str]:
    """Give every passage a vector that lacks one; their texts."""
    left = kept.unembedded(embedder_id, 100)
    kept.store_vectors(embedder_id, {key: np.full(3, len(text), dtype=np.float32) for key, text in left})
    return [text for _, text in left]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kb" / "search.sqlite"


@pytest.fixture
def kept(path: Path) -> Iterator[PassageStore]:
    made = PassageStore(path)
    yield made
    made.close()


def test_what_is_put_is_found_by_its_words_and_by_those_of_its_heading(kept: PassageStore) -> None:
    kept.change([cut("mill.md", "The wheel turns.", heading="Mills"), cut("press.md", "The lever is pulled.")])
    assert names(kept, "which wheel?") == names(kept, "a mill") == ["mill.md"]
    assert names(kept, "levers") == ["press.md"]
    assert names(kept, "anchor") == []


def test_a_passage_that_was_looked_at_is_shown_as_it_is_now(kept: PassageStore) -> None:
    kept.change([cut("a.md", "one wheel")])
    assert [hit.passage.text for hit in find([kept], "wheel", None).hits] == ["one wheel"]
    assert [hit.passage.text for hit in find([kept], "wheel", None).hits] == ["one wheel"]  # as remembered
    kept.change([cut("a.md", "another wheel")])  # it may get the number of the passage that it replaces
    assert [hit.passage.text for hit in find([kept], "wheel", None).hits] == ["another wheel"]


def test_all_texts_are_read_in_pieces(kept: PassageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage_store, "_TEXTS_READ", 2)
    assert list(kept.texts()) == []
    kept.change([cut("a.md", "one", "two", heading="Wheels"), cut("b.md", "three")])
    assert [text.split()[-1] for text in kept.texts()] == ["one", "two", "three"]
    assert "Wheels" in next(kept.texts())


def test_no_more_passages_are_remembered_than_are_allowed(kept: PassageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage_store, "_MAX_PASSAGES_KEPT", 2)
    kept.change([cut("a.md", "wheel one", "wheel two", "wheel three")])
    assert len(find([kept], "wheel", None).hits) == 3
    assert len(kept.passages([1, 2, 3])) == 3


def test_a_source_is_replaced_or_dropped_and_the_others_stay(kept: PassageStore) -> None:
    kept.change([cut("a.md", "one wheel"), cut("b.md", "two wheels"), cut("c.md", "three levers")])
    assert names(kept, "wheel") == ["a.md", "b.md"]
    kept.change([cut("a.md", "an anchor", stamp="s2")], drop=["kb:b.md", "kb:was-never-there.md"])
    assert names(kept, "wheel") == []
    assert names(kept, "anchor") == ["a.md"]
    assert names(kept, "lever") == ["c.md"]
    assert kept.sources() == {
        "kb:a.md": ("s2", "hash of ('an anchor',)"),
        "kb:c.md": ("s1", "hash of ('three levers',)"),
    }


def test_a_new_stamp_changes_nothing_else(kept: PassageStore) -> None:
    kept.change([cut("a.md", "one wheel")])
    kept.change((), stamps={"kb:a.md": "s9", "kb:gone.md": "s9"})
    assert kept.sources() == {"kb:a.md": ("s9", "hash of ('one wheel',)")}
    assert names(kept, "wheel") == ["a.md"]


def test_a_change_that_fails_changes_nothing(kept: PassageStore) -> None:
    kept.change([cut("a.md", "one wheel")])
    broken = cut("b.md", "two wheels")._replace(sections=[])
    with pytest.raises(IndexError):
        kept.change([cut("a.md", "an anchor"), broken])
    assert names(kept, "wheel anchor") == ["a.md"]
    kept.change([cut("b.md", "two wheels")])
    assert names(kept, "wheel") == ["a.md", "b.md"]


def test_everything_is_there_after_a_restart(path: Path, kept: PassageStore) -> None:
    kept.change([cut("a.md", "one wheel")])
    embed(kept)
    kept.close()
    again = PassageStore(path)
    assert names(again, "wheel") == ["a.md"]
    assert again.sources() == kept.sources()
    assert again.count_unembedded(ID) == 0


def test_the_passages_of_a_section_come_in_order_with_what_is_known_of_their_source(kept: PassageStore) -> None:
    long = cut("a.md", "x")._replace(
        title="Mills",
        permalink="/mills/",
        passages=[Passage(0, ("Mills",), "first of it"), Passage(1, ("Mills", "Ice"), "other"), Passage(0, (), "last")],
        sections=[Section((), "top", ()), Section((), "ice", (), day="2026-02-01", quotable=False)],
    )
    kept.change([long])
    section = kept.section("kb:a.md", 0)
    assert [each.text for each in section] == ["first of it", "last"]
    [ice] = kept.section("kb:a.md", 1)
    assert ice == StoredPassage(
        "kb:a.md", "Mills", "/mills/", 1, ("Mills", "Ice"), "ice", "other", "2026-02-01", quotable=False
    )
    assert kept.section("kb:b.md", 0) == []


def test_each_text_is_embedded_once_with_its_heading(kept: PassageStore) -> None:
    kept.change([cut("a.md", "one wheel", "one wheel", heading="Mills"), cut("b.md", "one wheel", heading="Mills")])
    assert kept.count_unembedded(ID) == 1
    assert embed(kept) == ["Mills\none wheel"]
    assert kept.count_unembedded(ID) == 0
    assert kept.count_unembedded("another model") == 1


def test_vectors_are_kept_by_text_over_a_rename_and_forgotten_with_the_last_use(kept: PassageStore) -> None:
    kept.change([cut("old.md", "one wheel")])
    embed(kept)
    kept.change([cut("new.md", "one wheel")], drop=["kb:old.md"])
    kept.forget_unused_vectors()
    assert embed(kept) == []
    kept.change((), drop=["kb:new.md"])
    kept.forget_unused_vectors()
    kept.change([cut("new.md", "one wheel")])
    assert embed(kept) == ["one wheel"]


def test_a_vector_that_comes_when_its_text_is_gone_is_not_kept(kept: PassageStore) -> None:
    kept.change([cut("a.md", "one wheel")])
    [(key, _)] = kept.unembedded(ID, 1)
    kept.change((), drop=["kb:a.md"])
    kept.store_vectors(ID, {key: np.ones(3, dtype=np.float32)})
    kept.change([cut("a.md", "one wheel")])
    assert embed(kept) == ["one wheel"]


def test_the_most_passages_asked_for_are_given_the_oldest_first(kept: PassageStore) -> None:
    kept.change([cut("a.md", "first wheel", "second wheel", "third wheel")])
    assert [text for _, text in kept.unembedded(ID, 2)] == ["first wheel", "second wheel"]


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kept = PassageStore(None)
    kept.change([cut("a.md", "one wheel")])
    assert names(kept, "wheel") == ["a.md"]
    assert list(tmp_path.iterdir()) == []


class TestReadOnly:
    def test_changes_are_made_on_a_copy_in_memory(self, path: Path, kept: PassageStore) -> None:
        kept.change([cut("a.md", "one wheel")])
        kept.close()
        before = path.read_bytes()
        reader = PassageStore(path, read_only=True)
        assert names(reader, "wheel") == ["a.md"]
        reader.change([cut("b.md", "two wheels")])
        assert embed(reader) == ["one wheel", "two wheels"]
        assert names(reader, "wheel") == ["a.md", "b.md"]
        reader.close()
        assert path.read_bytes() == before
        assert [each.name for each in path.parent.iterdir()] == [path.name]

    def test_a_file_that_is_not_there_is_not_made(self, path: Path) -> None:
        reader = PassageStore(path, read_only=True)
        reader.change([cut("a.md", "one wheel")])
        assert names(reader, "wheel") == ["a.md"]
        assert not path.parent.exists()

    def test_a_damaged_file_and_one_of_another_format_stay_as_they_are(
        self, path: Path, kept: PassageStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept.change([cut("a.md", "one wheel")])
        kept.close()
        for content in (b"no database " * 100, path.read_bytes()):
            path.write_bytes(content)
            monkeypatch.setattr(passage_store, "FORMAT", passage_store.FORMAT + 1)
            reader = PassageStore(path, read_only=True)
            assert reader.sources() == {}
            reader.change([cut("b.md", "two wheels")])
            assert names(reader, "wheel") == ["b.md"]
            reader.close()
            assert path.read_bytes() == content


def test_two_threads_may_search_while_a_third_changes(kept: PassageStore) -> None:
    kept.change([cut("still.md", "a wheel that stays")])

    def search(_: int) -> bool:
        return "still.md" in names(kept, "wheel that stays")

    def change(number: int) -> None:
        kept.change([cut("moving.md", f"a wheel that moved {number} times")])
        embed(kept)

    with ThreadPoolExecutor(3) as threads:
        changes = [threads.submit(change, number) for number in range(30)]
        found: Sequence[bool] = list(threads.map(search, range(60)))
        for each in changes:
            each.result()
    assert all(found)
    assert names(kept, "moved 29 times")[0] == "moving.md"
    assert len(kept.sources()) == 2


@pytest.mark.parametrize("query", ['"', "wheel OR NEAR(", "-wheel * ^ : {x}", "words:wheel", "\0wheel", "\ud800 wheel"])
def test_no_query_is_syntax(kept: PassageStore, query: str) -> None:
    kept.change([cut("a.md", "one wheel")])
    assert names(kept, query) == (["a.md"] if "wheel" in query else [])


def test_words_of_any_script_and_identifiers_are_found(kept: PassageStore) -> None:
    """Pitfall 57."""
    kept.change(
        [
            cut("zh.md", "清理缓存的方法")._replace(language="zh"),
            cut("de.md", "zusätzliche Schlüssel")._replace(language="de"),
            cut("c.md", "E-1042 and max_retries in api.example.net"),
        ]
    )
    assert names(kept, "怎么清理缓存？") == ["zh.md"]
    assert names(kept, "der zusätzliche Schlüssel") == ["de.md"]
    for identifier in ("E-1042", "max_retries", "api.example.net"):
        assert names(kept, identifier) == ["c.md"]
