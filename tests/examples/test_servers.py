"""One bot, two products with documents and teams of their own, and a lobby that shares: nobody is told another's."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from app import main
from tests.examples.test_demo_files import EXAMPLES
from tests.loopback.llm_answers import plausible, prompt, wanted
from tests.loopback.llm_scenes import Body, saying
from tests.loopback.llm_server import LLMServer
from tests.loopback.served import served
from tests.root_logger import logging_restored

__all__ = ["logging_restored"]

Line = dict[str, Any]
FERRYGATE, ORCHARDBOX, LOBBY = "1175948623872000001", "1175948623872000002", "1175948623872000003"
CHANNELS = {"1175948623872000011": FERRYGATE, "1175948623872000021": ORCHARDBOX, "1175948623872000031": LOBBY}
RESET = "How do I reset a forgotten password?"
SECRETS = {
    FERRYGATE: {"gangway", "beacon", "skipper", "boarding", "harbourmaster", "sailing", "berth", "tide", "lighthouse"},
    ORCHARDBOX: {"cellar", "graft", "quince", "basket", "fence", "pressed", "beekeeper", "comb", "nectar"},
}
"""Words that only one of the two servers knows: of its documents, the last ones of what its team says."""
FOLDERS = {FERRYGATE: "ferrygate", ORCHARDBOX: "orchardbox"}


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", text.lower()))


def text_of(folder: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(folder.rglob("*")) if path.suffix in {".md", ".txt"})


def test_each_server_has_words_that_no_other_has() -> None:
    example = EXAMPLES / "servers"
    said = [json.loads(line)["d"] for line in (example / "day.jsonl").read_text().splitlines()]
    shared = words(text_of(example / "shared"))
    for guild_id, secrets in SECRETS.items():
        here = [each.get("content", "") for each in said if each.get("guild_id") == guild_id]
        elsewhere = [each.get("content", "") for each in said if each.get("guild_id") not in {None, guild_id}]
        assert secrets <= words(text_of(example / FOLDERS[guild_id]) + " ".join(here))
        assert not secrets & (shared | words(" ".join(elsewhere)))


class Day:
    """The example in a folder of its own, replayed by the command."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.data = folder / "servers", folder / "data"
        self._capsys = capsys
        shutil.copytree(EXAMPLES / "servers", self.folder, ignore=shutil.ignore_patterns("data"))
        self.config = self.folder / "config.yaml"

    def sets(self, **sections: Any) -> None:
        (self.folder / "config.local.yaml").write_text(yaml.safe_dump(sections))

    def runs(self, *arguments: str) -> str:
        asyncio.set_event_loop(None)
        assert main(["--config", str(self.config), *arguments]) == 0
        return self._capsys.readouterr().out

    def replayed(self) -> list[Line]:
        shutil.rmtree(self.data, ignore_errors=True)
        recording = str(self.folder / "day.jsonl")
        said = self.runs("--replay", recording, "--json", "--data", str(self.data))
        return [json.loads(line) for line in said.splitlines()][:-1]


@pytest.fixture
def day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Day:
    return Day(tmp_path, capsys)


@pytest.fixture
def model() -> Iterator[LLMServer]:
    async def telling_all(request: web.Request, body: Body) -> web.StreamResponse:
        """Repeats every word that it has been shown, and chooses every source."""
        said = plausible(body)
        shown = sorted(words(prompt(body)) & (SECRETS[FERRYGATE] | SECRETS[ORCHARDBOX]))
        if wanted(body)[0] == "AnswerResult":
            said["answer"] = "I was shown: " + " ".join(shown)
        return await saying(json.dumps(said))(request, body)

    with served(LLMServer(otherwise=telling_all)) as server:
        yield server


def replies_in(lines: list[Line], guild_id: str) -> list[str]:
    return [line["reply_text"] for line in lines if CHANNELS[line["channel_id"]] == guild_id and line["reply_text"]]


def assert_kept_apart(lines: list[Line]) -> None:
    for guild_id, other in ((FERRYGATE, ORCHARDBOX), (ORCHARDBOX, FERRYGATE)):
        for line in lines:
            if CHANNELS[line["channel_id"]] in {guild_id, LOBBY}:
                assert not words(line["reply_text"] or "") & SECRETS[other]
                assert not any(f"@{other}/" in source for source in line["sources"])


@pytest.mark.real_time
def test_the_same_question_is_answered_from_each_server_s_own_documents(day: Day) -> None:
    lines = day.replayed()
    assert_kept_apart(lines)
    ferrygate, orchardbox = replies_in(lines, FERRYGATE), replies_in(lines, ORCHARDBOX)
    assert "six-digit beacon" in ferrygate[0]
    assert "quince link" in orchardbox[0]
    assert "Billing address" in ferrygate[1]
    assert "Billing address" in orchardbox[1]
    assert replies_in(lines, LOBBY) == []  # where nobody has written of passwords


@pytest.mark.real_time
def test_what_a_team_teaches_stays_in_its_server_and_what_the_lobby_teaches_is_shared(day: Day) -> None:
    lines = day.replayed()
    ferrygate, orchardbox = replies_in(lines, FERRYGATE), replies_in(lines, ORCHARDBOX)
    assert "ferrygate export --tide spring.csv" in ferrygate[2]
    assert "comb archive" in orchardbox[2]
    assert "safe deposit" in orchardbox[3]
    for guild_id, other in ((FERRYGATE, ORCHARDBOX), (ORCHARDBOX, FERRYGATE)):
        own = words(text_of(day.data / "guilds" / guild_id))
        assert own & SECRETS[guild_id]
        assert not own & SECRETS[other]
    assert "safe deposit" in text_of(day.data / "team-knowledge")
    assert not words(text_of(day.data / "team-knowledge")) & (SECRETS[FERRYGATE] | SECRETS[ORCHARDBOX])


@pytest.mark.real_time
def test_the_limits_of_a_server_count_its_own_answers(day: Day) -> None:
    lines = day.replayed()
    reasons = [(CHANNELS[line["channel_id"]], line["reason"]) for line in lines if line["reason"] == "budget"]
    assert reasons == [(ORCHARDBOX, "budget")] * 2
    assert len(replies_in(lines, ORCHARDBOX)) == 4
    used = json.loads((day.data / "guilds" / ORCHARDBOX / "state" / "usage.json").read_text())
    assert used["answers"] == 4
    assert json.loads((day.data / "state" / "usage.json").read_text())["answers"] == len(replies_in(lines, FERRYGATE))


@pytest.mark.real_time
def test_no_request_to_a_model_holds_what_another_server_knows(day: Day, model: LLMServer) -> None:
    day.runs("--init-kb")
    llm = {"base_url": model.base_url, "api_key": "k", "model": "m", "max_retries": 0}
    day.sets(ai_response={"llm": llm, "enable_verification": True}, search={"embeddings": "none"})
    lines = day.replayed()
    assert_kept_apart(lines)
    asked = [words(prompt(each.body)) for each in model.seen]
    assert len(asked) > 40
    mixed = [both for each in asked if (both := (each & SECRETS[FERRYGATE], each & SECRETS[ORCHARDBOX])) and all(both)]
    assert mixed == []
    for guild_id in (FERRYGATE, ORCHARDBOX):  # each was shown its own, and said so
        told = words(" ".join(replies_in(lines, guild_id)))
        assert len(told & SECRETS[guild_id]) > 3


@pytest.mark.real_time
def test_a_rebuild_files_the_same_conversations_in_the_same_servers(day: Day) -> None:
    day.runs("--import", str(day.folder / "day.jsonl"))
    day.runs("--regen")
    data = day.folder / "data"
    before = {path: path.read_text() for path in sorted(data.rglob("topics/*.txt"))}
    assert {path.parts[-4] for path in before if "guilds" in path.parts} == {FERRYGATE, ORCHARDBOX}
    assert len(before) == 3
    day.runs("--regen", "--restart")
    assert {path: path.read_text() for path in sorted(data.rglob("topics/*.txt"))} == before


@pytest.mark.real_time
def test_commands_ask_and_show_within_a_server(day: Day) -> None:
    assert "quince link" in day.runs("--ask", RESET, "--guild", ORCHARDBOX)
    assert not words(day.runs("--ask", RESET)) & (SECRETS[FERRYGATE] | SECRETS[ORCHARDBOX])
    day.runs("--import", str(day.folder / "day.jsonl"))
    day.runs("--regen")
    both = {guild: day.runs("--kb", "list", "--guild", guild) for guild in (ORCHARDBOX, FERRYGATE)}
    assert all("export-whole-archive-spreadsheet  (1 conversation" in listed for listed in both.values())
    assert ["beekeeper" in listed for listed in both.values()] == [True, False]
    assert "spreadsheet" not in day.runs("--kb", "list")


@pytest.mark.real_time
def test_questions_are_evaluated_within_a_server(day: Day) -> None:
    day.runs("--init-kb")
    questions = day.folder / "questions.yaml"
    questions.write_text(yaml.safe_dump({"questions": [{"question": RESET, "source": f"@{FERRYGATE}/*"}]}))
    assert "1 question: 1 right." in day.runs("--eval", str(questions), "--guild", FERRYGATE)
    assert "1 question: 1 wrong." in day.runs("--eval", str(questions), "--guild", ORCHARDBOX)
    assert "right" not in day.runs("--eval", str(questions)).partition("| figure")[0]


@pytest.mark.real_time
def test_a_person_is_forgotten_in_every_server(day: Day) -> None:
    """Pitfall 49."""
    day.runs("--import", str(day.folder / "day.jsonl"))
    day.runs("--regen")
    said = day.runs("--forget", "880000000000000902")
    assert "1 text replaced by [removed]" in said
    assert "lighthouse" not in text_of(day.folder / "data")
    assert "none of this program's" not in said


@pytest.mark.real_time
def test_a_server_without_an_entry_is_an_error_of_one_line(day: Day, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", str(day.config), "--ask", RESET, "--guild", LOBBY]) == 2
    assert capsys.readouterr().err == (
        f"app.py: --guild {LOBBY}: no such server in guilds (there are: {FERRYGATE}, {ORCHARDBOX}); "
        "without it all others\n"
    )


@pytest.mark.real_time
def test_an_update_tells_of_each_server_and_makes_the_folder_for_its_documents(day: Day) -> None:
    day.sets(guilds={LOBBY: {}})
    said = day.runs("--init-kb").splitlines()
    assert [line.partition(":")[0] for line in said[1:]] == [
        f"server {each}" for each in (FERRYGATE, ORCHARDBOX, LOBBY)
    ]
    assert (day.folder / "data" / "guilds" / LOBBY / "knowledge-base" / "sources").is_dir()


@pytest.mark.real_time
def test_a_check_lists_what_servers_have_and_lack(day: Day, capsys: pytest.CaptureFixture[str]) -> None:
    day.sets(discord={"team_member_ids": []}, guilds={ORCHARDBOX: {"kb": {"sources_dir": "nowhere"}}, LOBBY: {}})
    assert main(["--config", str(day.config), "--check"]) == 2
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in capsys.readouterr().out.splitlines()}
    verdict, says = rows[f"guilds.{FERRYGATE}.kb.sources_dir"]
    assert (verdict, says.endswith("ferrygate, 2 documents")) == ("ok", True)
    verdict, says = rows[f"guilds.{ORCHARDBOX}.kb.sources_dir"]
    assert (verdict, "nowhere is not a folder" in says) == ("missing", True)
    assert rows[f"guilds.{LOBBY}.discord.team_member_ids"][0] == "warning"
    assert rows[f"guilds.{LOBBY}.kb.sources_dir"][0] == "ok"
