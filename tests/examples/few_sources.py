"""The demo with a few of its sources: to read and embed them all is most of what a replay costs."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.examples.test_demo_files import SOURCES


def config_with(folder: Path, *sources: str) -> Path:
    config, kept = folder / "few.yaml", folder / "few"
    kept.mkdir()
    for source in sources:
        shutil.copy(SOURCES / source, kept)
    config.write_text(f"kb:\n  sources_dir: {kept}\nai_response:\n  llm: null\n", encoding="utf-8")
    return config
