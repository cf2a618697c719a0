"""`--ask`: one question, answered on the terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app import main
from model.words import without_invisible
from services.conversations import phrases


@pytest.mark.parametrize("language", ["question", "fr"])
def test_the_bots_own_sentences_are_in_the_configured_language(
    language: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Around a quote, and where there is none."""
    config.write_text(f"{config.read_text()}ai_response:\n  reply_language: {language}\n")
    say = phrases("en" if language == "question" else language)
    assert main(["--config", str(config), "--ask", "How do I install Lanternfish?"]) == 0
    assert say.no_model_notice in capsys.readouterr().out
    assert main(["--config", str(config), "--ask", "Which wine goes with fish?"]) == 0
    assert say.found_nothing_at_all.split(".")[0] in capsys.readouterr().out


def test_what_a_terminal_would_obey_is_left_out_of_an_answer(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page may set the title of the window, clear the screen, write to the clipboard or hide lines."""
    hostile = "\x1b]0;owned\x07\x1b[2J\x9b31m\x08\u202e"
    page = config.parent / "data" / "knowledge-base" / "sources" / "install.md"
    page.write_text(f"# Install\n\nTo install Lanternfish,{hostile} run `lanternfish setup` and follow what it says.\n")
    assert main(["--config", str(config), "--ask", "How do I install Lanternfish?"]) == 0
    out, err = capsys.readouterr()
    assert "lanternfish setup" in out
    assert (without_invisible(out), without_invisible(err)) == (out, err)


def test_what_a_question_does_not_need_is_not_imported() -> None:
    script = "import sys, commands.ask; print([each for each in ('aiohttp', 'trafilatura') if each in sys.modules])"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
