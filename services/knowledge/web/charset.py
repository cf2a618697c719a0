"""Bytes become text, also where the server is wrong about which."""

from __future__ import annotations

import codecs
import re

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16's, with which it begins
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META_BYTES = 4096
"""Where a declaration is looked for; HTML allows it in the first 1024 bytes, and not every author counts."""
_META = re.compile(
    rb"""<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([a-z0-9_.:-]{1,40})""", re.IGNORECASE
)
_KNOWN = re.compile(r"utf-(8|16|32)|cp|iso|koi8|mac|gb|big5|euc|shift|ascii|tis|johab|ptcp|hp|kz")
"""Begins the names of Python's codecs for charsets of the web. Others are no charsets, or slow (punycode)."""
_ALSO_VALID_UTF8 = re.compile(r"iso2022|utf-(16|32)")
"""Charsets whose text, seen as bytes, may well pass for UTF-8."""
_AS_WRITTEN = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
"""What the web means by these names (WHATWG, Encoding)."""


def decode(data: bytes, declared: str | None, *, html: bool = False) -> str:
    """`data` as text.

    A byte order mark decides. Else what is valid UTF-8 is UTF-8 (other text hardly ever is, and servers call all
    text Latin-1), else it is what is `declared`, by the server or (`html`) in a `<meta>`; what fits none of these
    is UTF-8 with U+FFFD in place of what is not.
    """
    for bom, charset in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(charset, "replace")
    charsets = [_charset(declared), _charset(_in_html(data)) if html else None]
    named = [charset for charset in charsets if charset is not None]
    odd = [charset for charset in named if _ALSO_VALID_UTF8.match(charset)]
    for charset in (*odd, "utf-8", *named):
        try:
            return data.decode(charset)
        except UnicodeDecodeError:
            continue
    # Single bytes that a one-byte charset leaves open spoil less in it than in UTF-8.
    return data.decode("cp1252" if "cp1252" in named else "utf-8", "replace")


def _in_html(data: bytes) -> str | None:
    found = _META.search(data[:_META_BYTES])
    # It was read as ASCII, so it cannot be true that it is UTF-16.
    return None if found is None or found[1].lower().startswith((b"utf-16", b"utf-32")) else found[1].decode("ascii")


def _charset(name: str | None) -> str | None:
    """The codec called `name`; None: it is not a charset's."""
    try:
        codec = codecs.lookup((name or "").strip()).name
    except (LookupError, ValueError):
        return None
    return _AS_WRITTEN.get(codec, codec) if _KNOWN.match(codec) else None
