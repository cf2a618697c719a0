"""The table of slash commands in docs/operating.md, made from `COMMANDS`.

python -m assembly.slash_reference --write      writes it
python -m assembly.slash_reference --check      exits 1 when it is out of date
"""

from __future__ import annotations

import sys
from pathlib import Path

from assembly.slash_commands import COMMANDS
from services.discord.slash import QUESTION
from settings.reference import main, with_table


def table() -> str:
    """The commands in Markdown: name and options, what Discord says of it, the setting that it needs; and which are for
    private questions.
    """
    rows = ["| command | does | needs |", "|---|---|---|"]
    for name, command in COMMANDS.items():
        options = [key if option.required else f"[{key}]" for key, option in command.options.items()]
        needs = "`documents.enabled`" if command.needs_documents else ""
        rows.append(f"| `/{' '.join([name, *options])}` | {command.description} | {needs} |")
    asking = " and ".join(f"`/{name}`" for name, command in COMMANDS.items() if QUESTION in command.options.values())
    return "\n".join([*rows, "", f"Questions by {asking} are private questions: only the asker reads the answer.", ""])


def generated(root: Path) -> dict[Path, str]:
    """The file with the table, and the text that it should have. Raises ValueError: the marks are missing."""
    page = root / "docs" / "operating.md"
    return {page: with_table(page, "slash commands", table())}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).parent.parent, generated, "assembly.slash_reference"))
