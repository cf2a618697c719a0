from __future__ import annotations

from pathlib import Path
from typing import cast

from assembly.knowledge import describer_of
from services.assistant.extractive.describing import ExtractiveDescriber
from services.llm.structured import StructuredLLM
from services.llm.usage import Usage
from settings import load

MODEL = "llm: {{base_url: 'http://127.0.0.1:9/v1', api_key: none, model: {}}}"


def key(root: Path, *sections: str) -> str:
    """Of the describer that a configuration asks for; nobody is asked anything."""
    (root / "config.yaml").write_text("\n".join((*sections, "")))
    return describer_of(load(root / "config.yaml"), cast("StructuredLLM", object()), Usage()).key


def test_another_prompt_model_or_introduction_makes_descriptions_anew(tmp_path: Path) -> None:
    """Pitfall 41: each of them is in the key by which a description is known to be up to date."""
    one, two = (f"ai_response: {{{MODEL.format(name)}}}" for name in ("one", "two"))
    keys = [
        key(tmp_path, one),
        key(tmp_path, two),
        key(tmp_path, one, f"kb: {{{MODEL.format('three')}}}"),
        key(tmp_path, one, "kb: {summarization_prompt: Say what it is for.}"),
        key(tmp_path, one.replace("{llm", "{project_introduction: It is a mill., llm")),
    ]
    assert len(set(keys)) == len(keys)
    assert key(tmp_path, one) == keys[0]


def test_without_a_model_descriptions_are_made_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("{}\n")
    assert isinstance(describer_of(load(tmp_path / "config.yaml"), None, Usage()), ExtractiveDescriber)
