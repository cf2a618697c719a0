from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from services.storage.data_folder import DataFolder, FolderBusy, lock

REPOSITORY = Path(__file__).parents[3]

HOLDER = """
import pathlib, sys
from services.storage.data_folder import lock
with lock(pathlib.Path(sys.argv[1]), "app.py --regen"):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_whoever_comes_second_is_told_who_holds_the_folder_in_one_line(tmp_path: Path) -> None:
    """Pitfall 42."""
    with hold(tmp_path) as holder:
        with pytest.raises(FolderBusy) as caught, lock(tmp_path, "app.py"):
            pass
        text = str(caught.value)
        assert re.fullmatch(
            rf"{re.escape(str(tmp_path))}: in use by app\.py --regen \(process {holder.pid}, since 20\S+Z\); "
            r"stop that process, or use another app\.data_dir",
            text,
        )
        holder.kill()
    # A killed holder leaves no lock behind, and no name.
    with lock(tmp_path, "app.py"):
        assert f'"pid": {os.getpid()}' in (tmp_path / ".lock").read_text()


def test_the_lock_ends_with_its_block_even_by_an_error(tmp_path: Path) -> None:
    """Pitfall 42."""
    with pytest.raises(ZeroDivisionError), lock(tmp_path / "new" / "data", "one"):
        raise ZeroDivisionError
    with lock(tmp_path / "new" / "data", "two"):
        pass
    assert (tmp_path / "new" / "data" / ".lock").read_text() == ""


def test_one_process_cannot_take_the_lock_twice(tmp_path: Path) -> None:
    with lock(tmp_path, "one"), pytest.raises(FolderBusy, match="in use by one "), lock(tmp_path, "two"):
        pass


@pytest.mark.parametrize("content", ["", "[]", "{", "\0"])
def test_a_holder_that_has_not_signed_yet_is_another_process(content: str, tmp_path: Path) -> None:
    with lock(tmp_path, "one"):
        (tmp_path / ".lock").write_text(content)
        with (
            pytest.raises(FolderBusy, match="another process is writing this data folder; stop it"),
            lock(tmp_path, "x"),
        ):
            pass


def test_the_layout_is_that_of_the_specification(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    names = {
        name: str(getattr(folder, name).relative_to(tmp_path))
        for name in vars(DataFolder)
        if name != "root" and isinstance(getattr(folder, name), Path)
    }
    assert names == {
        "lock_file": ".lock",
        "guilds": "guilds",
        "watermarks": "state/seen.json",
        "usage": "state/usage.json",
        "outcomes": "state/outcomes",
        "token_days": "state/tokens.json",
        "dismissed": "state/dismissed.json",
        "audit": "state/audit.jsonl",
        "last_report": "state/report.json",
        "alerts": "state/alerts.json",
        "posts": "state/posts.jsonl",
        "outbox": "state/outbox",
        "drafts": "state/drafts",
        "feedback_key": "state/feedback.key",
        "opt_outs": "state/opt-outs.json",
        "shown_runbooks": "state/shown-runbooks.json",
        "tombstones": "state/gone-files.json",
        "feedback": "feedback.jsonl",
        "chroma_copies": "documents",
        "evidence": "evidence",
        "runbooks": "runbooks",
        "llm_recordings": "llm-recordings",
        "knowledge_base": "knowledge-base",
        "sources": "knowledge-base/sources",
        "links": "knowledge-base/links.txt",
        "index": "knowledge-base/index.txt",
        "index_cache": "knowledge-base/index-cache.json",
        "web_cache": "knowledge-base/web-cache",
        "team_knowledge": "team-knowledge",
        "team_raw": "team-knowledge/raw",
        "team_topics": "team-knowledge/topics",
        "team_index": "team-knowledge/index-team.txt",
        "team_index_cache": "team-knowledge/index-team-cache.json",
        "team_state": "team-knowledge/state.json",
        "decisions": "team-knowledge/decisions.jsonl",
        "places": "team-knowledge/places.jsonl",
        "pending": "team-knowledge/pending",
        "regeneration": "team-knowledge/regen",
    }
