"""`guilds.<id>`: what differs in one server, and that what belongs to it lies apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from settings import load
from tests.settings.conftest import Failure, Loader


def test_a_server_overrides_what_it_names_and_shares_the_rest(loaded: Loader) -> None:
    settings = loaded("""
discord: {team_member_ids: [1], reply_mode: mention, channels: {5: {reply_mode: "off"}}}
ai_response: {reply_language: en, project_introduction: All of us.}
limits: {answers_per_day: 7}
guilds:
  311:
    discord: {team_member_ids: [2], channels: {6: {reply_mode: all}}}
    ai_response: {reply_language: de}
    limits: {tokens_per_day: 9}
""")
    server = settings.servers[311]
    assert (server.discord.team_member_ids, server.discord.reply_mode) == ({2}, "mention")
    assert {channel: each.reply_mode for channel, each in server.discord.channels.items()} == {5: "off", 6: "all"}
    assert (server.ai_response.reply_language, server.ai_response.project_introduction) == ("de", "All of us.")
    assert (server.limits.answers_per_day, server.limits.tokens_per_day) == (7, 9)
    assert settings.discord.team_member_ids == {1}


def test_an_empty_list_overrides_and_null_does_not(loaded: Loader) -> None:
    server = loaded("discord: {team_member_ids: [1], team_role_ids: [2]}\n"
                    "guilds: {311: {discord: {team_member_ids: [], team_role_ids: null}}}").servers[311]  # fmt: skip
    assert (server.discord.team_member_ids, server.discord.team_role_ids) == (frozenset(), {2})


@pytest.mark.parametrize(
    ("entry", "has_own"),
    [
        ("{}", False),
        ("{kb: {internal_topics: [pricing]}}", False),
        ("{discord: {team_member_ids: null}}", False),
        ("{discord: {team_member_ids: []}}", True),
        ("{discord: {team_role_ids: [2]}}", True),
    ],
)
def test_a_server_has_a_team_of_its_own_where_its_entry_names_one(loaded: Loader, entry: str, has_own: bool) -> None:
    settings = loaded(f"discord: {{team_member_ids: [1]}}\nguilds: {{311: {entry}}}")
    assert settings.has_own_team(311) == has_own
    assert not settings.has_own_team(312)
    assert not settings.has_own_team(None)


def test_the_files_of_a_server_are_in_a_folder_of_its_own(loaded: Loader, tmp_path: Path) -> None:
    settings = loaded("guilds: {311: {}, 312: {kb: {sources_dir: docs/b, links_file_path: b.txt}}}")
    home = tmp_path / "data" / "guilds" / "311"
    first, second = settings.servers[311], settings.servers[312]
    assert first.app.data_dir == home
    assert first.kb.sources_dir == home / "knowledge-base" / "sources"
    assert first.kb.team_raw_dir == home / "team-knowledge" / "raw"
    assert (second.kb.sources_dir, second.kb.links_file_path) == (tmp_path / "docs" / "b", tmp_path / "b.txt")
    assert second.kb.index_path == tmp_path / "data" / "guilds" / "312" / "knowledge-base" / "index.txt"


def test_a_rehearsal_learns_elsewhere_and_reads_the_same_documents(loaded: Loader, tmp_path: Path) -> None:
    settings = loaded("guilds: {311: {}}")
    rehearsed = settings.for_replay(tmp_path / "replay").servers[311]
    assert rehearsed.kb.index_path == settings.servers[311].kb.index_path
    assert rehearsed.app.data_dir == tmp_path / "replay" / "guilds" / "311"
    assert rehearsed.kb.team_raw_dir == tmp_path / "replay" / "guilds" / "311" / "team-knowledge" / "raw"


def test_a_section_whose_every_line_is_a_comment_is_none(loaded: Loader) -> None:
    assert loaded("guilds:\n  # 311:\n").servers.own == {}
    assert list(loaded("guilds:\n  311:\n").servers.own) == [311]


def test_a_variable_sets_a_key_of_a_server(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("{}")
    settings = load(tmp_path / "config.yaml", {"APP__GUILDS__311__DISCORD__TEAM_MEMBER_IDS": "[4]"})
    assert settings.servers[311].discord.team_member_ids == {4}


def test_where_the_address_of_the_shared_documents_is_known_it_is_not_that_of_a_server_s(loaded: Loader) -> None:
    settings = loaded("kb: {source_base_url: 'https://docs.example.org'}\nguilds: {311: {}}")
    assert settings.servers[311].kb.source_base_url == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("guilds: {abc: {}}", "guilds takes Discord ids as names"),
        ("guilds: {0: {}}", "guilds takes Discord ids as names"),
        ("guilds: [311]", "guilds must be a mapping of server ids"),
        ("guilds: {311: {discord: {team_memberids: [1]}}}", "did you mean guilds.311.discord.team_member_ids?"),
        ("guilds: {311: {team_member_ids: [1]}}", "did you mean guilds.311.discord.team_member_ids?"),
        ("guilds: {311: {kb: {answers_per_day: 1}}}", "did you mean guilds.311.limits.answers_per_day?"),
        ("guilds: {311: {limits: {answers_per_day: -1}}}", "guilds.311.limits.answers_per_day must be a whole number"),
        ("guilds: {311: {discord: {channels: {x: {}}}}}", "guilds.311.discord.channels takes Discord ids as names"),
        (
            "guilds: {311: {kb: {sources_dir: data/knowledge-base/sources/a}}}",
            "guilds.311.kb.sources_dir must lie apart from kb.sources_dir",
        ),
        (
            "guilds: {311: {kb: {sources_dir: x}}, 312: {kb: {sources_dir: x/y}}}",
            "guilds.311.kb.sources_dir must lie apart from guilds.312.kb.sources_dir",
        ),
        (
            "kb: {sources_dir: data}\nguilds: {311: {}}",
            "kb.sources_dir must lie apart from guilds/311 below app.data_dir",
        ),
        (
            "guilds: {311: {}, 312: {kb: {sources_dir: data/guilds/311/knowledge-base}}}",
            "guilds.312.kb.sources_dir must lie apart from guilds/311 below app.data_dir",
        ),
        (
            "guilds: {311: {kb: {links_file_path: data/knowledge-base/links.txt}}}",
            "guilds.311.kb.links_file_path must lie apart from kb.links_file_path",
        ),
        *(
            (f"kb: {{sources_dir: {path}}}", "kb.sources_dir must lie apart from")
            for path in (".", "data", "data/state")
        ),
        ("kb: {sources_dir: raw/a, team_raw_dir: raw}", "what people wrote would be told as documentation"),
        ("guilds: {311: {kb: {sources_dir: data/team-knowledge}}}", "guilds.311.kb.sources_dir must lie apart from"),
    ],
)
def test_what_is_wrong_with_a_server_is_one_line(refused: Failure, text: str, said: str) -> None:
    assert said in refused(text)


def test_folders_that_meet_through_a_symlink_are_refused(refused: Failure, tmp_path: Path) -> None:
    (tmp_path / "docs" / "a").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(tmp_path / "docs")
    text = "guilds: {311: {kb: {sources_dir: docs/a}}, 312: {kb: {sources_dir: alias}}}"
    assert "must lie apart" in refused(text)


def test_folders_below_the_shared_documents_are_not_those_of_a_server(loaded: Loader, tmp_path: Path) -> None:
    """The folder above them may hold the data folder, as no more than they is read."""
    settings = loaded("kb: {sources_dir: ., source_folders: [docs, wiki/]}\nguilds: {311: {}}")
    assert settings.kb.document_folders == (tmp_path / "docs", tmp_path / "wiki")
    own = settings.servers[311].kb
    assert own.document_folders == (own.sources_dir,)
