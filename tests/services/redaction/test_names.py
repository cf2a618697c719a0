"""One notion of what a secret's name is, whatever format the name stands in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.documents.limits import FileLimits
from services.documents.prepared import Prepared
from services.documents.reading.preparing import prepare
from services.documents.store import protocol
from services.documents.store.collection_files import Folders
from services.documents.store.document_store import sqlite_store
from services.documents.store.protocol import Collection, NewDocument, Origin
from services.documents.tools.core import DocumentQATool
from services.documents.tools.libraries import CASE_EVIDENCE, Status
from services.documents.tools.scopes import FileShelf

NAMES = (
    *("password", "passwd", "pwd", "secret", "token", "passphrase", "api_key", "apiKey", "access_key", "secret_key"),
    *("wifi_psk", "wifiPsk", "passcode", "totp_seed", "recovery_codes"),
    *("SECRET_KEY", "private_key", "privateKey", "credential", "credentials", "connection_string", "ConnectionString"),
    *(
        "DB_PASS",
        "DB_PASSWORD",
        "smtp_pass",
        "dbPass",
        "MINIO_SECRET_KEY",
        "AUTH_TOKEN",
        "client_secret",
        "signing_key",
    ),
    *("account_key", "encryption_key", "shared_key", "session_key", "master_key", "license_key", "password_hash"),
    *("api_keys", "passwords"),
)
Write = Callable[[str, str], str]

WAYS: dict[str, tuple[str, Write]] = {
    "log": ("a.log", lambda name, value: f"2026-02-01 10:00:00 INFO start {name}={value} port=1"),
    "log with a colon": ("a.log", lambda name, value: f"2026-02-01 10:00:00 INFO start {name}: {value}"),
    "log with JSON": ("a.log", lambda name, value: f'{{"level":"INFO","{name}":"{value}","port":1}}'),
    "log with a list": ("a.log", lambda name, value: f'{{"level":"INFO","{name}":["{value}", "{value}"],"port":1}}'),
    "log with JSON in JSON": ("a.log", lambda name, value: rf'{{"m":"{{\"{name}\":[\"{value}\"]}}"}}'),
    "log with a list of words": ("a.log", lambda name, value: f"INFO start {name}=[{value}, {value}] port=1"),
    "log with an object": ("a.log", lambda name, value: f'INFO {{"{name}":{{"value":"{value}"}}}}'),
    "log that was cut": ("a.log", lambda name, value: f'INFO {{"{name}":["{value}'),
    "log with XML": ("a.log", lambda name, value: f"INFO sent <a><{name}>{value}</{name}></a>"),
    "text": ("a.txt", lambda name, value: f"My {name} = {value}"),
    "markdown": ("a.md", lambda name, value: f"# Setup\n\nSet `{name}: {value}` first."),
    "markdown with a block": (
        "a.md",
        lambda name, value: f'# Setup\n\n```json\n{{\n  "{name}": [\n    "{value}"\n  ]\n}}\n```',
    ),
    "python": ("a.py", lambda name, value: f'import os\n{name} = "{value}"'),
    "python with bytes": ("a.py", lambda name, value: f'import os\n{name} = b"{value}"'),
    "python with a type": ("a.py", lambda name, value: f'import os\n{name}: str | None = "{value}"'),
    "python with a list": ("a.py", lambda name, value: f'x = {{\n    "{name}": ["{value}",\n    "{value}"],\n}}'),
    "python with lines": ("a.py", lambda name, value: f'{name} = """\n{value}\n"""'),
    "php": ("a.php", lambda name, value: f"define( '{name}', '{value}' );"),
    "go": ("a.go", lambda name, value: f'const {name} string = "{value}"'),
    "shell": ("a.sh", lambda name, value: f"export {name}='{value}'"),
    "yaml": ("a.yaml", lambda name, value: f"db:\n  {name}: {value}\n  port: 1"),
    "yaml with lines": ("a.yaml", lambda name, value: f"db:\n  {name}: |\n    {value}\n    {value}\n  port: 1"),
    "yaml with a list": ("a.yaml", lambda name, value: f"db:\n  {name}:\n  - {value}\n  port: 1"),
    "yaml with an object": ("a.yaml", lambda name, value: f"db:\n  {name}:\n    value: {value}"),
    "yaml by name": ("a.yaml", lambda name, value: f"env:\n- name: {name}\n  value: {value}"),
    "a template": ("a.yaml", lambda name, value: f"{{{{ if x }}}}\n{name}: {value}\n{{{{ end }}}}"),
    "json": ("a.json", lambda name, value: f'{{\n  "a": 1,\n  "{name}": "{value}"\n}}'),
    "json in a line": ("a.json", lambda name, value: f'{{"{name}":["{value}"], "port": 1}}'),
    "toml": ("a.toml", lambda name, value: f'[db]\n{name} = "{value}"\nport = 1'),
    "toml with a list": ("a.toml", lambda name, value: f'[db]\n{name} = [\n  "{value}",\n]'),
    "ini": ("a.ini", lambda name, value: f"[db]\n{name} = {value}\nport = 1"),
    "env": ("a.env", lambda name, value: f"{name}={value}\nPORT=1"),
    "properties": ("a.properties", lambda name, value: f"db.{name}={value}\ndb.port=1"),
    "xml": ("a.xml", lambda name, value: f"<c>\n<p>1</p><{name}>{value}</{name}>\n</c>"),
    "xml over lines": ("a.xml", lambda name, value: f"<c>\n<{name}\n  x='>'>\n  {value}\n</{name}>\n</c>"),
    "xml as data": ("a.xml", lambda name, value: f"<c>é<{name}><![CDATA[{value}]]></{name}></c>"),
    "xml in an attribute": ("a.xml", lambda name, value: f"<c>\n<db a='é' {name}='{value}'/>\n</c>"),
    "xml by name": (
        "a.xml",
        lambda name, value: f'<c><p name="{name}">{value}</p><add value="{value}" key="{name}"/></c>',
    ),
    "xml of two": (
        "a.xml",
        lambda name, value: (
            f"<c><p><name>port</name><value>1</value></p>\n<p><name>db.{name}</name>\n<value>{value}</value></p></c>"
        ),
    ),
    "what is no xml": ("a.xml", lambda name, value: f"<c><{name}>{value}</{name}>"),
}

# What no placeholder looks like, and nothing else in those texts.
values = st.text("abcXYZ0123_/+!%-", min_size=3, max_size=14).map("h{}q7Z".format)


def everything(found: Prepared) -> str:
    return "\n".join(
        [found.text, *(f"{chunk.text} {chunk.heading} {chunk.key_path} {dict(chunk.extra)}" for chunk in found.chunks)]
    )


@pytest.mark.parametrize("way", WAYS)
@given(name=st.sampled_from(NAMES), value=values)
def test_what_stands_behind_the_name_of_a_secret_is_hidden_in_every_format(way: str, name: str, value: str) -> None:
    filename, write = WAYS[way]
    text = f"{write(name, value)}\n"
    found = prepare(filename, text.encode(), limits=FileLimits())
    assert value not in everything(found), found.text
    assert found.text.count("\n") == text.count("\n")
    assert found.redactions


@pytest.mark.parametrize("way", WAYS)
def test_the_other_lines_stay_where_they_are(way: str) -> None:
    filename, write = WAYS[way]
    text = write("secret_key", "hunter2abc")
    found = prepare(filename, text.encode(), limits=FileLimits())
    assert len(found.text.split("\n")) == len(text.split("\n"))
    for before, after in zip(text.split("\n"), found.text.split("\n"), strict=True):
        assert before == after or "[redacted: secret]" in after


@pytest.mark.parametrize("way", ["log with a list", "python", "yaml with lines", "xml", "xml as data"])
async def test_no_word_of_it_can_be_asked_for(way: str, tmp_path: Path) -> None:
    """Neither by words, nor in an answer."""
    filename, write = WAYS[way]
    store = sqlite_store(Folders(tmp_path, tmp_path))
    prepared = prepare(filename, write("private_key", "hunter2abc").encode(), limits=FileLimits())
    await store.add(Collection(protocol.case_collection("7"), "case", "7"), [NewDocument(Origin(filename), prepared)])
    tool = DocumentQATool(config=CASE_EVIDENCE, shelf=FileShelf(store))
    named = await tool.answer_question("What is the private_key?", "7")
    assert named.status is Status.OK
    assert "hunter2abc" not in named.answer
    assert (await tool.answer_question("Where is hunter2abc?", "7")).status is Status.NOT_FOUND
    await store.close()


@pytest.mark.parametrize(
    "text",
    [
        "Unexpected token: punc",
        "SyntaxError: Unexpected token: name (foo)",
        'Invalid token: "foo"',
        "Invalid token: 7",
        "Bad password: 3 attempts left",
        "Invalid password: must contain a digit",
        "PASS: test_pool_1",
        "pass: 12 fail: 3",
        "max_token: 5",
        "private key: /etc/ssl/private/site.pem",
        "ssl_certificate_key /etc/ssl/site.key",
        "proxy_pass: http://127.0.0.1:8080",
        "token: [",
        "token: [API token](https://example.org/token)",
        "credentials: include",
    ],
)
@pytest.mark.parametrize("filename", ["a.log", "a.txt", "a.md"])
def test_what_only_sounds_like_a_secret_in_prose_stays(filename: str, text: str) -> None:
    assert prepare(filename, text.encode(), limits=FileLimits()).text == text


@pytest.mark.parametrize(
    ("before", "value"),
    [
        ("Invalid token: ", "a1b2c3d4e5f6"),
        ("Bad password: ", "hunter2"),
        ("Pass: ", "hunter2"),
        ("PASS=", "hunter2"),
        ("pass=", "12345678"),
        ("token=Bearer ", "aBcDeFgHiJ"),
    ],
)
def test_what_was_refused_may_be_a_secret_all_the_same(before: str, value: str) -> None:
    assert value not in prepare("a.log", f"{before}{value} x".encode(), limits=FileLimits()).text
