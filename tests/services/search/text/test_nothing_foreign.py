"""Pitfall 56: headings are seen, nothing is swallowed, and no markup of the source reaches people."""

from __future__ import annotations

import pytest

from services.search.text import Article, read

REST = """\
.. _top:

********
Furnaces
********

Lighting
~~~~~~~~

It is lit :ref:`at dawn <top>`.

.. versionadded:: 2.0

.. note:: Mind the dog.

Cooling
^^^^^^^

It is cooled at night.
"""
MARKDOWN = """\
---
title: Furnaces
tags: [fire]
---

## Lighting

{!../parts/fire.md!}

!!! note "Beware"
    Mind the dog.

=== "Windows"

    Open the hatch.

/// tip
Bring a lamp.
///

::: furnace.lighting

<div class="termy">

```console
$ light --now
```

</div>

~~~
still code
~~~

## Cooling

It is cooled at night.
"""
FOREIGN = ("title:", "{!", "!!!", "===", "///", ":::", "<div", "</div", "versionadded", ".. ", ":ref:", "~~~", "tags")


def shown(article: Article) -> str:
    return "\n".join(section.text for section in article.sections)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.rst", REST, ("It is lit at dawn", "Mind the dog.", "It is cooled at night.")),
        (
            "a.md",
            MARKDOWN,
            ("Mind the dog.", "Windows", "Open the hatch.", "Bring a lamp.", "light --now", "still code", "at night."),
        ),
    ],
)
def test_people_see_what_is_said_and_not_how_it_is_marked(name: str, text: str, said: tuple[str, ...]) -> None:
    article = read(name, text)
    assert article.title == "Furnaces"
    assert [section.headings[-1] for section in article.sections if section.blocks][-2:] == ["Lighting", "Cooling"]
    assert [words for words in said if words not in shown(article)] == []
    assert [mark for mark in FOREIGN if mark in shown(article)] == []


def test_tildes_below_a_line_are_a_heading_in_rest_and_swallow_nothing() -> None:
    article = read("a.rst", "One\n~~~\n\nFirst.\n\nTwo\n~~~\n\nSecond.\n")
    assert [(section.headings[-1], section.text) for section in article.sections] == [
        ("One", "First."),
        ("Two", "Second."),
    ]
