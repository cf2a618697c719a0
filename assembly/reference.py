"""Slash commands and roles in docs/operating.md, and the metrics of decisions there and in deploy/grafana.json, made
from `COMMANDS`, `PERMISSIONS` and `STEPS`.

python -m assembly.reference --write      writes it
python -m assembly.reference --check      exits 1 when it is out of date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from assembly.slash_commands import COMMANDS
from model.permissions import PERMISSIONS, ROLES, Operator
from model.steps import DECISIONS, DecisionMetric
from services.discord.slash import QUESTION
from settings.reference import main, with_table

PANEL = "Decisions"


def commands() -> str:
    """Return the commands in Markdown: name and options, description, the setting that it needs; and those for private
    questions.
    """
    rows = ["| command | does | needs |", "|---|---|---|"]
    for name, command in COMMANDS.items():
        options = [key if option.required else f"[{key}]" for key, option in command.options.items()]
        options = [] if command.form_title else options
        needs = "`documents.enabled`" if command.needs_documents else "to be in the team" if command.team_only else ""
        rows.append(f"| `/{' '.join([name, *options])}` | {command.description} | {needs} |")
    asking = " and ".join(f"`/{name}`" for name, command in COMMANDS.items() if QUESTION in command.options.values())
    return "\n".join([*rows, "", f"Questions by {asking} are private questions: only the asker reads the answer.", ""])


def roles() -> str:
    """Return the table of the roles of operators and what they may do, in Markdown."""
    rows = [f"| may | {' | '.join(f'`{role}`' for role in ROLES)} |", f"|---{'|---' * len(ROLES)}|"]
    for act, permission in PERMISSIONS.items():
        cells = ("yes" if Operator("", role).may(act) else "" for role in ROLES)
        rows.append(f"| {permission.what} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def yes_or_no() -> dict[str, DecisionMetric]:
    """Return the metrics that count decisions by yes and no, by the decision."""
    return {name: each.metric for name, each in DECISIONS.items() if each.metric and not each.metric.counts_values}


def decisions() -> str:
    """Return the metrics of decisions in Markdown."""
    rows = [f"| `{each.name}_total{{{each.field}}}` | {each.help} |" for each in yes_or_no().values()]
    return "\n".join(["| metric of a decision | counts |", "|---|---|", *rows]) + "\n"


def dashboard(text: str) -> str:
    """Return the dashboard for Grafana, with a line for each metric of a decision."""
    board: dict[str, Any] = json.loads(text)
    (panel,) = (each for each in board["panels"] if each["title"] == PANEL)
    panel["targets"] = [
        {
            "refId": chr(ord("A") + place),
            "expr": f'sum by ({metric.field}) (rate({metric.name}_total{{job=~"$job"}}[$__rate_interval])) * 3600',
            "legendFormat": f"{name}: {metric.field.replace('_', ' ')} {{{{{metric.field}}}}}",
            "datasource": panel["datasource"],
        }
        for place, (name, metric) in enumerate(yes_or_no().items())
    ]
    return json.dumps(board, indent=1) + "\n"


def generated(root: Path) -> dict[Path, str]:
    """Return the files and the text that each should have. Raises ValueError: the marks are missing."""
    page, board = root / "docs" / "operating.md", root / "deploy" / "grafana.json"
    text = with_table(page.read_text("utf-8"), page.name, "slash commands", commands())
    text = with_table(text, page.name, "roles", roles())
    return {page: with_table(text, page.name, "decisions", decisions()), board: dashboard(board.read_text("utf-8"))}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).parent.parent, generated, "assembly.reference"))
