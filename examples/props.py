"""The two files that people attach during the demo's day: a picture of an error dialog and an agent's log."""

from __future__ import annotations

import struct
import zlib
from datetime import UTC, datetime, timedelta

# Five columns by seven rows a letter, one number a row, as far as the dialog needs them.
_LETTERS = {
    "-": (0, 0, 0, 31, 0, 0, 0),
    "0": (14, 17, 19, 21, 25, 17, 14),
    "1": (4, 12, 4, 4, 4, 4, 14),
    "7": (31, 1, 2, 4, 8, 8, 8),
    "C": (14, 17, 16, 16, 16, 17, 14),
    "K": (17, 18, 20, 24, 20, 18, 17),
    "L": (16, 16, 16, 16, 16, 16, 31),
    "M": (17, 27, 21, 21, 17, 17, 17),
    "O": (14, 17, 17, 17, 17, 17, 14),
    "R": (30, 17, 17, 30, 20, 18, 17),
    "E": (31, 16, 16, 30, 16, 16, 31),
    "S": (15, 16, 16, 14, 1, 1, 30),
    "W": (17, 17, 17, 21, 21, 27, 17),
    " ": (0, 0, 0, 0, 0, 0, 0),
}
_PALETTE = b"\xf4\xf4\xf4\x20\x20\x28\x9c\x2b\x2b\x70\x70\x78"
_PAPER, _INK, _TITLE, _FRAME = range(4)
_TITLE_HEIGHT = 20

DIALOG_WIDTH, DIALOG_HEIGHT = 240, 120


def error_dialog() -> bytes:
    """A PNG of a dialog: a red title bar, "ERROR MSW-1107", and a second line."""
    rows = [bytearray([_PAPER] * DIALOG_WIDTH) for _ in range(DIALOG_HEIGHT)]
    for y, row in enumerate(rows):
        for x in range(DIALOG_WIDTH):
            if y < _TITLE_HEIGHT:
                row[x] = _TITLE
            if x in {0, DIALOG_WIDTH - 1} or y in {0, DIALOG_HEIGHT - 1}:
                row[x] = _FRAME
    _write(rows, "ERROR MSW-1107", left=18, top=40, scale=2)
    _write(rows, "CLOCK", left=18, top=72, scale=2)
    _write(rows, "OK", left=190, top=96, scale=2)
    raw = b"".join(b"\x00" + row for row in rows)
    header = struct.pack(">IIBBBBB", DIALOG_WIDTH, DIALOG_HEIGHT, 8, 3, 0, 0, 0)
    # Stored, not compressed: every release of zlib writes the same bytes.
    parts = ((b"IHDR", header), (b"PLTE", _PALETTE), (b"IDAT", zlib.compress(raw, 0)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _write(rows: list[bytearray], text: str, *, left: int, top: int, scale: int) -> None:
    for place, letter in enumerate(text):
        for y, bits in enumerate(_LETTERS[letter]):
            for x in range(5):
                if bits & (16 >> x):
                    for step in range(scale * scale):
                        column = left + (place * 6 + x) * scale + step % scale
                        rows[top + y * scale + step // scale][column] = _INK


def agent_log() -> bytes:
    """150 lines of an agent whose vault is full: MSW-2044 in line 131."""
    folders = ("photos/2025", "photos/2026", "documents", "music", "video/raw", "paperless", "homes/jo", "homes/kit")
    opening = [
        ("INFO", "agent.main", "marlstow-agent 3.4.2 starting, machine=attic-nas os=linux/arm64"),
        ("INFO", "agent.config", "read /etc/marlstow/agent.toml: compression=balanced upload_connections=4"),
        ("INFO", "agent.connect", "connected to backup.lan:7480, fingerprint matches"),
        ("INFO", "agent.clock", "clock differs from the server by 0.4 s"),
        ("INFO", "agent.job", "job 48213 started: schedule=daily 01:30 vault=main"),
        ("INFO", "agent.scan", "scanning 8 folders with 2 threads"),
        ("WARN", "agent.scan", "MSW-3005 file changed while reading: homes/kit/.local/share/chat/history.db"),
    ]
    working: list[tuple[str, str, str]] = []
    for number in range(123):
        folder = folders[number // 16]
        if number % 3 == 0:
            working.append(("INFO", "agent.scan", f"{folder}: {1840 + number * 57} files, {3 + number % 7} changed"))
        else:
            size = 48 + number * 29 % 16
            note = f"pack {number * 2654435761 % 2**32:08x} uploaded, {size}.{number % 10} MiB, connection {number % 4}"
            working.append(("INFO", "agent.upload", note))
    ending = [
        ("ERROR", "agent.upload", "MSW-2044 pack upload refused by the server: vault main has reached its quota"),
        ("ERROR", "agent.upload", "vault=main used=1.9998 TiB quota=2.0000 TiB pack=5c1e09d7 size=61.3 MiB"),
        ("INFO", "agent.upload", "closing 4 connections, 3 packs not sent"),
        ("ERROR", "agent.job", "job 48213 failed after 00:21:38: MSW-2044"),
        ("INFO", "agent.job", "no snapshot was written; the last good one is 48190 of 2026-03-10"),
        *(
            ("WARN", "agent.retry", f"attempt {n} of 5, vault main is still full, next in 10 minutes")
            for n in range(1, 6)
        ),
        ("ERROR", "agent.retry", "giving up until the next planned run: MSW-2044"),
        ("INFO", "agent.notify", "sent job_failed to the server"),
        ("INFO", "agent.cache", "chunk cache saved, 412806 chunks"),
        *(("DEBUG", "agent.idle", f"heartbeat {n}, next run 2026-03-12T01:30:00Z") for n in range(1, 8)),
    ]
    at = datetime(2026, 3, 11, 1, 30, 2, tzinfo=UTC)
    lines: list[str] = []
    for number, (level, component, text) in enumerate([*opening, *working, *ending]):
        lines.append(f"{at:%Y-%m-%dT%H:%M:%S}.{number * 271 % 1000:03d}Z {level:<5} {component:<13} {text}\n")
        at += (
            timedelta(minutes=10)
            if level == "WARN" and component == "agent.retry"
            else timedelta(seconds=3 + number % 15)
        )
    return "".join(lines).encode()
