from __future__ import annotations

from pathlib import Path

import pytest

from services.team import archive, archive_files
from tests.services.team.pairs import added, captured, opened, store


def test_a_malformed_block_is_reported_once_with_its_line_however_often_the_archive_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store(tmp_path, captured(1))
    (path,) = tmp_path.rglob("*-W*.txt")
    sound = path.read_text()
    path.write_text(f"{sound}--- QA ---\nid: nonsense\nUser: a\n\n{archive.render(captured(2))}")
    for _ in range(2):
        library = opened(tmp_path)
        while (pair := library.oldest_undecided()) is not None:
            library.decide(added(pair, "light"))
        assert len(archive_files.pairs_in(path.parent)) == 2
    (line,) = [message for message in caplog.messages if "skipped" in message]
    at = sound.count("\n") + 1
    assert line == f"{path}:{at}: 'User: a' where 'timestamp' should be; skipped"
