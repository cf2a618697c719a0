from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

import app
from commands import check
from commands.check import Finding, Verdict
from services.documents.store.chroma import chroma_unreachable_because
from settings import Settings, load
from tests.commands.conftest import SECRET_KEY, SECRET_TOKEN
from tests.loopback.llm_server import LLMServer


def findings(config: Path) -> dict[str, Finding]:
    settings = load(config)
    found = [
        check.token_row(settings),
        *check.folder_rows(settings),
        *check.knowledge_rows(settings),
        check.members_row(settings),
        check.team_row(settings),
        *check.internal_topic_rows(settings),
        check.log_file_row(settings),
    ]
    return {finding.about: finding for finding in found}


def verdict(config: Path, about: str) -> Verdict:
    return findings(config)[about].verdict


def tree(folder: Path) -> dict[Path, float]:
    return {path: path.stat().st_mtime for path in folder.rglob("*")}


def with_llm(config: Path, base_url: str) -> None:
    llm = f"{{base_url: '{base_url}', api_key: {SECRET_KEY}, model: tiny}}"
    config.write_text(f"{config.read_text()}ai_response:\n  llm: {llm}\n")


def test_where_everything_is_in_place_the_table_says_so_and_nothing_is_written(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 22: nor does the token stand in it."""
    before = tree(tmp_path)
    assert app.main(["--config", str(config), "--check"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert tree(tmp_path) == before
    assert SECRET_TOKEN not in out
    lines = {line.split()[0]: line for line in reversed(out.splitlines())}
    assert lines["discord.token"].split()[1] == "ok"
    assert "1 document" in lines["kb.sources_dir"]
    assert "no model is asked" in lines["ai_response.llm"]
    assert "Discord cannot be reached: nothing listens there" in out


def test_the_table_begins_with_what_was_read(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 71."""
    for name in [name for name in os.environ if name.upper().startswith("APP__")]:
        monkeypatch.delenv(name)
    local, dotenv = config.with_name("config.local.yaml"), config.with_name(".env")
    assert check.configuration_row(config, {}).says == f"{config} (there is no {local} and no {dotenv})"
    local.write_text("discord: {team_member_ids: [5, 6, 7]}\n")
    dotenv.write_text(f"APP__DISCORD__TOKEN={SECRET_TOKEN}\n")
    monkeypatch.setenv("app__app__dry_run", "true")
    app.main(["--config", str(config), "--check"])
    out, _ = capsys.readouterr()
    first, *_ = out.splitlines()
    assert first.split(maxsplit=2) == ["configuration", "ok", f"{config}, {local}, {dotenv}, APP__APP__DRY_RUN"]
    assert "3 people" in out


@pytest.mark.parametrize("token", ["REPLACE_ME", "", "abcdef0123456789abcdef0123456789", "a.b.c", "two words"])
def test_what_cannot_be_a_token_is_told_from_none_and_not_repeated(
    config: Path, capsys: pytest.CaptureFixture[str], token: str
) -> None:
    """Pitfalls 22 and 45."""
    config.write_text(f"discord: {{token: '{token}', team_member_ids: [902]}}\n")
    assert app.main(["--config", str(config), "--check"]) == 2
    out, _ = capsys.readouterr()
    unset = token in {"REPLACE_ME", ""}
    line, *_ = [line for line in out.splitlines() if line.startswith("discord.token ")]
    assert line.split()[1] == ("missing" if unset else "wrong")
    assert unset or token not in out
    assert "Discord cannot be reached" not in out, "there is nothing to ask with"


def test_folders_that_do_not_exist_will_be_made(config: Path, tmp_path: Path) -> None:
    config.write_text("app: {data_dir: deep/down/data}\n")
    finding = findings(config)["app.data_dir"]
    assert finding == Finding("app.data_dir", Verdict.OK, f"{tmp_path}/deep/down/data will be made")


def test_a_data_folder_that_is_a_file_or_below_one_is_missing(config: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    for path in ("plain", "plain/data"):
        config.write_text(f"app: {{data_dir: {path}}}\n")
        assert verdict(config, "app.data_dir") is Verdict.MISSING


def test_folders_without_permission_are_missing(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The administrator may do everything, so the system is not asked.
    def refused(_path: object, _mode: int) -> bool:
        return False

    monkeypatch.setattr("os.access", refused)
    found = findings(config)
    assert found["app.data_dir"].says.endswith("data cannot be written; check its permissions")
    assert "cannot be made in" in found["kb.team_raw_dir"].says
    assert "cannot be read" in found["kb.sources_dir"].says
    assert "cannot be read" in found["kb.index_path"].says


def test_sources_that_are_not_there_are_missing_and_an_empty_folder_is_a_warning(config: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    config.write_text("kb: {sources_dir: nowhere}\n")
    assert verdict(config, "kb.sources_dir") is Verdict.MISSING
    config.write_text("kb: {sources_dir: empty}\n")
    assert verdict(config, "kb.sources_dir") is Verdict.WARNING


def test_an_index_that_is_not_there_yet_is_a_warning_and_a_folder_in_its_place_is_not(
    config: Path, tmp_path: Path
) -> None:
    config.write_text("kb: {index_path: nowhere, links_file_path: data}\n")
    assert verdict(config, "kb.index_path") is Verdict.WARNING
    assert verdict(config, "kb.links_file_path") is Verdict.MISSING


def test_without_a_team_nothing_is_learned_which_is_a_warning(config: Path) -> None:
    assert verdict(config, "discord.team_member_ids") is Verdict.OK
    config.write_text("app: {}\n")
    assert verdict(config, "discord.team_member_ids") is Verdict.WARNING


def test_a_log_file_that_cannot_be_opened_is_a_warning(config: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    for path, expected in {
        "new/bot.log": Verdict.OK,
        "plain": Verdict.OK,
        "data": Verdict.WARNING,
        "plain/bot.log": Verdict.WARNING,
    }.items():
        config.write_text(f"logging: {{file: {{path: {path}}}}}\n")
        assert verdict(config, "logging.file.path") is expected


def test_a_model_that_cannot_be_reached_is_missing_and_its_key_is_not_told(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 22."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        with_llm(config, f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        assert app.main(["--config", str(config), "--check"]) == 2
    out, _ = capsys.readouterr()
    assert "cannot be reached" in out
    assert SECRET_KEY not in out


@pytest.mark.real_time
async def test_a_model_that_answers_is_there(config: Path) -> None:
    async with LLMServer() as server:
        with_llm(config, server.base_url)
        settings = await asyncio.to_thread(load, config)
        answering, learning = await check.model_rows(settings)
    assert answering.verdict is Verdict.OK
    assert learning.verdict is Verdict.SKIPPED


def test_a_cursor_that_would_stop_all_learning_is_missing(config: Path) -> None:
    """Pitfall 46."""
    assert verdict(config, "kb.team_state_path") is Verdict.OK
    text = config.read_text()
    config.write_text(f"{text}kb: {{qa_raw_last_processed_id: qa_99991231_235959}}\n")
    assert "is more than a day newer" in findings(config)["kb.team_state_path"].says
    config.write_text(text)
    state = load(config).kb.team_state_path
    state.mkdir(parents=True)
    assert "Is a directory; something else has its name: move that away" in findings(config)["kb.team_state_path"].says
    state.rmdir()
    state.write_text('{"last_processed_qa_id": "qa_20200101_000000"}')
    assert verdict(config, "kb.team_state_path") is Verdict.OK


def about_documents(config: Path, yaml: str) -> dict[str, Finding]:
    config.write_text(yaml)
    return {finding.about: finding for finding in asyncio.run(check.document_rows(load(config)))}


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_documents_left_alone_are_skipped(config: Path) -> None:
    found = about_documents(config, "documents: {enabled: false}\n")
    assert [finding.verdict for finding in found.values()] == [Verdict.SKIPPED]


def test_documents_in_the_data_folder_are_counted(config: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "evidence").mkdir(parents=True)
    (tmp_path / "data" / "evidence" / "case_1.sqlite").touch()
    found = about_documents(config, "app: {data_dir: data}\n")
    assert found["documents.store"] == Finding(
        "documents.store", Verdict.OK, "embedded: files of 1 thread, runbooks of 0 people"
    )


def test_servers_for_documents_that_cannot_be_reached_are_warnings(config: Path) -> None:
    at = f"http://127.0.0.1:{closed_port()}"
    embeddings = f"{{base_url: '{at}/v1', api_key: {SECRET_KEY}, model: tiny}}"
    found = about_documents(config, f"documents: {{store: '{at}', embeddings: {embeddings}}}\n")
    for finding in found.values():
        assert finding.verdict is Verdict.WARNING
        assert "cannot be reached" in finding.says
        assert SECRET_KEY not in finding.says


def test_without_the_extra_the_table_says_how_to_get_it(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_name: str) -> None:
        return None

    monkeypatch.setattr("services.documents.store.chroma.importlib.util.find_spec", absent)
    found = about_documents(config, "documents: {store: 'http://127.0.0.1:9'}\n")
    assert "make extra-chroma" in found["documents.store"].says


@pytest.fixture
def settings_with(config: Path) -> Callable[[str], Settings]:
    def written(yaml: str) -> Settings:
        config.write_text(yaml)
        return load(config)

    return written


@pytest.mark.real_time
async def test_servers_for_documents_that_answer_are_there(settings_with: Callable[[str], Settings]) -> None:
    async def beat(_request: web.Request) -> web.Response:
        return web.json_response({"nanosecond heartbeat": 1})

    async def silence(_request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    service = web.Application()
    service.router.add_get("/api/v2/heartbeat", beat)
    service.router.add_get("/slow/api/v2/heartbeat", silence)
    async with TestServer(service) as server, LLMServer() as llm:
        at = str(server.make_url("")).rstrip("/")
        embeddings = f"{{base_url: '{llm.base_url}', api_key: {SECRET_KEY}, model: tiny}}"
        settings = settings_with(f"documents: {{store: '{at}', embeddings: {embeddings}}}\n")
        assert [finding.verdict for finding in await check.document_rows(settings)] == [Verdict.OK, Verdict.OK]
        assert "HTTP 404" in (await chroma_unreachable_because(f"{at}/elsewhere") or "")
        assert "did not answer" in (await chroma_unreachable_because(f"{at}/slow", timeout_seconds=0.05) or "")


def test_a_renderer_that_a_start_would_refuse_is_missing(
    settings_with: Callable[[str], Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 70."""
    kb = settings_with("kb: {web_fetch_renderer: browser}\n").kb
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    monkeypatch.delitem(sys.modules, "services.knowledge.web.browser", raising=False)
    (found,) = asyncio.run(check.renderer_rows(kb))
    assert (found.about, found.verdict) == ("kb.web_fetch_renderer", Verdict.MISSING)
    assert found.says.startswith("`browser`, which needs the extra of that name: make extra-browser")


def test_pages_fetched_as_they_are_need_no_line(settings_with: Callable[[str], Settings]) -> None:
    assert asyncio.run(check.renderer_rows(settings_with("").kb)) == []


def test_where_no_model_is_set_at_all_none_is_said_to_be_asked(config: Path) -> None:
    found = asyncio.run(check.model_rows(load(config)))
    assert [finding.says for finding in found if "is asked" in finding.says and "no model" not in finding.says] == []


def test_topics_for_the_team_that_are_spelt_otherwise_are_named(config: Path, tmp_path: Path) -> None:
    assert "kb.internal_topics" not in findings(config)
    config.write_text(f"{config.read_text()}kb:\n  internal_topics: [pricing, on-call]\n")
    topics = load(config).kb.team_topics_dir
    topics.mkdir(parents=True)
    for name in ("pricing", "pricing-2", "gpu"):
        (topics / f"{name}.txt").write_text("")
    found = findings(config)["kb.internal_topics"]
    assert found == Finding(
        "kb.internal_topics", Verdict.WARNING, "there is no topic on-call yet; --kb list shows the topics"
    )
    (topics / "on-call.txt").write_text("")
    found = findings(config)["kb.internal_topics"]
    assert found == Finding("kb.internal_topics", Verdict.OK, "for the team only: 3 topic files")
