from __future__ import annotations

import hashlib

import pytest

from services.documents import refusal_text
from services.documents.limits import KINDS, FileLimits, FileRefused, check_file
from services.documents.prepared import DocumentKind
from services.documents.reading.preparing import prepare

LIMITS = FileLimits()


def test_a_log_is_prepared_whole() -> None:
    data = b"2026-02-01 10:00:00 ERROR login of ann@example.org failed, password=hunter2\r\n\r\nTry again\r"
    found = prepare("app.log", data, limits=LIMITS)
    assert found.text == (
        "2026-02-01 10:00:00 ERROR login of [redacted: email] failed, password=[redacted: secret]\n\nTry again\n"
    )
    assert (found.kind, found.n_lines, len(found.lines)) == (DocumentKind.LOG, 3, 3)
    assert found.redactions == {"[redacted: email]": 1, "[redacted: secret]": 1}
    assert (found.size, found.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert not any("hunter2" in chunk.text or "ann@" in chunk.text for chunk in found.chunks)


def test_secrets_in_configurations_are_in_no_chunk() -> None:
    data = b"db:\n  password: hunter2\n  environment:\n    - DB_PASSWD=gitea1\n    - HOST=db\n"
    found = prepare("compose.yaml", data, limits=LIMITS)
    assert [chunk.text for chunk in found.chunks[1:]] == [
        "db password = [redacted: secret]",
        "db environment DB_PASSWD = [redacted: secret]",
        "db environment HOST = db",
    ]
    assert "hunter2" not in found.text + found.chunks[0].text


@pytest.mark.parametrize("ending", sorted(KINDS))
def test_every_accepted_kind_of_file_is_prepared(ending: str) -> None:
    found = prepare(f"file{ending}", b"key: value\nsecond line\n", limits=LIMITS)
    assert found.n_lines == 2
    assert found.chunks


@pytest.mark.parametrize(
    ("filename", "data", "reason"),
    [
        ("a.exe", b"x", "a program"),
        ("a.zip", b"x", "an archive"),
        ("a.log.gz", b"x", "an archive"),
        ("a.bin", b"x", "binary data"),
        ("shot.PNG", b"x", "a picture"),
        ("a.pdf", b"x", "a formatted document"),
        ("a.xyz", b"x", "files ending in .xyz"),
        ("Makefile", b"x", "without an extension"),
        ("a.log", b"", "is empty"),
        ("a.log", b"a\x00b", "NUL bytes"),
        ("a.log", "a\x00b".encode("utf-16"), "NUL bytes"),
        ("a.log", b"abc\xff" * 20, "25% of it cannot be decoded"),
        ("a.log", b"x" * 101, "101 bytes, and 100 bytes is the most"),
        ("a.log", b"\n" * 11, "11 lines, and 10 is the most"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_is_refused_with_a_reason(filename: str, data: bytes, reason: str) -> None:
    with pytest.raises(FileRefused) as refused:
        prepare(filename, data, limits=FileLimits(max_file_bytes=100, max_lines=10))
    message = refusal_text(refused.value)
    assert reason in message
    assert filename in message
    assert "\n" not in message


def test_offers_are_judged_by_name_and_size_alone() -> None:
    check_file("a.log", 10 * 1024 * 1024, LIMITS, files=19, total_bytes=20 * 1024 * 1024)
    for size, files, total, reason in (
        (10 * 1024 * 1024 + 1, 0, 0, "has 10.1 MiB, and 10 MiB is the most"),
        (1, 20, 0, "20 is the most"),
        (2, 0, 30 * 1024 * 1024 - 1, "limit of 30 MiB together"),
    ):
        with pytest.raises(FileRefused) as refused:
            check_file("a.log", size, LIMITS, files=files, total_bytes=total)
        assert reason in refusal_text(refused.value)


@pytest.mark.parametrize(
    ("data", "text", "flags"),
    [
        ("\ufeffa\u2028b".encode(), "a\u2028b", ()),
        ("ä\r\nb".encode("utf-16"), "ä\nb", ()),
        ("ä\nb".encode("utf-16-be").join([b"\xfe\xff", b""]), "ä\nb", ()),
        (b"x" * 50 + b"\xe4", "x" * 50 + "\ufffd", ("undecodable bytes were replaced",)),
        ("\ufffd".encode(), "\ufffd", ()),
        (b"\x1b[31mred\x1b[0m", "red", ("terminal colour codes were taken out",)),
        (b"x" * 4001 + b"\ny", "x" * 4000 + "\ny", ("1 line was cut at 4000 characters",)),
    ],
)
def test_text_is_decoded_and_what_was_changed_is_said(data: bytes, text: str, flags: tuple[str, ...]) -> None:
    found = prepare("a.txt", data, limits=LIMITS)
    assert (found.text, found.flags) == (text, flags)
