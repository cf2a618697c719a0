"""Names that only sound like those of secrets, and what stands below those that are."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.documents.limits import FileLimits
from services.documents.prepared import ChunkType
from services.documents.reading.preparing import prepare
from services.redaction import Redactor
from services.redaction.named_secrets import is_constant, is_count, is_number, is_secret, is_word, leads_to_secret
from services.redaction.redactor import CODE_SHAPES

LABEL = "[redacted: secret]"
redact = Redactor().text


def shown(filename: str, text: str) -> str:
    return prepare(filename, text.encode(), limits=FileLimits()).text


def leaves(filename: str, text: str) -> list[str]:
    found = prepare(filename, text.encode(), limits=FileLimits())
    return [chunk.text for chunk in found.chunks if chunk.type is ChunkType.LEAF]


@pytest.mark.parametrize("filename", ["a.log", "a.txt", "a.md"])
@pytest.mark.parametrize(
    "text",
    [
        "tests pass: 12",
        "tests pass: 12.",
        "pass: 12, fail: 3",
        "pass: 1,204; fail: 3",
        "pass=12,fail=3",
        "pass: 98.5% of all",
        "pass: 12/15 (3 left)",
        "pass: 12ms",
        "passed {pass: [12, 15]}",
        '{"pass":12,"fail":3}',
        '{"pass": 120000}',
        "compiler pass: inlining",
        "compiler pass: dead-code-elimination, then more",
        "credentials: 3 loaded",
        "Credentials: loaded from the vault",
        "Wrong password: account locked",
        "Access token: granted",
        "Expired token: session closed.",
        "Invalid auth token: revoked by its owner",
        "Wrong api key: account disabled",
    ],
)
def test_counts_and_words_behind_names_that_only_sound_so_stay(filename: str, text: str) -> None:
    assert shown(filename, text) == text


@pytest.mark.parametrize(
    ("filename", "text", "leaf"),
    [
        ("a.yaml", "pass: 12\nfail: 3\n", "pass = 12"),
        ("a.yaml", "pass: true\n", "pass = true"),
        ("a.yaml", "credentials: 3\n", "credentials = 3"),
        ("a.json", '{"pass": 12, "fail": 3}', "pass = 12"),
        ("a.json", '{"pass": false}', "pass = false"),
        ("a.toml", "pass = 12\n", "pass = 12"),
        ("a.ini", "[tests]\npass = 12\n", "tests pass = 12"),
        ("a.xml", "<r><pass>12</pass><credentials>true</credentials></r>", "r pass = 12"),
        ("a.yaml", "volumes:\n- secret:\n    secretName: web\n", "volumes 0 secret secretName = web"),
        ("a.yaml", "token:\n  type: bearer\n  ttl: 3600\n", "token ttl = 3600"),
    ],
)
def test_counts_switches_and_descriptions_in_configurations_stay(filename: str, text: str, leaf: str) -> None:
    assert shown(filename, text) == text
    assert leaf in leaves(filename, text)


@pytest.mark.parametrize(
    ("filename", "text", "value"),
    [
        ("a.log", "DB_PASS=hunter", "hunter"),
        ("a.log", "DB_PASS: 1234", "1234"),
        ("a.log", 'pass = "s3cret!x"', "s3cret!x"),
        ("a.log", 'pass: "1234"', "1234"),
        ("a.log", '{"pass":"1234"}', "1234"),
        ("a.log", "pass=swordfish", "swordfish"),
        ("a.log", "pass: 1234abcd", "1234abcd"),
        ("a.log", "smtp_pass: Xy9kLm", "Xy9kLm"),
        ("a.log", "credentials: Xy9kLm", "Xy9kLm"),
        ("a.log", "Access token: hunter2", "hunter2"),
        ("a.log", "Access token: xkcdqwrtzz", "xkcdqwrtzz"),
        ("a.log", "access_token: swordfish", "swordfish"),
        ("a.log", "password: swordfish", "swordfish"),
        ("a.log", "access token=swordfish", "swordfish"),
        ("a.yaml", "pass: swordfish\n", "swordfish"),
        ("a.yaml", "pass: '1234'\n", "1234"),
        ("a.yaml", "wrong password: swordfish\n", "swordfish"),
        ("a.json", '{"pass": "1234"}', "1234"),
        ("a.xml", "<r><pass>swordfish</pass></r>", "swordfish"),
    ],
)
def test_what_looks_like_a_secret_is_hidden_all_the_same(filename: str, text: str, value: str) -> None:
    assert value not in shown(filename, text)
    assert LABEL in shown(filename, text)


words = st.sampled_from(["inlining", "granted", "loaded", "vectorize", "account", "login", "linker", "loop-unroll"])
ends = st.sampled_from(["", ",", ".", " and on", ", fail: 3", "; next"])


@given(st.sampled_from(["pass", "tests pass", "Pass", "credentials"]), st.integers(0, 9999), ends)
def test_no_count_is_hidden(name: str, count: int, end: str) -> None:
    for text in (f"{name}: {count}{end}", f"x {json.dumps({name: count, 'fail': 3})}"):
        assert redact(text) == text


judgements = st.sampled_from(["Wrong", "invalid", "Bad", "expired", "Unexpected", "Access", "revoked", "Incorrect"])
secrets = st.text("abcXYZ0123!%-", min_size=3, max_size=10).map("h{}q7Z".format)


@given(judgements, st.sampled_from(["password", "passphrase", "secret", "api key"]), words, ends, secrets)
def test_behind_a_judgement_words_stay_and_secrets_do_not(
    said: str, name: str, word: str, end: str, secret: str
) -> None:
    assert redact(f"{said} {name}: {word}{end}") == f"{said} {name}: {word}{end}"
    assert secret not in redact(f"{said} {name}: {secret}{end}")


_SECRET = re.compile(r'(?<=")h[^"]+q7Z(?=")')
keys = st.sampled_from(["v", "user", "a b", "data", "x.y", "url", "key"])
trees = st.recursive(
    secrets,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)


@given(st.sampled_from(["secret", "password", "client_secret", "credentials"]), trees, st.booleans())
def test_everything_below_the_name_of_a_secret_is_hidden(name: str, tree: object, compact: bool) -> None:
    text = json.dumps({"first": 1, name: tree, "port": 5432}, separators=(",", ":") if compact else None)
    escaped = f'x m="{json.dumps(text)[1:-1]}"'
    for filename, written in (
        ("a.log", f"INFO {text}"),
        ("a.log", escaped),
        ("a.json", text),
        ("a.json", json.dumps(json.loads(text), indent=2)),
        ("a.yaml", json.dumps(json.loads(text), indent=2)),
    ):
        found = "\n".join([shown(filename, written), *leaves(filename, written)])
        assert not [value for value in _SECRET.findall(text) if value in found]
        assert "5432" in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"tokens":["x"]}', f'{{"tokens":["{LABEL}"]}}'),
        ('{"tokens":["x",{"v":"y2"}],"n":1}', f'{{"tokens":["{LABEL}",{{"v":"{LABEL}"}}],"n":1}}'),
        ('{"secret":{"v":"x"},"n":1}', f'{{"secret":{{"v":"{LABEL}"}},"n":1}}'),
        ("{'secret': {'v': 'x'}, 'n': 1}", f"{{'secret': {{'v': '{LABEL}'}}, 'n': 1}}"),
        ('{"secret":["x",{"v":"y"}],"n":1}', f'{{"secret":["{LABEL}",{{"v":"{LABEL}"}}],"n":1}}'),
        ("secret={v=x, w: {u: y}} n=1", f"secret={{v={LABEL}, w: {{u: {LABEL}}}}} n=1"),
        ('{"secret":{"v":"x","w":["y', f'{{"secret":{{"v":"{LABEL}","w":["{LABEL}'),
        ('{"token":{"type":"bearer","v":"x"}}', f'{{"token":{{"type":"bearer","v":"{LABEL}"}}}}'),
        ("secret: {v: x1=y2, w=z}", f"secret: {{v: {LABEL}, w={LABEL}}}"),
        ("secret: {v: [redacted: api key]}", "secret: {v: [redacted: api key]}"),
    ],
)
def test_in_a_line_what_is_below_goes_and_the_rest_stays(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"tokens":{"prompt":12,"completion":30},"n":1}',
        '{"tokens":["stop","end"],"secrets":["db-password","DB_PASSWORD"]}',
        '{"tokens": [101, 20457]}',
        '{"tokens": 4000, "secrets": "none"}',
        "tokens: [Stop, End]",
    ],
)
def test_counts_and_names_in_lists_of_tokens_stay(text: str) -> None:
    assert redact(text) == text


@given(
    st.sampled_from(["0800 1234567", "0171/2345678", "+49 170 1234567", "(555) 234-5678", "+491701234567"]),
    st.sampled_from(["ns", "us", "ms", "s", "B", "kB", "MB", "bytes", "rows", "%"]),
    st.sampled_from([" ", "  "]),
    st.sampled_from(["", ".", ", done", " in all"]),
)
def test_a_number_with_a_unit_is_none_of_a_telephone(number: str, unit: str, gap: str, end: str) -> None:
    text = f"took {number}{gap}{unit}{end}"
    assert shown("a.log", text) == text
    assert number not in shown("a.log", f"call {number} {unit.strip('%')}x{end}")


def test_a_part_of_a_list_is_not_called_by_what_is_secret() -> None:
    found = prepare(
        "a.json", b'{"secret": [{"v": "x1", "key": "hunter2"}], "b": [{"name": "n1", "v": 5}]}', limits=FileLimits()
    )
    assert "hunter2" not in "".join(chunk.text for chunk in found.chunks)
    assert "b n1 v = 5" in [chunk.text for chunk in found.chunks]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('import os\npassword = {"value": "hunter2"}', False),
        ('import os\npassword = {"value": "<yours>"}', True),
        ('import os\nd = {"tokens": ["x"], "token": {"v": "y"}}', True),
    ],
)
def test_objects_in_programs_are_read_as_before(text: str, kept: bool) -> None:
    assert (shown("a.py", text) == text) is kept


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1  # password: hunter22 then", f"x = 1  # password: {LABEL} then"),
        ("x = 1  # password: hunter; then", "x = 1  # password: hunter; then"),
        ("login(token=abc12345)", "login(token=abc12345)"),
        ('if token == "abc1234x":', 'if token == "abc1234x":'),
        ('token = "abc1234x"', f'token = "{LABEL}"'),
        ('password = ["x1", {"v": "y"}]', f'password = ["{LABEL}", {{"v": "y"}}]'),
        ('get("DB_PASSWORD", "hunter2")', f'get("DB_PASSWORD", "{LABEL}")'),
        ('get("DB_PASSWORD", "hunter2" + salt)', 'get("DB_PASSWORD", "hunter2" + salt)'),
    ],
)
def test_in_programs_texts_and_what_looks_like_no_name_are_values(text: str, expected: str) -> None:
    assert Redactor(shapes=CODE_SHAPES).text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("secret: {v: x1\nuser: ann}", f"secret: {{v: {LABEL}\nuser: ann}}"),
        ('secret: {"v": "x1",\n"user": "ann"}', f'secret: {{"v": "{LABEL}",\n"user": "ann"}}'),
        ('secret: ["x1",\n"x2"\n]\n"ann"', f'secret: ["{LABEL}",\n"{LABEL}"\n]\n"ann"'),
        ('secret: ["x1",\n["ann"]]', f'secret: ["{LABEL}",\n["ann"]]'),
        ('"tokens": ["x1",\n"ann1"]', f'"tokens": ["{LABEL}",\n"ann1"]'),
    ],
)
def test_only_lists_of_texts_go_on_in_the_next_line(text: str, expected: str) -> None:
    assert redact(text) == expected


def test_a_text_in_quotes_is_no_word_of_a_sentence() -> None:
    assert redact('credentials: ["granted"]') == f'credentials: ["{LABEL}"]'
    assert redact("credentials: granted") == "credentials: granted"


def test_a_list_whose_name_says_what_kind_of_tokens_holds_secrets_only() -> None:
    assert redact('{"access_tokens": ["stop"], "tokens": ["stop"]}') == (
        f'{{"access_tokens": ["{LABEL}"], "tokens": ["stop"]}}'
    )


MIXED = "AbcDefGhiJklMnoPqrStuVwx"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("tokens", MIXED, True),
        ("tokens", MIXED.lower(), False),
        ("tokens", MIXED.upper(), False),
        ("tokens", MIXED[:19], False),
        ("tokens", MIXED[:20], True),
        ("tokens", "a1b2c3d4e5f6a7b8", True),
        ("tokens", "a1b2c3d4e5f6a7b", False),
        ("unexpected token", "a1b2c3d4", True),
        ("unexpected token", "a1b2c3d", False),
        ("unexpected token", "identifier", False),
        ("max_token", "4000", False),
        ("token", "4000", True),
    ],
)
def test_where_names_may_stand_only_what_looks_generated_is_a_secret(name: str, value: str, secret: bool) -> None:
    assert is_secret(name, value) is secret


def test_an_element_has_two_names() -> None:
    assert leads_to_secret(("property(db.password)",), "hunter2")
    assert leads_to_secret(("password(main)",), "hunter2")
    assert not leads_to_secret(("property(db.user)",), "ann")


def test_a_judgement_that_is_hidden_itself_is_none() -> None:
    once = redact("secret=Wrong password: granted")
    assert once == f"secret={LABEL} password: {LABEL}"
    assert redact(once) == once


@pytest.mark.parametrize(
    ("looks_so", "those", "others"),
    [
        (is_count, ["12,", "-3", "1,204", "12,fail=3"], ["12345", "12ab", ""]),
        (is_number, ["123456", "-1.5e3,"], ["1x"]),
        (is_word, ["granted.", "a", "db-password"], ["xkcd", "Granted", "a1", "x"]),
        (is_constant, ["DB_PASSWORD"], ["ABC", "x"]),
    ],
)
def test_looks_of_values(looks_so: Callable[[str], object], those: list[str], others: list[str]) -> None:
    assert [value for value in (*those, *others) if looks_so(value)] == those


@pytest.mark.parametrize(
    "text", ['"secret":{' * 10_000, '"secret":[' * 10_000, 'secret={"' * 10_000, '"secret":{\n' * 9000, "a-" * 50_000]
)
def test_no_nesting_takes_long(text: str) -> None:
    begun = time.process_time()
    redact(text)
    assert time.process_time() - begun < 2
