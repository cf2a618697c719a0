"""`--init` with somebody who types, in a process of its own."""

from __future__ import annotations

import stat

import pytest

from commands.setting_up.steps import PORTAL
from settings import load
from tests.commands.conftest import SECRET_KEY, SECRET_TOKEN
from tests.commands.setting_up.conftest import ARTICLE, Clone, page
from tests.commands.setting_up.typist import CTRL_C, CTRL_D, Typist
from tests.loopback import llm_scenes as scenes
from tests.loopback.discord_server import DiscordServer
from tests.loopback.listener import API
from tests.loopback.llm_server import LLMServer
from tests.loopback.web_server import WebServer

NOWHERE = "http://127.0.0.1:9"


def at_work(clone: Clone, rest: str = NOWHERE) -> Typist:
    return Typist(rest, "--config", "config.yaml", "--init", folder=clone.folder)


def test_a_newcomer_is_led_from_a_clone_to_an_answer(
    clone: Clone, discord_there: DiscordServer, model_there: LLMServer
) -> None:
    """Pitfall 22: what is secret never stands on the screen."""
    staff = discord_there.add_role("Staff")
    discord_there.state.content_approved = False
    discord_there.state.joined = False
    with at_work(clone, discord_there.origin + API) as typist:
        typist.answers("The bot's token (not shown), or `later` to try without Discord [later]: ", "abc")
        assert "✗ this is not a bot token" in typist.answers("without Discord [later]: ", SECRET_TOKEN)
        typist.until("Switch on Message Content Intent")
        discord_there.state.content_approved = True
        typist.answers("Enter when it is switched on, or `later`: ", "")
        assert "&permissions=309237711872" in typist.until("The team")
        typist.until("in no server yet")
        discord_there.state.joined = True
        typist.answers("Enter to look again", "")
        assert f"1  Staff ({staff.id}, loopback)" in typist.answers("Roles of the team, numbers", "7")
        assert "✗ 7 is not the id of a role" in typist.answers("Roles of the team, numbers", "Stafff")
        assert "✗ there is no role Stafff; did you mean Staff?" in typist.answers("Roles of the team, numbers", "1")
        typist.answers("Single people of the team", "")
        assert "✓ 1 role, 0 people: Staff" in typist.answers("Folder kept by the bot, not your documents [data]: ", "")
        typist.answers("Folders or addresses; Enter when that is all: ", "nowhere")
        assert "✗ there is no folder /" in typist.answers("Enter when that is all: ", "docs")
        assert "docs: 1 document" in typist.answers("Enter when that is all: ", "")
        typist.answers("Address where this folder is published, for links; Enter: nowhere: ", "on the web")
        assert "✗ on the web: an address begins with https://" in typist.answers("Enter: nowhere: ", "")
        typist.answers("or `none` [none]: ", "http://127.0.0.1:9/v1")
        assert "✗ 127.0.0.1:9 cannot be reached: nothing listens" in typist.answers("[none]: ", model_there.base_url)
        typist.answers("Its key (not shown), or `none` [none]: ", SECRET_KEY)
        model_there.then(scenes.status(401))
        model_there.then(scenes.status(401))
        typist.answers("Name of the model, or `back`: ", "m")
        assert "does not accept the key; give another" in typist.answers("Its key (not shown)", SECRET_KEY)
        typist.answers("Name of the model, or `back`: ", "back")
        typist.answers(f"or `none` [{model_there.base_url}]: ", "none")
        assert "config.local.yaml is written" in typist.answers("Build the index now? (Y/n): ", "perhaps")
        assert "✗ write y or n" in typist.answers("Build the index now? (Y/n): ", "")
        typist.answers("A first question to the bot; Enter for none: ", "How do I install Lanternfish?")
        typist.until("lanternfish setup")
        assert typist.end() == 0
        for secret in (SECRET_TOKEN, SECRET_KEY):
            assert secret not in typist.seen
    settings = load(clone.config, {})
    assert settings.discord.token.get_secret_value() == SECRET_TOKEN
    assert settings.discord.team_role_ids == {staff.id}
    assert settings.kb.sources_dir == clone.folder / "docs"
    assert stat.S_IMODE((clone.folder / ".env").stat().st_mode) == 0o600


@pytest.mark.slow
def test_a_narrow_terminal_breaks_no_word_and_errors_are_told_to_who_is_asked(
    clone: Clone, discord_there: DiscordServer, model_there: LLMServer, site: WebServer
) -> None:
    site.paths["/one"] = page(ARTICLE)
    (clone.folder / "guides").mkdir()
    (clone.folder / "guides" / "start.rst").write_text("Start\n=====\n\nTurn the key.\n")
    options = "--config", "config.yaml", "--init"
    with Typist(discord_there.origin + API, *options, folder=clone.folder, columns=50) as typist:
        typist.answers("Discord [later]: ", "two words")
        typist.answers("Discord [later]: ", SECRET_TOKEN.replace("a", "b"))
        typist.answers("Discord [later]: ", "later")
        typist.answers("none` [none]: ", "none")
        typist.answers("none` [none]: ", "none")
        typist.answers("documents [data]: ", "")
        typist.answers("when that is all: ", f"docs guides nowhere, {site.origin}/one")
        typist.answers("when that is all: ", "")
        typist.answers("`none` [none]: ", "ftp://127.0.0.1/v1")
        typist.answers("`none` [none]: ", model_there.base_url)
        model_there.models = scenes.status(401)
        typist.answers("`none` [none]: ", SECRET_KEY)
        typist.until("give another")
        typist.until_it_reads()
        typist.types(CTRL_C)
        assert typist.end() == 1
        seen = [line.strip() for line in typist.seen.replace("\r", "\n").splitlines()]
    assert all(len(line) <= 50 or "/" in line for line in seen)
    told = " ".join(line for line in seen if line and "one moment" not in line)
    for words in (
        f"✗ it holds blanks or letters that no token has; copy it anew ({PORTAL}, Bot › Reset Token)",
        f"✗ Discord refuses the token. Reset it in the developer portal ({PORTAL}, Bot › Reset Token) and give the new",
        "✗ an address begins with http:// or https:// and holds no password",
        "does not accept the key (HTTP 401); give another",
    ):
        assert words in told
    assert not {"APP__DISCORD__TOKEN", "api_key", "base_url must"}.intersection(told.split())
    assert clone.local["kb"] == {"sources_dir": ".", "source_folders": ["docs", "guides"]}
    assert clone.written["data/knowledge-base/links.txt"] == f"{site.origin}/one\n"
    assert f"✗ there is no folder {clone.folder}/nowhere;" in told


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_answered_whole_and_says_so(clone: Clone) -> None:
    with at_work(clone) as typist:
        typist.answers("or `later` to try without Discord", "later")
        typist.until("Developer Mode; then right-click a role or person › Copy ID.")
        typist.until("Roles of the team")
        typist.until_it_reads()
        typist.types(CTRL_C)
        typist.until("nothing was written; everything is as it was")
        assert typist.end() == 1
    assert clone.written == {}
    with at_work(clone) as typist:
        typist.answers("or `later` to try without Discord", "later")
        typist.answers("Roles of the team, ids", "1458745245675032710")
        typist.answers("Single people", "")
        typist.answers("Folder kept by the bot, not your documents [data]: ", "store")
        typist.until("Enter when that is all: ")
        typist.until_it_reads()
        typist.types(CTRL_C)
        typist.until("kept: Discord, the team, the data folder (in config.local.yaml); the rest is as it was")
        assert typist.end() == 1
        assert "Traceback" not in typist.seen
    assert clone.local == {"discord": {"team_role_ids": [1458745245675032710]}, "app": {"data_dir": "store"}}
    assert not list(clone.folder.glob(".unfinished-*"))
    with at_work(clone) as typist:
        typist.answers("or `later` to try without Discord", "")
        typist.answers("Roles of the team, ids, with commas between; or `none` [1458745245675032710]: ", "none")
        typist.until("Single people")
        typist.types(CTRL_D)
        assert typist.end() == 1
    assert clone.local["discord"] == {"team_role_ids": [1458745245675032710]}, "half a step is no step"


def test_without_a_terminal_the_answers_must_be_in_a_file(clone: Clone) -> None:
    code, out, err = clone.run("--init")
    assert (code, out) == (2, "")
    assert err == "app.py: --init asks questions and there is no terminal: answer them in a file, with --init FILE\n"
