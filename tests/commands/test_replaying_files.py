"""Files of every kind through a replayed recording: what is read, what is refused and why, and what is left on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clock import rfc3339
from commands.replay import ReplayOptions, replay
from services.documents.limits import KINDS
from services.documents.prepared import DocumentKind
from settings import Settings
from tests.world import START, snowflake

BOT, GUILD, HELP = "1", "9", "11"
LOG_LINE = "2026-02-16T00:00:{:02} INFO  web: request served"
ERROR_LINE = "2026-02-16T00:00:59 ERROR db: connection refused (E-1042)"


@dataclass(frozen=True)
class File:
    name: str
    content: bytes
    question: str = "what is the first ERROR in it, which line?"
    says: str = ""
    """What the answer holds."""
    size: int | None = None
    """As Discord announces it."""


def dispatch(at: float, kind: str, payload: dict[str, Any]) -> str:
    return json.dumps({"at": rfc3339(at), "t": kind, "d": payload}) + "\n"


def record(folder: Path, files: Sequence[File], *, after: str = "") -> Path:
    """A day in which each file comes with a question of somebody else's."""
    path = folder / "day.jsonl"
    beside = folder / "day.jsonl.attachments"
    beside.mkdir(parents=True)
    lines = [
        dispatch(START, "READY", {"user": {"id": BOT, "username": "Millrace"}}),
        dispatch(START, "GUILD_CREATE", {"id": GUILD, "channels": [{"id": HELP, "type": 0, "name": "help"}]}),
    ]
    for n, file in enumerate(files):
        at = START + 300 * (n + 1)
        message_id, attachment_id = str(snowflake(at)), str(5000 + n)
        (beside / attachment_id).write_bytes(file.content)
        size = len(file.content) if file.size is None else file.size
        attachment = {"id": attachment_id, "filename": file.name, "size": size, "url": "https://cdn.discordapp.com/x"}
        author = {"id": str(100 + n), "username": f"user{n}"}
        fields = {"id": message_id, "channel_id": HELP, "guild_id": GUILD, "type": 0, "content": file.question}
        lines.append(dispatch(at, "MESSAGE_CREATE", {**fields, "author": author, "attachments": [attachment]}))
        if after:
            thread = {"id": message_id, "type": 11, "guild_id": GUILD, "parent_id": HELP, "owner_id": BOT}
            lines.append(dispatch(at + 200, after, {**thread, "thread_metadata": {"locked": True, "archived": True}}))
    path.write_text("".join(lines))
    return path


def played(
    folder: Path, files: Sequence[File], capsys: pytest.CaptureFixture[str], **kwargs: str
) -> list[dict[str, Any]]:
    """The lines of the replay, one for each file."""
    recording = record(folder, files, **kwargs)
    settings = Settings.model_validate({"search": {"embeddings": "none"}}).resolve_paths(folder)
    capsys.readouterr()
    assert replay(settings, ReplayOptions(recording, folder / "data", as_json=True)) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return lines[:-1]


def log_of(lines: int) -> str:
    return "\n".join(LOG_LINE.format(n % 60) for n in range(lines - 1)) + f"\n{ERROR_LINE}\n"


CODE = [ending for ending, kind in KINDS.items() if kind is DocumentKind.CODE]


def kinds() -> Iterator[File]:
    log = log_of(30).encode()
    for ending in (".log", ".txt", ".out", ".err", ".log.1"):
        yield File(f"app{ending}", log, says="E-1042")
    records = "\n".join(
        json.dumps({"time": f"2026-02-16T00:00:{n:02}Z", "level": "INFO", "msg": "up"}) for n in range(9)
    )
    yield File("app.jsonl", records.encode(), "how many INFO entries are there?", "9")
    yield File("a.json", b'{\n  "db": {\n    "port": 5432\n  }\n}\n', "what is db.port in it?", "5432")
    yield File("a.yaml", b"db:\n  port: 5432\n", "what is db.port in it?", "5432")
    yield File("a.yml", b"db:\n  port: 5432\n", "what is db.port in it?", "5432")
    yield File("a.toml", b"[db]\nport = 5432\n", "what is db.port in it?", "5432")
    for ending in (".ini", ".cfg", ".conf"):
        yield File(f"a{ending}", b"[db]\nport = 5432\n", "what is db.port in it?", "5432")
    for ending in (".env", ".properties"):
        yield File(f"a{ending}", b"DB_PORT=5432\n", "what is DB_PORT in it?", "5432")
    yield File("a.xml", b"<db>\n  <port>5432</port>\n</db>\n", "what is db.port in it?", "5432")
    yield File("a.csv", b"host,port\n" + b"web,80\ndb,5432\n" * 4, "what is the port of host db in it?", "5432")
    yield File("a.tsv", b"host\tport\n" + b"web\t80\ndb\t5432\n" * 4, "what is the port of host db in it?", "5432")
    for ending in (".md", ".rst", ".adoc"):
        prose = b"Setup\n=====\n\nThe zebra listens on port 5432.\n"
        yield File(f"a{ending}", prose, "on which port does the zebra listen?", "5432")
    for ending in CODE:
        yield File(f"a{ending}", b"zebra_port = 5432\nprint(zebra_port)\n", "what is zebra_port in it?", "5432")


def refused() -> Iterator[File]:
    for ending in ("exe", "dll", "zip", "bin"):
        yield File(f"a.{ending}", b"MZ", says="")
    yield File("a.pdf", b"%PDF-1.7", says="formatted document")
    yield File("noending", b"text", says="without an extension")
    yield File("a.weird", b"text", says="none of the kinds")
    yield File("nul.log", b"one\ntwo\0three\n", says="nul.log")
    yield File("undecodable.log", b"ok\n" + bytes(range(128, 256)) * 20, says="undecodable.log")
    yield File("empty.log", b"", says="empty")
    yield File("large.log", b"x", says="10 MiB", size=10 * 1024 * 1024 + 1)
    yield File("understated.log", b"x" * (10 * 1024 * 1024 + 1), says="understated.log", size=10)
    yield File("lines.log", b"a\n" * 200_001, says="200,000 is the most")


def encodings() -> Iterator[File]:
    text = log_of(30)
    yield File("bom.log", b"\xef\xbb\xbf" + text.encode(), says="E-1042")
    yield File("utf16le.log", b"\xff\xfe" + text.encode("utf-16-le"), says="E-1042")
    yield File("utf16be.log", b"\xfe\xff" + text.encode("utf-16-be"), says="E-1042")
    yield File("crlf.log", text.replace("\n", "\r\n").encode(), says=":30")
    yield File("cr.log", text.replace("\n", "\r").encode(), says=":30")
    yield File("latin.log", text.replace("web", "wéb").encode("latin-1"), says="E-1042")
    yield File("longline.log", b"x" * 1_000_000 + b"\n" + text.encode(), says="E-1042")


SECRETS = {
    "email": "someone.private@example.org",
    "phone": "+1 415-555-0134",
    "bearer": "Authorization: Bearer abcdefghijklmnopqrstuvwxyz0123456789",
    "openai": "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "github": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "slack": "xoxb-123456789012-123456789012-abcdefghijklmnopqrstuvwx",
    "password": "password = hunter2hunter2",
    "passwd": "passwd: hunter2hunter2",
    "pwd": "pwd=hunter2hunter2",
    "secret": "secret = hunter2hunter2",
    "token": "token=hunter2hunter2",
    "url": "postgres://admin:hunter2hunter2@db.example.org/x",
    "key": "-----BEGIN PRIVATE KEY-----\nMIIEvhunter2hunter2\nhunter2hunter2\n-----END PRIVATE KEY-----",
}


def test_every_accepted_kind_is_read_and_answered_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = list(kinds())
    lines = played(tmp_path, files, capsys)
    wrong = [
        (file.name, line["outcome"], line["reason"], line["reply_text"])
        for file, line in zip(files, lines, strict=True)
        if line["outcome"] != "replied" or file.says not in line["reply_text"] or not line["sources"]
    ]
    assert not wrong


def test_every_refused_kind_is_answered_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = list(refused())
    lines = played(tmp_path, files, capsys)
    wrong = [
        (file.name, line["outcome"], line["reason"], line["reply_text"])
        for file, line in zip(files, lines, strict=True)
        if line["outcome"] != "replied" or file.says not in line["reply_text"] or line["sources"]
    ]
    assert not wrong


def test_odd_encodings_and_endless_lines_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = list(encodings())
    lines = played(tmp_path, files, capsys)
    wrong = [
        (file.name, line["outcome"], line["reply_text"])
        for file, line in zip(files, lines, strict=True)
        if line["outcome"] != "replied" or file.says not in line["reply_text"]
    ]
    assert not wrong


def test_secrets_of_every_shape_reach_neither_an_answer_nor_the_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "\n".join(f"2026-02-16T00:00:00 INFO {name}: {secret}" for name, secret in SECRETS.items())
        + f"\n{ERROR_LINE}\n"
    )
    lines = played(tmp_path, [File("app.log", text.encode(), "what is on lines 1 to 20 of app.log?")], capsys)
    assert lines[0]["outcome"] == "replied"
    number = text.splitlines().index(ERROR_LINE) + 1
    stored = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    for hidden in ("hunter2", "someone.private", "555-0134", "abcdefghijklmnop", "AKIAIOSF", "AIzaSyA1", "xoxb-1234"):
        assert hidden not in lines[0]["reply_text"]
        assert hidden.encode() not in stored
    assert number == len(text.splitlines()), "lines keep their numbers"


def test_two_replays_of_files_print_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [*list(kinds())[:12], *list(refused())[:4]]
    assert played(tmp_path / "one", files, capsys) == played(tmp_path / "two", files, capsys)


@pytest.mark.slow
def test_a_log_as_large_as_may_be_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """10 MiB, 200,000 lines."""
    log = log_of(200_000).encode()
    first, rest = log.split(b"\n", 1)
    room = 10 * 1024 * 1024 - len(log)
    lines = rest.split(b"\n")
    for at in range(len(lines) - 2):  # spread over the file, as a line must not grow too long
        added = min(room, 20)
        lines[at] += b"x" * added
        room -= added
    log = b"\n".join([first, *lines])
    assert (len(log), log.count(b"\n")) == (10 * 1024 * 1024, 200_000)
    (line,) = played(tmp_path, [File("app.log", log, "how many ERROR entries are in app.log?")], capsys)
    assert line["outcome"] == "replied"
