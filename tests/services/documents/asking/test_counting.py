"""Counts of what lines say: a number is given only for what was asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.documents.facts import Files

LOG = """\
2031-03-04 10:00:00 INFO  [main] request from 10.0.0.1 status=200 took 500 ms user=a
2031-03-04 10:01:00 WARN  [main] request from 10.0.0.2 status=404 took 1200 ms user=b
2031-03-04 10:02:00 ERROR [main] request from 10.0.0.1 status=500 took 404 ms user=a
2031-03-04 10:03:00 INFO  [main] request from 10.0.0.3 status=200 took 3 s user=carol
"""
LOGINS = """\
2031-03-04 10:06:00 INFO  [main] user alice logged in from 10.0.0.5
2031-03-04 10:06:01 INFO  [main] user bob failed to log in from 10.0.0.6
2031-03-04 10:06:02 INFO  [main] message from user: "2031-03-04 FATAL [db] exploded"
2031-03-04 10:06:03 ERROR [main] disk full
"""
USERS = (
    '{"users":[{"id":1,"active":true},{"id":2,"active":false},{"id":3,"active":true}],"ports":[80,443],"main_port":80}'
)


async def opened(folder: Path, **texts: str) -> Files:
    files = Files(folder)
    for name, text in texts.items():
        await files.add(name.replace("_", "."), text.encode())
    return files


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("How many entries have status 500 or 404?", 2),
        ("How many entries have status 200, 500 or 404?", 4),
        ("How many entries have status 500?", 1),
        ("How many entries by user a?", 2),
        ("How many entries are there from user b in app.log?", 1),
        ("How many different users are there?", 3),
        ("How many lines are there in the file?", 4),
        ("How many entries does app.log contain in total?", 4),
        ("how many are there?", 4),
        ("How many entries mention 10.0.0.1?", 2),
        ("How many ERROR entries were logged in app.log?", 1),
    ],
)
async def test_what_is_asked_for_is_counted(tmp_path: Path, question: str, count: int) -> None:
    files = await opened(tmp_path, app_log=LOG)
    found = await files.ask(question)
    await files.close()
    assert found.count == count


@pytest.mark.parametrize(
    "question",
    [
        "How many requests took over 1000 ms?",
        "How many requests took less than a second?",
        "How many requests took 500 ms or longer?",
        "How many users are there?",
        "How many files are there?",
        "How many entries are by users?",
        "How many types of it are there?",
    ],
)
async def test_what_cannot_be_counted_has_no_number(tmp_path: Path, question: str) -> None:
    files = await opened(tmp_path, app_log=LOG)
    found = await files.ask(question)
    await files.close()
    assert (found.count, found.facts) == (None, "")


@pytest.mark.parametrize(
    "question",
    [
        "How many users logged in?",
        "How many distinct users logged in?",
        "How many distinct users are there?",
        "How many files are there?",
    ],
)
async def test_users_that_no_key_names_are_not_counted(tmp_path: Path, question: str) -> None:
    files = await opened(tmp_path, app_log=LOGINS)
    found = await files.ask(question)
    by_user = await files.ask("How many entries per user?")
    await files.close()
    assert (found.count, found.facts) == (None, "")
    assert "by user" not in by_user.facts
    assert "asked and not computed: numbers by user" in by_user.notes


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("How many users are active?", None),
        ("How many active users are there?", None),
        ("How many ports are there?", None),
        ("How many ids are there?", 3),
        ("How many keys are there?", 8),
    ],
)
async def test_keys_are_counted_where_nothing_else_is_asked_for(
    tmp_path: Path, question: str, count: int | None
) -> None:
    files = await opened(tmp_path, d_json=USERS)
    found = await files.ask(question)
    await files.close()
    assert found.count == count
