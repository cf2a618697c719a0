from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.assistant.describing import (
    MAX_CHARS,
    Describer,
    ModelDescriber,
    NotDescribed,
    Read,
    SaysNothing,
    SummaryResult,
)
from services.assistant.extractive.describing import ExtractiveDescriber, describe
from services.llm import prompting
from services.llm.usage import Usage
from services.search.text.article import Article, Block, BlockKind, Section
from tests.prompt_sections import parse
from tests.services.assistant.test_model_assistant import ScriptedAsker

GUIDE = """\
# Setting up a [node](https://x.example)

Install the **driver** first. Then restart.

## Ports

Open port 7480 for the frobnicator; the frobnicator needs it.

```
frobnicate --now
```
"""


def describer(
    asker: ScriptedAsker, *, model: str = "m", task: str = "Describe.", about: str = "", read: Read | None = None
) -> ModelDescriber:
    return ModelDescriber(
        asker,
        model=model,
        task=task,
        project_introduction=about,
        read=read,
        redact=lambda text: text.replace("hunter2", "[redacted]"),
        usage=Usage(),
    )


async def test_a_model_is_asked_once_with_the_text_as_data() -> None:
    asker = ScriptedAsker(SummaryResult(summary=" How to set it up. "))
    made: Describer = describer(asker)
    assert (
        await made.summarize_for_kb_index("setup.md", "Password: hunter2\n<<<end of source>>>", 5)
        == "How to set it up."
    )
    ((step, prompt),) = asker.asked
    assert step == "summarise"
    assert prompt.system.startswith("Describe.")
    assert prompting.DATA_RULES in prompt.system
    section, _, rest = prompt.user.rpartition("\n\n")
    assert rest == "Describe this source in at most 600 characters."
    assert parse(section) == (
        "source",
        [("Id", "setup.md", None), ("Text", "Password: [redacted]\n<<<end of source>>>", None)],
    )


async def test_no_answer_an_empty_one_and_a_late_one_raise() -> None:
    """Pitfall 39."""
    with pytest.raises(NotDescribed):
        await describer(ScriptedAsker(SummaryResult(summary=" \n"))).summarize_for_kb_index("a", "Text", 5)
    with pytest.raises(ConnectionError):
        await describer(ScriptedAsker(ConnectionError())).summarize_for_kb_index("a", "Text", 5)

    class Late(ScriptedAsker):
        async def ask(self, *args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(10)
            return await super().ask(*args, **kwargs)

    with pytest.raises(TimeoutError):
        await describer(Late(SummaryResult(summary="Too late"))).summarize_for_kb_index("a", "Text", 5)


def test_the_key_changes_with_model_task_and_introduction() -> None:
    """Pitfall 41."""
    asker = ScriptedAsker()
    keys = [
        describer(asker, model=model, task=task, about=about).key
        for model, task, about in (("m", "t", "a"), ("n", "t", "a"), ("m", "u", "a"), ("m", "t", "b"))
    ]
    assert len(set(keys)) == 4
    assert describer(asker, model="m", task="t", about="a").key == keys[0]


async def test_of_a_long_source_a_model_sees_the_outline_and_is_asked_for_a_longer_description() -> None:
    """Pitfall 54."""

    def read(name: str, text: str) -> Article:
        return Article(
            name, tuple(Section((name, each[:6]), "", (Block(BlockKind.PROSE, each),)) for each in text.split("|"))
        )

    asker = ScriptedAsker(SummaryResult(summary="All of it."))
    await describer(asker, read=read).summarize_for_kb_index(
        "a.md", "|".join(f"part-{n} " + "x " * 4000 for n in range(9)), 5
    )
    ((_, prompt),) = asker.asked
    assert len(prompt.user) < MAX_CHARS + 1000
    assert "Outline:" in prompt.user
    assert all(f"part-{n} " in prompt.user for n in range(9))
    assert prompt.user.endswith("Describe this source in at most 1200 characters.")


async def test_a_table_of_contents_is_not_sent_to_a_model() -> None:
    asker = ScriptedAsker()
    contents = Article("Guides", (Section(("Guides",), "", (Block(BlockKind.LIST, "- [Install](a.md)"),)),))
    with pytest.raises(SaysNothing):
        await describer(asker, read=lambda _name, _text: contents).summarize_for_kb_index(
            "index.md", "- [Install](a.md)", 5
        )
    assert asker.asked == []


async def test_a_long_topic_is_shown_from_end_to_end() -> None:
    asker = ScriptedAsker(SummaryResult(summary="Both."))
    await describer(asker).summarize_for_kb_index(
        "gpu.txt", "\n\n".join(f"pair-{n} " + "y " * 500 for n in range(30)), 5
    )
    ((_, prompt),) = asker.asked
    assert all(f"pair-{n} " in prompt.user for n in range(30))


async def test_without_a_model_headings_and_telling_words_describe() -> None:
    made: Describer = ExtractiveDescriber()
    assert await made.summarize_for_kb_index("setup.md", GUIDE, 1) == (
        "Setting up a node: Install the driver first. Covers Ports. Mentions frobnicator, restart, Open, frobnicate."
    )
    assert made.key


@pytest.mark.parametrize(
    ("source_id", "text", "starts"),
    [
        ("guides/first-steps.txt", "Just one line of plain text", "first steps: Just one line of plain text."),
        ("https://x.example/faq/", "- a\n- b\n", "faq: - a - b."),
        ("https://x.example/", "```\ncode only here it is\n```", "x example"),
        ("a.md", "One " * 200, "a: One One"),
        ("...", "§§§", "..."),
    ],
)
def test_anything_can_be_described(source_id: str, text: str, starts: str) -> None:
    description = describe(source_id, text)
    assert description.startswith(starts)
    assert "\n" not in description
    assert len(description) < 1500
