"""The dashboard for Grafana asks for metrics that there are, by labels that they have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from services.telemetry.exporter import Metrics

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "deploy" / "grafana.json").read_text())
FUNCTIONS = {"sum", "max", "by", "rate", "increase", "histogram_quantile", "label_values"}
EXPORTED = re.compile(r"`(\w+)(?:\{([\w,]+)\})?`")


def registered() -> dict[str, str]:
    """The kind of each metric."""
    types = re.findall(r"^# TYPE (\w+) (\w+)$", Metrics("worker").render().decode(), re.MULTILINE)
    return {name: kind for name, kind in types if not name.endswith("_created")}


def documented() -> dict[str, set[str]]:
    """The labels of each metric, by docs/operating.md."""
    text = (ROOT / "docs" / "operating.md").read_text()
    tables = text.partition("## Metrics and health\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in tables.splitlines() if line.startswith("|")]
    return {name: set(labels.split(",")) - {""} for row in rows for name, labels in EXPORTED.findall(row)}


def series() -> dict[str, set[str]]:
    """What can be asked for, with its labels."""
    labels = documented()
    found: dict[str, set[str]] = {}
    for name, kind in registered().items():
        if kind == "histogram":
            found |= {
                f"{name}_sum": labels[name],
                f"{name}_count": labels[name],
                f"{name}_bucket": labels[name] | {"le"},
            }
        else:
            found[name] = labels[name]
    return found


def expressions() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def test_the_documentation_names_the_metrics_that_there_are() -> None:
    assert set(documented()) == set(registered())


def test_each_expression_asks_for_what_there_is() -> None:
    known = series()
    variables = [each["query"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    for expression in [*expressions(), *variables]:
        bare = re.sub(r'"[^"]*"|\[[^\]]*\]', "", expression)
        names = set(re.findall(r"[a-z_]\w+", bare)) - FUNCTIONS
        metrics = names & set(known)
        assert metrics, expression
        allowed = {"job"}.union(*(known[name] for name in metrics))
        assert names - metrics <= allowed, expression


def test_labels_that_are_shown_are_those_that_are_kept() -> None:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            kept = {label for group in re.findall(r"by \(([^)]*)\)", target["expr"]) for label in group.split(", ")}
            assert shown == kept - {"le"}, target["expr"]


def test_counters_are_asked_for_their_growth() -> None:
    growing = [name for name, kind in registered().items() if kind == "counter"]
    for expression in expressions():
        for name in growing:
            assert len(re.findall(rf"\b{name}\b", expression)) == len(
                re.findall(rf"(?:rate|increase)\({name}\b", expression)
            )


def test_every_metric_is_shown() -> None:
    shown = " ".join(expressions())
    assert [name for name in registered() if not re.search(rf"\b{name}(?:_sum|_bucket)?\b", shown)] == []


def test_it_is_laid_out_without_overlaps() -> None:
    taken: set[tuple[int, int]] = set()
    panels: list[dict[str, Any]] = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        assert panel["title"]
        assert panel["description"]
        taken |= cells
