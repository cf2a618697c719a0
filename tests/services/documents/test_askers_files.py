"""Names of files in one thread: unique among what is searched, and stable for whoever asks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.documents.askers_files import AskerMessage, AskersFiles, names_for, with_distinct_names
from services.documents.store.protocol import Document, Origin, State

ADA, EVE, BOB = 311, 312, 313


def document(name: str, *posters: int, state: State = State.READY, text: str = "") -> Document:
    first, *others = (Origin(name, uploader_id=poster) for poster in posters)
    return Document(f"{name} {posters} {text}", first, state, others=tuple(others))


def named(asker: int | None, *documents: Document) -> list[str]:
    names = names_for(documents, asker)
    return [names[each.doc_id] for each in documents]


@pytest.mark.parametrize(
    ("asker", "names"),
    [
        (ADA, ["app.log", "app-2.log", "other.log"]),
        (EVE, ["app-2.log", "app.log", "other.log"]),
        (BOB, ["app.log", "app-2.log", "other.log"]),
        (None, ["app.log", "app-2.log", "other.log"]),
    ],
)
def test_the_askers_own_file_keeps_its_name_and_others_are_numbered(asker: int | None, names: list[str]) -> None:
    assert named(asker, document("app.log", ADA), document("app.log", EVE), document("other.log", EVE)) == names


@pytest.mark.parametrize(
    ("name", "numbered"),
    [
        ("app.log.1", "app-2.log.1"),
        ("my.app.yaml", "my.app-2.yaml"),
        ("logs.d/app.log", "logs.d/app-2.log"),
        (".env", ".env-2"),
        ("Makefile", "Makefile-2"),
    ],
)
def test_the_number_stands_before_the_ending(name: str, numbered: str) -> None:
    assert named(ADA, document(name, ADA), document(name, EVE)) == [name, numbered]


def test_no_number_makes_the_name_of_another_file() -> None:
    files = document("app.log", ADA), document("app-2.log", ADA), document("APP.log", EVE), document("app.log", BOB)
    assert named(ADA, *files) == ["app.log", "app-2.log", "APP-3.log", "app-4.log"]


def test_all_revisions_of_one_person_have_one_name() -> None:
    files = [document("app.log", who, text=text) for who, text in ((ADA, "1"), (EVE, "1"), (ADA, "2"), (EVE, "2"))]
    assert named(ADA, *files) == ["app.log", "app-2.log", "app.log", "app-2.log"]


def test_what_two_have_posted_is_each_ones_own_until_they_post_another() -> None:
    both = document("app.log", ADA, EVE)
    assert named(EVE, document("app.log", BOB), both) == ["app-2.log", "app.log"]
    assert named(EVE, both, document("app.log", EVE)) == ["app-2.log", "app.log"]
    assert named(ADA, both, document("app.log", EVE)) == ["app.log", "app-2.log"]


def test_what_cannot_be_searched_keeps_its_name_and_counts_for_none() -> None:
    files = document("app.log", EVE, state=State.FAILED), document("app.log", ADA), document("app.log", BOB)
    assert named(None, *files) == ["app.log", "app.log", "app-2.log"]
    assert [each.filename for each in with_distinct_names(files)] == ["app.log", "app.log", "app-2.log"]


def test_the_choice_among_many_files_compares_no_two_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else whoever posts many files would hold up everybody."""
    files = [document(f"{number}.log", (ADA, EVE)[number % 2]) for number in range(2_000)]
    files[1] = document("wanted.log", EVE)
    chosen = AskersFiles(frozenset({ADA}), (AskerMessage(9, "see wanted.log"),))
    monkeypatch.setattr(Document, "__eq__", None)
    posted = [replace(doc, origin=replace(doc.origin, message_id=5)) for doc in files]
    assert [doc.filename for doc in chosen.choose(posted)] == [
        "0.log",
        "wanted.log",
        *(f"{n}.log" for n in range(2, 2_000, 2)),
    ]
