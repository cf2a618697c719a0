from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.documents.limits import FileLimits
from services.documents.prepared import ChunkType, Prepared
from services.documents.reading.preparing import prepare
from services.documents.reading.redacting import DocumentRedactors

KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\n-----END PRIVATE KEY-----"
TOKEN = "MTA5" + "x" * 22 + ".GabcDE." + "y" * 38


def prepared(filename: str, text: str) -> Prepared:
    return prepare(filename, text.encode(), limits=FileLimits())


def everything(found: Prepared) -> str:
    return "\n".join([found.text, *(chunk.text for chunk in found.chunks)])


@pytest.mark.parametrize(
    "secret",
    [
        "ann.smith+x@mail.example.org",
        "+49 170 1234567",
        "+491701234567",
        "+1 (555) 234-5678",
        "+44 20 7946 0958",
        "(555) 234-5678",
        "555-234-5678",
        "0171 2345678",
        "0171/2345678",
        "(030) 123-4567",
        "020 7946 0958",
        "07700 900123",
        "01 23 45 67 89",
        "02 9876 5432",
        "sk-proj-abcDEF1234567890abcdef",
        "sk-proj-AbCdEfGhIjKlMnOpQrSt",
        "sk-AbCdEfGhIjKlMnOpQrStUvWx",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSy0123456789012345678901234567890123",
        "ghp_" + "a" * 36,
        "xoxb-1234567890-abcdef",
        TOKEN,
        "MIIEvQIBADANBgkqhkiG9w0BAQ",
    ],
)
@pytest.mark.parametrize("filename", ["a.log", "a.md", "a.txt", "a.yaml", "a.ini", "a.json", "a.py", "a.csv", "a.xml"])
def test_no_secret_of_a_known_shape_comes_through(filename: str, secret: str) -> None:
    text = f"first\nnote = x {secret if not secret.startswith('MII') else KEY} y\nlast\n"
    found = prepared(filename, text)
    assert secret not in everything(found)
    assert found.text.split("\n")[0] == "first"
    assert found.n_lines == text.count("\n")
    assert found.text.split("\n")[found.n_lines - 1] == "last"
    assert sum(found.redactions.values()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b by sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4",
        "job 123e4567-e89b-12d3-a456-426614174000 at 10.251.73.220:50010, blk_-6952295868487656571",
        "2026-02-01 10:00:00,123 +0100 took 1234567890 ms, id 1445144423722, order 2023-456-78901",
        "left-pad@1.3.0 image@sha256:abc getty@tty1.service git@github.com:acme/shop.git Worker@774",
        "sizes 512 640 1024, 200 300 4000, grown by +104857600 bytes, +12 345 and -555-234",
        "rhost=220-135-1511.example.org 555.234.56789 v1.234.567.8901",
        "order 01712345678 id=0171-2345678 #0171 2345678 INC0123-456789 0x0171 2345678",
        "0123 4567890 0222, pid 01234 5678 9012 3456, 00:11:22:33:44:55, 01 02 03 04 05 06 07",
        "phone 2026-02-01 10:00, mobile 5 failed at 12:33, phone 10.251.73.220:50010",
        "the scikit sk-learn-based-classification, sk-LearnBased",
    ],
)
def test_hashes_ids_addresses_and_versions_stay(text: str) -> None:
    assert prepared("a.log", text).text == text


@pytest.mark.parametrize("text", ["tel: 01712345678", '"phone": "01712345678"', "mobile number 612 345 678"])
def test_a_number_that_is_said_to_be_one_of_a_telephone_is_hidden(text: str) -> None:
    assert list(prepared("a.log", text).redactions) == ["[redacted: phone number]"]


@pytest.mark.parametrize(
    ("filename", "text", "values"),
    [
        ("a.yaml", "db:\n  password:\n    SEKRET\n", 1),
        ("a.yaml", "private_key: |\n  SEKRET\n  SEKRET\n\nport: 1\n", 1),
        ("a.yaml", 'api_keys:\n  - SEKRET\n  - "SEKRET"\n', 2),
        ("a.yaml", "env:\n- name: DB_PASSWORD\n  value: SEKRET\n", 1),
        ("a.yaml", "env:\n- DB_CREDENTIAL='SEKRET'\n", 1),
        ("a.yaml", "kind: Secret\ndata:\n  user: SEKRET\nstringData: {x: SEKRET}\n", 2),
        ("a.yaml", "tokens:\n- SEKRET7a8b9c0d1e2f\n- stop\n", 1),
        ("a.yaml", "a: {{ template }}\nsecret_key: SEKRET\n", 1),
        ("a.json", '{"private_key": "SEKRET", "passwords": ["SEKRET", "b"]}', 2),
        ("a.toml", 'signing_key = """\nSEKRET\nSEKRET"""\ndb = { access_key = "SEKRET" }\n', 2),
        ("a.properties", "db.credential=SEKRET # why\nlicense.key = SEKRET \\\n  SEKRET\n", 2),
        ("a.conf", "http {\n  auth_token SEKRET;\n}\n", 1),
        ("a.xml", '<c><dbPassword>SEKRET</dbPassword><add key="DbToken" value="SEKRET"/></c>', 2),
    ],
)
def test_a_key_that_names_a_secret_hides_its_value_alone(filename: str, text: str, values: int) -> None:
    found = prepared(filename, text)
    assert "SEKRET" not in everything(found)
    assert found.text.count("\n") == text.count("\n")
    assert found.redactions == {"[redacted: secret]": values}


@pytest.mark.parametrize(
    ("filename", "text"),
    [
        ("a.yaml", "secret: true\nmax_token: ''\npassword: ${DB_PASSWORD}\npassword_file: /run/x\nsecretName: x\n"),
        ("a.yaml", "secrets:\n- db-password\ntokens: [stop, end]\nmax_session_key: 5\n"),
        ("a.py", "token: str = None\ntoken = next(tokens)\ndef f(password: Password) -> None: ...\n"),
    ],
)
def test_what_only_sounds_like_a_secret_stays(filename: str, text: str) -> None:
    assert prepared(filename, text).text == text


def test_the_secrets_of_the_program_are_known() -> None:
    found = prepare("a.log", b"key s3cr3t-value", limits=FileLimits(), redactors=DocumentRedactors(["s3cr3t-value"]))
    assert found.text == "key [redacted: known secret]"


names = st.sampled_from(["name", "password", "a b", "token", "data", "kind", "value", "tokens", "x.y"])
values = st.one_of(
    st.text("ab1: #'\"\\\n-", max_size=12), st.integers(), st.booleans(), st.sampled_from(["Secret", KEY])
)
trees = st.recursive(
    values,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=12,
)


@given(
    st.dictionaries(names, trees, min_size=1, max_size=4),
    st.sampled_from([None, 2]),
    st.sampled_from(["a.json", "a.yaml"]),
)
def test_line_numbers_never_move_and_each_value_stands_in_its_line(
    tree: object, indent: int | None, filename: str
) -> None:
    text = json.dumps(tree, indent=indent)
    found = prepared(filename, text)
    assert found.text.count("\n") == text.count("\n")
    assert "MIIEvQ" not in everything(found)
    lines = text.split("\n")
    for chunk in found.chunks:
        if chunk.type is ChunkType.LEAF:
            value = chunk.text.partition(" = ")[2]
            spoken = "\n".join(lines[chunk.line_start - 1 : chunk.line_end])
            if value.isalnum():
                assert value in spoken or value == "None"
