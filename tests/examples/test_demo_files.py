from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from model.messages import snowflake_time

EXAMPLES = Path(__file__).parents[2] / "examples"
KNOWLEDGE = EXAMPLES / "knowledge-base"
SOURCES = KNOWLEDGE / "sources"
RECORDING = EXAMPLES / "demo.jsonl"
QUIET_WINDOW = timedelta(seconds=60)
FORUM = 15


@dataclass(frozen=True)
class Dispatch:
    at: datetime
    name: str
    payload: dict[str, Any]


@dataclass(frozen=True)
class Row:
    time: str
    place: str
    what: str
    expected: str


def recorded() -> list[Dispatch]:
    lines = RECORDING.read_text(encoding="utf-8").splitlines()
    return [Dispatch(datetime.fromisoformat(line["at"]), line["t"], line["d"]) for line in map(json.loads, lines)]


def messages() -> list[Dispatch]:
    return [dispatch for dispatch in recorded() if dispatch.name == "MESSAGE_CREATE"]


def distinct_messages() -> list[Dispatch]:
    return list({dispatch.payload["id"]: dispatch for dispatch in reversed(messages())}.values())[::-1]


def dispatches(name: str) -> list[Dispatch]:
    return [dispatch for dispatch in recorded() if dispatch.name == name]


def guild() -> dict[str, Any]:
    return dispatches("GUILD_CREATE")[0].payload


def bot_id() -> str:
    return dispatches("READY")[0].payload["user"]["id"]


def config() -> dict[str, Any]:
    return yaml.safe_load((EXAMPLES / "demo.yaml").read_text(encoding="utf-8"))


def is_team(message: dict[str, Any]) -> bool:
    discord = config()["discord"]
    roles = {str(role) for role in discord["team_role_ids"]} & set(message.get("member", {}).get("roles", []))
    return bool(roles) or message["author"]["id"] in {str(id_) for id_ in discord["team_member_ids"]}


def age_when(name: str) -> list[timedelta]:
    """How old each message was when it was edited or deleted."""
    written = {message.payload["id"]: message.at for message in messages()}
    return [dispatch.at - written[dispatch.payload["id"]] for dispatch in dispatches(name)]


def file_ids() -> list[str]:
    return sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*") if path.is_file())


def urls() -> list[str]:
    lines = (line.strip() for line in (KNOWLEDGE / "links.txt").read_text(encoding="utf-8").splitlines())
    return sorted(line for line in lines if line and not line.startswith("#"))


def cached_page(url: str) -> Path:
    return KNOWLEDGE / "web-cache" / hashlib.sha256(url.encode()).hexdigest()


def rows() -> list[Row]:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (\d\d:\d\d:\d\d) \| (.*?) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    return [Row(*cells) for cells in table]


# The knowledge base


def test_there_are_at_least_15_knowledge_files_of_40_to_150_lines() -> None:
    lengths = {id_: len((SOURCES / id_).read_text(encoding="utf-8").splitlines()) for id_ in file_ids()}
    assert len(lengths) >= 15
    assert {id_: length for id_, length in lengths.items() if not 40 <= length <= 150} == {}


def test_every_url_has_its_cached_page_and_nothing_else_is_cached() -> None:
    assert sorted((KNOWLEDGE / "web-cache").iterdir()) == sorted(cached_page(url) for url in urls())
    assert all(cached_page(url).stat().st_size > 500 for url in urls())


def test_every_url_is_on_a_domain_that_cannot_exist() -> None:
    assert all(re.match(r"https://[a-z.]+\.example/", url) for url in urls())


def test_every_error_code_that_is_mentioned_is_explained() -> None:
    explained = set(
        re.findall(r"^## (MSW-\d{4}):", (SOURCES / "error-codes.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    texts = [(SOURCES / id_).read_text(encoding="utf-8") for id_ in file_ids()]
    texts += [cached_page(url).read_text(encoding="utf-8") for url in urls()]
    texts += [RECORDING.read_text(encoding="utf-8")]
    assert {code for text in texts for code in re.findall(r"MSW-\d{4}", text)} == explained


# The configuration


def test_the_paths_in_the_configuration_exist() -> None:
    kb = config()["kb"]
    for key in ("sources_dir", "links_file_path", "web_fetch_cache_dir"):
        assert (EXAMPLES / kb[key]).exists(), key


def test_the_configuration_needs_no_token_and_no_model() -> None:
    assert "token" not in config()["discord"]
    assert config()["ai_response"]["llm"] is None
    assert config()["discord"]["message_batch_wait_seconds"] == QUIET_WINDOW.total_seconds()


def test_the_team_is_known_by_a_role_and_by_ids() -> None:
    names = {role["id"]: role["name"] for role in guild()["roles"]}
    assert [names[str(role)] for role in config()["discord"]["team_role_ids"]] == ["maintainers"]
    members = {member["user"]["id"] for member in guild()["members"]}
    assert {str(id_) for id_ in config()["discord"]["team_member_ids"]} < members
    assert {message.payload["author"]["username"] for message in messages() if is_team(message.payload)} == {
        *("rosalind.k", "otto_v", "ida.m")
    }


# The recording


def test_the_recording_opens_with_ready_and_a_guild_of_four_channels_and_a_forum() -> None:
    assert [dispatch.name for dispatch in recorded()[:2]] == ["READY", "GUILD_CREATE"]
    assert Counter(channel["type"] for channel in guild()["channels"]) == {0: 4, FORUM: 1}


def test_there_are_at_least_80_messages_over_one_day_in_every_text_channel() -> None:
    assert len(distinct_messages()) >= 80
    span = messages()[-1].at - messages()[0].at
    assert timedelta(hours=23) < span < timedelta(hours=24)
    text_channels = {channel["id"] for channel in guild()["channels"] if channel["type"] == 0}
    assert text_channels <= {message.payload["channel_id"] for message in messages()}


def test_dispatches_come_in_order_of_time() -> None:
    times = [dispatch.at for dispatch in recorded()]
    assert times == sorted(times)


def test_every_message_was_written_when_its_id_was_made() -> None:
    for message in distinct_messages():
        assert message.at.timestamp() == pytest.approx(snowflake_time(int(message.payload["id"])), abs=0.0005)
        assert datetime.fromisoformat(message.payload["timestamp"]) == message.at


def test_only_the_deliberate_duplicate_is_delivered_twice_and_unchanged() -> None:
    twice = [id_ for id_, count in Counter(message.payload["id"] for message in messages()).items() if count > 1]
    assert len(twice) == 1
    first, second = (message.payload for message in messages() if message.payload["id"] == twice[0])
    assert first == second


def test_no_two_attachments_share_an_id_and_each_has_its_content() -> None:
    attachments = [one for message in distinct_messages() for one in message.payload["attachments"]]
    contents = {path.name: path.stat().st_size for path in (EXAMPLES / "demo.jsonl.attachments").iterdir()}
    assert contents == {one["id"]: one["size"] for one in attachments}
    assert len(contents) == len(attachments)


def test_a_question_comes_with_a_picture_and_one_with_a_log_that_holds_an_error_code() -> None:
    attachments = [one for message in distinct_messages() for one in message.payload["attachments"]]
    contents = {one["filename"]: EXAMPLES / "demo.jsonl.attachments" / one["id"] for one in attachments}
    assert contents["clock-error.png"].read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    log = contents["nas-agent.log"].read_text(encoding="utf-8")
    assert len(log.splitlines()) == 150
    assert "MSW-2044" in log


def test_messages_are_edited_within_the_quiet_window_and_after_it() -> None:
    early, late = age_when("MESSAGE_UPDATE")
    assert early < QUIET_WINDOW < late


def test_messages_are_deleted_within_the_quiet_window_and_just_after_it() -> None:
    early, late = age_when("MESSAGE_DELETE")
    assert early < QUIET_WINDOW
    assert timedelta(seconds=61) < late < timedelta(seconds=70)


def test_replies_carry_the_message_they_reply_to_or_nothing_or_null() -> None:
    replies = [message.payload for message in messages() if message.payload["type"] == 19]
    assert any(reply.get("referenced_message") for reply in replies)
    assert any("referenced_message" not in reply for reply in replies)
    assert any(reply.get("referenced_message", "absent") is None for reply in replies)


def test_team_members_reply_within_the_quiet_window_and_later() -> None:
    written = {message.payload["id"]: message for message in messages()}
    waits: list[timedelta] = []
    for message in messages():
        reference = message.payload.get("message_reference")
        if reference and message.payload["type"] == 19 and is_team(message.payload):
            target = written[reference["message_id"]]
            waits += [] if is_team(target.payload) else [message.at - target.at]
    assert min(waits) < QUIET_WINDOW < max(waits)


def test_the_bots_threads_are_opened_on_a_question_just_before_somebody_goes_on_in_them() -> None:
    written = {message.payload["id"] for message in messages()}
    opened = [thread for thread in dispatches("THREAD_CREATE") if thread.payload["owner_id"] == bot_id()]
    assert opened
    for thread in opened:
        assert thread.payload["id"] in written
        assert any(m.payload["channel_id"] == thread.payload["id"] and m.at > thread.at for m in messages())


def test_a_thread_between_people_and_posts_of_community_users_are_opened() -> None:
    forum = next(channel["id"] for channel in guild()["channels"] if channel["type"] == FORUM)
    by_people = [
        dispatch.payload for dispatch in dispatches("THREAD_CREATE") if dispatch.payload["owner_id"] != bot_id()
    ]
    posts = [thread["id"] for thread in by_people if thread["parent_id"] == forum]
    starters = {
        message.payload["id"] for message in messages() if message.payload["id"] == message.payload["channel_id"]
    }
    assert set(posts) == starters != set()
    assert len(by_people) > len(posts)


def test_somebody_sends_one_question_as_several_quick_messages() -> None:
    novice = [m for m in messages() if m.payload["author"]["username"] == "backupnovice"][:4]
    assert all(b.at - a.at < timedelta(seconds=15) for a, b in pairwise(novice))


@pytest.mark.parametrize("type_", [6, 7, 18])
def test_system_messages_of_each_kind_occur(type_: int) -> None:
    assert any(message.payload["type"] == type_ for message in messages())


@pytest.mark.parametrize("words", ["Ignore previous instructions", "\nYou: ", "@everyone ", "!nobot", "<@"])
def test_the_awkward_texts_occur(words: str) -> None:
    assert any(words in message.payload["content"] for message in messages())


def test_a_webhook_another_bot_and_an_empty_message_occur() -> None:
    payloads = [message.payload for message in messages()]
    assert any("webhook_id" in payload for payload in payloads)
    assert any(payload["author"].get("bot") and "webhook_id" not in payload for payload in payloads)
    assert any(payload["type"] == 0 and not payload["content"] and not payload["attachments"] for payload in payloads)


def test_reactions_are_added_and_removed() -> None:
    assert dispatches("MESSAGE_REACTION_ADD")
    assert dispatches("MESSAGE_REACTION_REMOVE")


# The table


def test_every_row_of_the_table_happens_in_the_recording() -> None:
    times = {f"{message.at:%H:%M:%S}" for message in messages()}
    assert rows()
    assert [row for row in rows() if row.time not in times] == []


def test_every_expected_outcome_is_one_that_the_program_has() -> None:
    words = ("`replied`", "`captured`", "`skipped`", "`cancelled`", "`ignored`", "nothing: removed")
    assert [row for row in rows() if not row.expected.startswith(words)] == []


def test_at_least_15_questions_are_answered_each_from_a_source_that_exists() -> None:
    answered = [row.expected for row in rows() if row.expected.startswith("`replied`")]
    named = [source for expected in answered for source in re.findall(r"`kb:(.*?)`", expected)]
    assert len(named) >= 15
    assert set(named) <= {*file_ids(), *urls()}
    assert set(named) & set(urls())
    others = sum("`team:`" in expected or "`nas-agent.log:" in expected for expected in answered)
    assert len(answered) == len(named) + others


def test_what_is_answered_from_team_knowledge_was_captured_before() -> None:
    learned = next(row for row in rows() if "`team:`" in row.expected)
    assert any(row.expected.startswith("`captured`") and row.time < learned.time for row in rows())
