"""The log of what was decided by whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from clock import from_rfc3339
from services.team import AuditEntry, AuditLog, read_audit

AT = from_rfc3339("2026-02-01T03:12:00.000Z")


def test_what_is_noted_is_read_again_oldest_first(tmp_path: Path) -> None:
    path = tmp_path / "state" / "audit.jsonl"
    assert read_audit(path) == []
    AuditLog(path).note(AT + 1, "ana", "discard draft", 1458745245675032710)
    AuditLog(path).note(AT, "311", "teach", "taught_7\n")
    assert read_audit(path) == [
        AuditEntry(AT, "311", "teach", "taught_7\n"),
        AuditEntry(AT + 1, "ana", "discard draft", "1458745245675032710"),
    ]
    assert path.read_text().splitlines()[0] == (
        '{"at": "2026-02-01T03:12:01.000Z", "by": "ana", "action": "discard draft", "about": "1458745245675032710"}'
    )
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "damage", [b"{", b"[]\n", b'{"at": "x"}\n', b'{"at": 3, "by": "", "action": "", "about": ""}\n']
)
def test_damage_costs_no_other_line(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "audit.jsonl"
    AuditLog(path).note(AT, "ana", "teach", "a")
    path.write_bytes(path.read_bytes() + damage)
    AuditLog(path).note(AT, "ana", "teach", "b")
    assert [entry.about for entry in read_audit(path)] == ["a", "b"]


def test_where_nothing_is_kept_nothing_is_written() -> None:
    AuditLog().note(AT, "ana", "teach", "a")
