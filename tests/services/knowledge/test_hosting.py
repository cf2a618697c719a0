"""Where files of repositories are shown."""

from __future__ import annotations

import pytest

from services.assistant import Addresses
from services.knowledge import hosted_address


@pytest.mark.parametrize(
    ("source_id", "address"),
    [
        ("git:github.com/mill/rye//docs/a b.md", "https://github.com/mill/rye/blob/HEAD/docs/a%20b.md"),
        ("git:github.com/mill/rye@v2/x//a.md", "https://github.com/mill/rye/blob/v2/x/a.md"),
        ("git:gitlab.com/mill/deep/rye//a.md", "https://gitlab.com/mill/deep/rye/-/blob/HEAD/a.md"),
        ("git:gitlab.mill.example/m/rye@main//a.md", "https://gitlab.mill.example/m/rye/-/blob/main/a.md"),
        ("git:codeberg.org/mill/rye@main//a.md", "https://codeberg.org/mill/rye/src/branch/main/a.md"),
        ("git:git.sr.ht/~mill/rye//docs/a.md", "https://git.sr.ht/~mill/rye/tree/HEAD/item/docs/a.md"),
        ("git:git.mill.example/mill/rye//a.md", None),
        ("git:github.com.evil.example/mill/rye//a.md", None),
        ("guides/a.md", None),
        ("https://github.com/mill/rye", None),
    ],
)
def test_a_file_is_shown_by_its_host(source_id: str, address: str | None) -> None:
    assert hosted_address(source_id) == address
    assert Addresses({"": "https://docs.example"}).address_of(f"kb:{source_id}") == (
        address
        or (None if source_id.startswith("git:") else Addresses({"": "https://docs.example"}).address_of(source_id))
    )


def test_an_operator_knows_better_where_files_are_published() -> None:
    bases = {"git:github.com/mill/rye//docs": "https://docs.example"}
    assert (
        Addresses(bases).address_of("kb:git:github.com/mill/rye//docs/a.md", anchor="top")
        == "https://docs.example/a/#top"
    )
    assert (
        Addresses(bases).address_of("kb:git:github.com/mill/rye//b.md") == "https://github.com/mill/rye/blob/HEAD/b.md"
    )


def test_a_link_between_two_files_leads_to_where_the_other_is_shown() -> None:
    text = "See [more](../more.md#how) and [top](#top)."
    assert Addresses().make_absolute(text, "kb:git:github.com/mill/rye@v1//docs/a.md") == (
        "See [more](<https://github.com/mill/rye/blob/v1/more.md#how>) and "
        "[top](<https://github.com/mill/rye/blob/v1/docs/a.md#top>)."
    )
