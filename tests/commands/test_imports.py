"""What a command imports before it can begin: what it needs, and no more."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

import app


def loaded_by(module: str, *prefixes: str) -> list[str]:
    """The modules below `prefixes` that a fresh interpreter has after it imported `module`."""
    code = f"import sys, {module}; print(*sorted(each for each in sys.modules if each.startswith({prefixes})))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1].split()  # before it stands what the module itself has printed


def test_a_command_is_imported_when_it_is_chosen() -> None:
    assert loaded_by("commands.dispatch", "commands.") == [
        "commands.arguments",
        "commands.dispatch",
    ]


def test_a_single_answer_needs_neither_the_tools_for_files_nor_the_graph_nor_discord_nor_a_model_s_client() -> None:
    unneeded = ("services.documents", "services.privacy", "streams.graph", "streams.wiring", "discord", "openai")
    assert loaded_by("commands.ask", *unneeded) == []


MAX_MODULES = 122
"""Ours, of a question without a model: each takes a millisecond or two of its CPU."""


def test_a_question_executes_few_of_our_modules() -> None:
    ours = (
        "assembly",
        "clock",
        "commands",
        "dataflow",
        "model",
        "operators",
        "services",
        "settings",
        "sinks",
        "streams",
    )
    question = (
        "app, services.assistant.extractive.assistant; app.main(['--config', 'examples/demo.yaml', '--ask', 'Hi?'])"
    )
    loaded = [each for each in loaded_by(question, *ours) if each.partition(".")[0] in ours]
    assert "streams.chain" in loaded
    assert len(loaded) <= MAX_MODULES


def test_help_needs_no_pydantic() -> None:
    assert loaded_by("app", "pydantic") == []


def test_a_process_that_reads_a_file_or_a_page_needs_little_else() -> None:
    unneeded = ("numpy", "onnxruntime", "aiohttp", "discord", "openai", "services.conversations", "services.llm")
    for module in (
        "services.documents.reading.preparing",
        "services.knowledge.web.contents",
        "services.search.text.reading",
    ):
        assert loaded_by(module, *unneeded) == []


@pytest.mark.parametrize("command", ["ask", "live", "mcp_server"])
def test_the_model_context_protocol_is_imported_when_it_is_served(command: str) -> None:
    assert loaded_by(f"commands.{command}", "mcp", "starlette", "uvicorn") == []


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_is_collected_again_after_the_imports(*, collecting: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        with app.garbage_collection_off():
            assert not gc.isenabled()
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if before else gc.disable)()
