"""`--init FILE`: the answers to its questions, in a file."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from settings import load
from tests.commands.conftest import SECRET_KEY, SECRET_TOKEN
from tests.commands.setting_up.conftest import ARTICLE, Clone, page
from tests.loopback import llm_scenes as scenes
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer
from tests.loopback.web_server import WebServer

SITEMAP = "<urlset><url><loc>{0}/a</loc></url><url><loc>{0}/b</loc></url></urlset>"
KEY_SHAPED = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


def test_a_folder_of_documents_is_enough_for_a_bot_that_answers(clone: Clone) -> None:
    code, out, _ = clone.init(documentation="docs", build_index=True, first_question="How do I install Lanternfish?")
    assert code == 0
    assert "1 document, 1 left out" in out
    assert "lanternfish setup" in out
    assert clone.local == {"kb": {"sources_dir": "docs"}}
    assert ".env" not in clone.written
    code, out, _ = clone.run("--ask", "How do I install Lanternfish?")
    assert (code, "lanternfish setup" in out) == (0, True)


def test_everything_at_once_is_checked_and_written_where_it_belongs(
    clone: Clone, discord_there: DiscordServer, model_there: LLMServer, site: WebServer
) -> None:
    """Pitfalls 22 and 68: secrets stand in .env, for its owner alone, and nowhere else."""
    site.paths |= {"/backups": page(ARTICLE), "/sitemap.xml": page(SITEMAP.format(site.origin), "application/xml")}
    staff, ada = discord_there.add_role("Staff"), discord_there.add_member("ada")
    code, out, err = clone.init(
        discord_token=SECRET_TOKEN,
        team_roles=["staff"],
        team_people=[ada.id],
        data_dir="store",
        documentation=["docs", f"{site.origin}/backups", {"sitemap": f"{site.origin}/sitemap.xml"}],
        model_base_url=model_there.base_url,
        model_api_key=SECRET_KEY,
        model_name="m",
    )
    assert (code, err) == (0, "")
    for words in (
        f"Discord knows the bot as millrace ({discord_there.bot.id})",
        "1 role, 1 person: Staff, ada",
        "1 page, “Backups”",
        "sitemap.xml: 2 documents",
        "LLM m at 127.0.0.1",
    ):
        assert words in out
    assert clone.local == {
        "discord": {"team_role_ids": [staff.id], "team_member_ids": [ada.id]},
        "app": {"data_dir": "store"},
        "kb": {"sources_dir": "docs"},
        "ai_response": {"llm": {"base_url": model_there.base_url, "model": "m"}},
    }
    env = clone.folder / ".env"
    assert env.read_text() == f"APP__DISCORD__TOKEN={SECRET_TOKEN}\nAPP__AI_RESPONSE__LLM__API_KEY={SECRET_KEY}\n"
    for path in (env, clone.folder / "config.local.yaml"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    links = (clone.folder / "store/knowledge-base/links.txt").read_text()
    assert links == f"{site.origin}/backups\nsitemap: {site.origin}/sitemap.xml\n"
    settings = load(clone.config)
    assert settings.ai_response.llm is not None
    assert settings.discord.team_role_ids == {staff.id}


def test_the_invitation_asks_for_what_is_needed_and_nothing_else(clone: Clone, discord_there: DiscordServer) -> None:
    _, out, _ = clone.init(discord_token=SECRET_TOKEN)
    view, history, threads, in_threads, react = 1 << 10, 1 << 16, 1 << 35, 1 << 38, 1 << 6
    address = f"https://discord.com/oauth2/authorize?client_id={discord_there.bot.id}&scope=bot+applications.commands"
    needed = view | history | threads | in_threads
    assert f"{address}&permissions={needed}\n" in out
    (clone.folder / "config.local.yaml").write_text("discord: {feedback: true}\n")
    _, out, _ = clone.init(team_roles="none")
    assert f"{address}&permissions={needed | react}\n" in out


def test_where_the_folder_is_published_is_looked_at_and_kept(clone: Clone, site: WebServer) -> None:
    site.paths["/"] = page(ARTICLE)
    (clone.folder / "mkdocs.yml").write_text("site_name: Lanternfish\n")
    code, out, _ = clone.init(documentation="docs", published_at=f"{site.origin}/")
    assert code == 0
    assert "✓" in out
    assert "links take the form of mkdocs" in out
    assert clone.local["kb"] == {"sources_dir": "docs", "source_base_url": site.origin}
    code, _, err = clone.init(documentation="docs", published_at="on the web")
    assert code == 2
    assert "published_at cannot be used: on the web: an address begins with https://" in err
    assert clone.init(documentation="docs", published_at=site.origin.removeprefix("http://"))[0] == 0
    assert clone.local["kb"] == {"sources_dir": "docs", "source_base_url": site.origin}


def test_doing_it_again_changes_nothing_and_overwrites_nothing(
    clone: Clone, discord_there: DiscordServer, site: WebServer
) -> None:
    site.paths["/backups"] = page(ARTICLE)
    (clone.folder / "config.local.yaml").write_text("# mine\nlimits:\n  tokens_per_day: 5  # enough\n")
    (clone.folder / ".env").write_text("OTHER=1\n")
    (clone.folder / ".env").chmod(0o644)
    links = clone.folder / "data/knowledge-base/links.txt"
    links.parent.mkdir(parents=True)
    links.write_text("https://example.org/old  \n# mine")
    answers = {"discord_token": SECRET_TOKEN, "documentation": ["docs", f"{site.origin}/backups"]}
    assert clone.init(**answers)[0] == 0
    first = clone.written
    assert first["config.local.yaml"].startswith("# mine\nlimits:\n  tokens_per_day: 5  # enough\nkb:\n")
    assert first[".env"] == f"OTHER=1\nAPP__DISCORD__TOKEN={SECRET_TOKEN}\n"
    assert stat.S_IMODE((clone.folder / ".env").stat().st_mode) == 0o600
    assert links.read_text() == f"https://example.org/old  \n# mine\n{site.origin}/backups\n"
    code, out, _ = clone.init(**answers)
    assert code == 0
    assert "nothing has changed" in out
    assert clone.written == first


def test_a_value_that_stands_in_env_is_changed_there_where_it_counts(clone: Clone, model_there: LLMServer) -> None:
    old = "APP__AI_RESPONSE__LLM__BASE_URL=http://127.0.0.1:9/v1\nAPP__AI_RESPONSE__LLM__MODEL=old\n"
    (clone.folder / ".env").write_text(f"{old}APP__AI_RESPONSE__LLM__API_KEY=old\n")
    assert clone.init(model_base_url=model_there.base_url, model_api_key=SECRET_KEY, model_name="m")[0] == 0
    llm = load(clone.config).ai_response.llm
    assert llm is not None
    assert (llm.base_url, llm.model, llm.api_key.get_secret_value()) == (model_there.base_url, "m", SECRET_KEY)
    assert "config.local.yaml" not in clone.written
    assert clone.init(model_base_url="none")[0] == 0
    assert load(clone.config).ai_response.llm is None
    assert clone.written[".env"] == ""


def test_a_variable_of_the_environment_that_wins_is_named(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP__KB__SOURCES_DIR", str(clone.folder / "elsewhere"))
    _, out, _ = clone.init(documentation="docs")
    assert "the environment variable APP__KB__SOURCES_DIR wins over what was written: unset it" in out


@pytest.mark.parametrize("model", [", model: m", ""], ids=["a model", "one that was only begun"])
@pytest.mark.parametrize("key", [{"model_api_key": "other"}, {}], ids=["another key", "none"])
def test_the_key_of_one_address_is_shown_to_no_other(
    clone: Clone, model_there: LLMServer, model: str, key: dict[str, str]
) -> None:
    """Pitfall 22."""
    local = f"ai_response: {{llm: {{base_url: 'http://127.0.0.1:9/v1', api_key: {SECRET_KEY}{model}}}}}"
    (clone.folder / "config.local.yaml").write_text(local)
    assert clone.init(model_base_url=model_there.base_url, model_name="m", **key)[0] == 0
    assert len(model_there.requests) > 1
    assert all(SECRET_KEY not in str(seen.headers) for seen in model_there.requests)


def test_a_server_that_knows_no_function_calls_is_asked_by_a_schema(clone: Clone, model_there: LLMServer) -> None:
    model_there.then(scenes.status(400))
    assert clone.init(model_base_url=model_there.base_url, model_name="m")[0] == 0
    assert clone.local["ai_response"]["llm"] == {
        "base_url": model_there.base_url,
        "model": "m",
        "structured_output_method": "json_schema",
    }


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({"discord_token": "abc"}, "discord_token cannot be used: this is not a bot token"),
        ({"data_dir": "none"}, "data_dir cannot be used: the bot needs a folder for its own files"),
        ({"discord_token": "two words"}, "discord_token cannot be used: it holds blanks"),
        ({"team_roles": [5]}, "team_roles cannot be used: 5 is not the id of a role"),
        ({"team_roles": [0]}, "team_roles cannot be used: 0 is not the id of a role"),
        (
            {"team_roles": ["Moderators"]},
            "Moderators is a name: names of roles need a token that works",
        ),
        ({"team_people": "ada"}, "team_people cannot be used: ada is not the id of a user"),
        ({"data_dir": "config.yaml"}, "data_dir cannot be used: "),
        ({"data_dir": "/proc"}, "data_dir cannot be used: /proc cannot be written"),
        ({"documentation": "nowhere"}, "/nowhere; an address begins with https://"),
        ({"documentation": ["docs", "."]}, "kb.sources_dir must lie apart from"),
        ({"documentation": ["docs", "/usr/share"]}, "lie below no folder together: move one of them"),
        ({"documentation": "empty"}, "empty: 0 documents; documents are text files, such as .md, "),
        ({"documentation": "http://127.0.0.1:9/x"}, "documentation cannot be used: http://127.0.0.1:9/x: "),
        ({"documentation": "https://me:pw@example.org"}, "it holds a user name or password"),
        ({"documentation": "sitemap: ftp://example.org"}, "it is no http or https URL, such as https://docs."),
        ({"documentation": "ftp://example.org"}, "ftp://example.org: an address begins with https:// or http://"),
        ({"documentation": "http://192.168.0.1/"}, "hosts of your own belong in kb.web_fetch_private_hosts"),
        ({"model_base_url": "an address"}, "model_base_url cannot be used: an address begins with http:// or https://"),
        ({"model_base_url": "http://127.0.0.1:9/v1"}, "nothing listens there (connection refused)"),
        ({"first_question": {"a": 1, "b": 2}}, "first_question cannot be used: it must be text"),
        ({"build_index": "perhaps"}, "build_index cannot be used: it must be true or false"),
        ({"team_peple": "ada"}, "team_peple is none of the answers; did you mean team_people?"),
        ({"tokens": "x"}, "tokens is none of the answers; known are discord_token, team_roles,"),
        ({KEY_SHAPED: "x"}, ":1: is none of the answers; known are"),
        ({}, "there are no answers in it; known are discord_token"),
    ],
)
def test_a_wrong_answer_is_one_line_that_names_its_key_and_nothing_is_written(
    clone: Clone, answers: dict[str, Any], says: str
) -> None:
    (clone.folder / "empty").mkdir()
    line = clone.refused(**answers)
    assert says in line
    assert KEY_SHAPED not in line


def test_a_setting_that_the_file_leaves_out_is_not_blamed_on_the_file(clone: Clone) -> None:
    (clone.folder / ".env").write_text("APP__DISCORD__TOKEN=abc\n")
    code, _, err = clone.init(documentation="docs")
    assert (code, err.split(": ")[2:4]) == (
        2,
        [
            "discord_token is not in it, and what is set cannot be used",
            "this is not a bot token, which is three words joined by dots; client secrets and public keys are not\n",
        ],
    )


def test_a_file_that_is_not_there_is_one_line(clone: Clone) -> None:
    code, _, err = clone.run("--init", "nowhere.yaml")
    assert (code, err) == (
        2,
        "app.py: nowhere.yaml: there is no such file; create it, go to its folder, or name another with --init FILE\n",
    )


def test_what_discord_refuses_is_refused(clone: Clone, discord_there: DiscordServer) -> None:
    assert "discord_token cannot be used: Discord refuses the token" in clone.refused(
        discord_token=SECRET_TOKEN.replace("a", "b")
    )
    assert "team_people cannot be used: Discord knows no user" in clone.refused(
        discord_token=SECRET_TOKEN, team_people=[1458745245675032710]
    )
    server = discord_there.guild.id
    assert f"{server} is @everyone" in clone.refused(discord_token=SECRET_TOKEN, team_roles=[server])
    assert "has a role 1458745245675032710" in clone.refused(
        discord_token=SECRET_TOKEN, team_roles=[1458745245675032710]
    )
    discord_there.add_role("Staff")
    discord_there.add_role("staff")
    assert "several roles are called STAFF" in clone.refused(discord_token=SECRET_TOKEN, team_roles="STAFF")
    discord_there.state.content_approved = False
    assert "Switch on Message Content Intent" in clone.refused(discord_token=SECRET_TOKEN)


def test_a_discord_that_cannot_be_asked_keeps_nobody_from_going_on(clone: Clone) -> None:
    code, out, _ = clone.init(discord_token=SECRET_TOKEN, team_roles=[1458745245675032710])
    assert code == 0
    assert "not checked: Discord cannot be reached: nothing listens there" in out
    assert clone.local == {"discord": {"team_role_ids": [1458745245675032710]}}


def test_a_model_that_refuses_is_told_apart(clone: Clone, model_there: LLMServer) -> None:
    answers = {"model_base_url": model_there.base_url, "model_name": "wrong"}
    model_there.otherwise = scenes.status(404)
    line = clone.refused(**answers)
    assert "model_name cannot be used: wrong at" in line
    assert "does not know this address or model; check the address and the name (HTTP 404" in line
    model_there.otherwise = scenes.status(401)  # the list of models needs no key, an answer does
    line = clone.refused(**answers, model_api_key=SECRET_KEY)
    assert "model_api_key cannot be used: wrong at" in line
    assert "does not accept the key; give another (HTTP 401" in line
    model_there.otherwise = scenes.content("no object")
    line += clone.refused(**answers)
    assert "model_name cannot be used: no usable answer in two replies: " in line
    assert "; try another model\n" in line
    assert not any(word in line for word in ("step check", "CheckResult", "structured_output_method"))
    model_there.models = scenes.status(401)
    line = clone.refused(**answers, model_api_key=SECRET_KEY)
    assert "model_api_key cannot be used: " in line
    assert "does not accept the key (HTTP 401)" in line
    https = model_there.base_url.replace("http:", "https:")
    assert "it does not speak TLS there" in clone.refused(model_base_url=https)
    model_there.models = scenes.raw("{}")
    assert "model_name cannot be used: a name is needed" in clone.refused(model_base_url=model_there.base_url)


@pytest.mark.parametrize(
    ("line", "body", "says"),
    [
        ("llms: {}/list", "# X\n- [a]({0}/a.md)\n- [b]({0}/b.md): b\n", "2 documents"),
        ("sitemap: {}/list", SITEMAP, "2 documents"),
        ("SITEMAP:  {}/list", SITEMAP, "2 documents"),
    ],
)
def test_a_line_for_many_pages_is_checked_and_taken(
    clone: Clone, site: WebServer, line: str, body: str, says: str
) -> None:
    site.paths["/list"] = page(body.format(site.origin), "text/plain")
    code, out, _ = clone.init(documentation=[line.format(site.origin)])
    assert code == 0
    assert says in out
    assert clone.written["data/knowledge-base/links.txt"] == f"{' '.join(line.split()).format(site.origin)}\n"
    assert (clone.folder / "data/knowledge-base/sources").is_dir(), "else the pages could not be indexed"


def test_a_list_of_nothing_is_refused(clone: Clone, site: WebServer) -> None:
    site.paths["/list"] = page("<html>hello</html>")
    assert "it is no sitemap" in clone.refused(documentation=f"sitemap: {site.origin}/list")
    line = clone.refused(documentation=f"sitemap: {site.origin}/nowhere.xml")
    assert line.endswith("/nowhere.xml: there is nothing at that address (HTTP 404)\n")
    assert "links.txt" not in line
    assert "404" in clone.refused(documentation=f"git: {site.origin}/example/project")


def test_what_discord_says_can_neither_colour_nor_move_anything(clone: Clone, discord_there: DiscordServer) -> None:
    role = discord_there.add_role("\x1b[31mStaff\u202e\nx[bold]")
    _, out, _ = clone.init(discord_token=SECRET_TOKEN, team_roles=[role.id])
    assert "1 role, 0 people: [31mStaff x[bold]\n" in out


def test_an_index_that_cannot_be_built_now_is_one_line_after_all_was_written(clone: Clone, tmp_path: Path) -> None:
    (tmp_path / "docs" / "more.md").write_text("# More\n\nWords about it.\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "knowledge-base").write_text("in the way")
    code, out, err = clone.init(documentation="docs", build_index=True)
    assert code != 0
    assert clone.local == {"kb": {"sources_dir": "docs"}}
    assert "✗" in out or err.startswith("app.py: ")


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [(503, {}, "Discord answers with HTTP 503"), (200, {"odd": 1}, "what answers is not Discord")],
)
def test_a_discord_that_does_not_list_its_servers_leaves_the_ids_to_the_operator(
    clone: Clone, discord_there: DiscordServer, status: int, body: Any, says: str
) -> None:
    discord_there.fail_next("GET", "/users/@me/guilds$", status=status, body=body)
    code, out, _ = clone.init(discord_token=SECRET_TOKEN, team_roles=[1458745245675032710])
    assert code == 0
    assert f"its servers are not known: {says}" in out
    assert clone.local == {"discord": {"team_role_ids": [1458745245675032710]}}
