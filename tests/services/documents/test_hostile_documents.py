from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache

import pytest

from services.documents.limits import KINDS, FileLimits
from services.documents.prepared import ChunkType, DocumentKind
from services.documents.reading.preparing import prepare
from services.redaction import Redactor

LIMITS = FileLimits()
MEGABYTE = 1_000_000
DIALECTS = ".log .json .yaml .toml .ini .conf .xml .csv .md .rst .adoc .py .js .txt".split()  # noqa: SIM905 (shorter so)
PIECES = (
    *("a", "(", "[", "{", "[ ", '{"a":', "- ", "? ", '"', "\\", " ", "a@a.", "a.", "=", "1-", "af1", "<a>"),
    *("<password ", "&a ", "token: ", "password=", "error ", "-----BEGIN PRIVATE KEY-----", "2026-02-01 10:00:00 "),
    *("+1 ", "(a)[b]", "\u2028", "0171 ", "tel 0", "token=[", 'token=["', "token=[a,", "token='", 'f("token","'),
    *("token: str", "sk-", "<a name='token'>"),
)
LINES = (
    *("```x", "~~~~", "----", "=", "# h", "a:", "a=\\", "[a]", "[[a]]", "a {", "<a>", '{"a":[1]}', '"a', "at x"),
    *("a=[", "token:"),
)


@pytest.fixture(scope="module", autouse=True)
def redacted_once() -> Iterator[None]:
    """All dialects are given the same texts, and redacting them takes as long in each: it counts in the first one."""
    redact = cache(Redactor.redact_and_count)

    def known(redactor: Redactor, text: str) -> tuple[str, dict[str, int]]:
        shown, counts = redact(redactor, text)
        return shown, dict(counts)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Redactor, "redact_and_count", known)
        yield


@pytest.mark.parametrize("ending", DIALECTS)
def test_no_long_line_takes_long(ending: str) -> None:
    for piece in PIECES:
        data = (piece * (50_000 // len(piece))).encode()
        begun = time.process_time()
        found = prepare(f"x{ending}", data, limits=LIMITS)
        assert time.process_time() - begun < 2, piece
        assert found.n_lines == 1
        assert len(found.text) <= 4000


@pytest.mark.parametrize("ending", DIALECTS)
def test_no_number_of_lines_takes_long(ending: str) -> None:
    for line in LINES:
        begun = time.process_time()
        found = prepare(f"x{ending}", f"{line}\n".encode() * 5000, limits=LIMITS)
        assert time.process_time() - begun < 2, line
        assert found.n_lines == 5000


def test_deep_nesting_is_borne() -> None:
    for filename, text in (
        ("x.yaml", "".join(" " * depth + "a:\n" for depth in range(1000))),
        ("x.toml", "a" + ".a" * 100_000 + " = 1"),
        ("x.toml", "a = " + "[" * 100 + "]" * 100),
        ("x.xml", "<a>" * 10_000 + "</a>" * 10_000),
        ("x.json", "[" * 100_000 + "]" * 100_000),
        ("x.conf", "a {\n" * 10_000 + "b 1;\n"),
    ):
        found = prepare(filename, text.encode(), limits=LIMITS)
        assert all(len(chunk.key_path or "") < 10_000 for chunk in found.chunks)


@pytest.mark.slow
def test_the_largest_log_is_prepared_whole() -> None:
    """10 MiB in 200,000 lines."""
    line = b"2026-02-01 10:00:00,000 WARN [worker] a.Store: none\n"
    assert LIMITS.max_file_bytes - len(line * 200_000) < 100_000
    found = prepare("x.log", line * 200_000, limits=LIMITS)
    assert found.n_lines == len(found.lines) == 200_000
    *windows, pattern = found.chunks
    assert len(windows) == 10_000
    assert (pattern.extra["count"], len(pattern.lines)) == ("200000", 1000)


def test_a_line_of_a_megabyte_is_cut_and_the_next_one_keeps_its_number() -> None:
    found = prepare("x.log", b"x" * MEGABYTE + b"\nERROR two", limits=LIMITS)
    assert found.flags == ("1 line was cut at 4000 characters",)
    assert (found.lines[1].line_no, found.lines[1].severity, found.lines[1].text_offset) == (2, "ERROR", 4001)


def test_a_secret_at_the_cut_leaves_nothing_of_itself() -> None:
    found = prepare("x.log", b"x" * 3990 + b" ghp_" + b"a" * 36, limits=LIMITS)
    assert "ghp_" not in found.text


def test_endless_keys_are_cut() -> None:
    key = "k" * 100_000
    for filename, text in (
        ("x.json", f'{{"{key}": {{"a\\nb": [1, {{"c": 2}}]}}}}'),
        ("x.yaml", f'"{key[:900]}":\n  "a\\nb":\n  - c: 2\n'),
        ("x.toml", f"[{key}]\nc = 2\n"),
        ("x.xml", f"<{key}><c>2</c></{key}>"),
    ):
        found = prepare(filename, text.encode(), limits=LIMITS)
        leaf = found.chunks[-1]
        assert leaf.text.endswith("c = 2")
        assert "\n" not in leaf.text
        assert len(leaf.text) < 200


def test_many_values_are_limited_and_said_to_be() -> None:
    data = ("[" + ",".join(["1"] * 110_000) + "]").encode()
    found = prepare("x.json", data, limits=LIMITS)
    assert len(found.chunks) < 20_100
    assert sum(chunk.embedded for chunk in found.chunks if chunk.type is ChunkType.LEAF) == 2000
    assert "of 110000 values the first 20000 can be asked for one by one" in found.flags


def test_many_patterns_are_limited() -> None:
    words = [f"INFO {chr(97 + a)}{chr(97 + b)}{chr(97 + c)}" for a in range(26) for b in range(26) for c in range(5)]
    found = prepare("x.log", "\n".join([*words, "ERROR rare"]).encode(), limits=LIMITS)
    patterns = [chunk for chunk in found.chunks if chunk.type is ChunkType.PATTERN]
    assert len(patterns) == 2000
    assert patterns[0].text == "ERROR rare"


@pytest.mark.parametrize("kind", DocumentKind)
def test_whatever_it_is_said_to_be_it_is_prepared(kind: DocumentKind) -> None:
    for ending in KINDS:
        found = prepare(f"x{ending}", b"a: 1\n\n# b\n- c\x01\xc3\xa4\n", limits=LIMITS, kind=kind, title="X")
        assert (found.kind, found.n_lines) == (kind, 4)
        assert [chunk.index for chunk in found.chunks] == list(range(len(found.chunks)))
