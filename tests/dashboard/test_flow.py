"""The picture: every operator that is metered has its box, and the boxes say what the meter tells."""

from __future__ import annotations

import re
from collections import deque
from itertools import chain
from pathlib import Path

import pytest

from dashboard import flow
from dashboard.flow import STEPS_OF_PARTS, Figures, FlowMeter, cells, now_view, picture
from model.steps import STEP_NAMES, STEPS, Lane, StepInfo
from services.telemetry import current_part
from tests.dashboard.made import AT, showing
from tests.dashboard.test_meter import part_of

ROOT = Path(__file__).parents[2]
CALLED = re.compile(
    r'(?:\b(?:update_|capture_)?step|\brun|ask_model|measure_item|operator_gauge|operator_watch)\(\s*(?:\w+(?:\.\w+)*,\s*)?"(\w+)"'
)
OF_KIND = re.compile(r'\bstep, record = "(\w+)"')
OPTIONAL = re.compile(r'\bsteps\["(\w+)"\] = ')


def metered() -> set[str]:
    """The names that the code gives to operators."""
    files = [
        path for folder in ("operators", "streams", "services/knowledge") for path in (ROOT / folder).rglob("*.py")
    ]
    texts = [path.read_text() for path in files]
    return {name for text in texts for pattern in (CALLED, OF_KIND, OPTIONAL) for name in pattern.findall(text)}


def test_every_metered_operator_has_a_box_and_every_box_an_operator() -> None:
    assert metered() == set(STEP_NAMES)


def test_steps_of_parts_are_operators() -> None:
    assert set(STEP_NAMES) > STEPS_OF_PARTS


@pytest.mark.parametrize("more", [0, 1, 7], ids=lambda more: f"{more} more kinds of sources")
def test_boxes_do_not_overlap_and_stay_in_the_picture(more: int) -> None:
    kinds = [StepInfo(name=f"kind {at}", lane=Lane.KNOWLEDGE, title="", subtitle="") for at in range(more)]
    shown = picture([*STEPS, *kinds])
    boxes = [*shown.operators, *shown.sources, *shown.ends]
    for number, box in enumerate(boxes):
        assert 0 <= box.x <= shown.width - box.width
        assert 0 <= box.y <= shown.height - box.height
        for other in boxes[:number]:
            beside = box.x + box.width <= other.x or other.x + other.width <= box.x
            assert beside or box.y + box.height <= other.y or other.y + other.height <= box.y
    for title, x, y in shown.lanes:
        assert not any(box.x <= x < box.x + box.width and box.y < y < box.y + box.height for box in boxes), title


@pytest.mark.parametrize("more", [0, 1, 7])
def test_every_edge_leads_into_a_box(more: int) -> None:
    shown = picture(
        [*STEPS, *(StepInfo(name=f"{at}", lane=Lane.KNOWLEDGE, title="", subtitle="") for at in range(more))]
    )
    assert {edge.into for edge in shown.edges} <= {box.name for box in (*shown.operators, *shown.ends)}
    assert all(re.fullmatch(r"M[\d. ]+(?:[HV][\d.]+ ?)+", edge.path) for edge in shown.edges)


def test_figures_are_written_in_few_words() -> None:
    assert cells(Figures()).line == "–"
    shown = cells(Figures(in_flight=1, waiting=2, done=3, failed=4, seconds=deque([0.0123, 75.0])))
    assert (shown.line, shown.times) == ("3 done · 2 waiting · 4 failed", "12 ms / 1.2 min")
    assert cells(Figures(done=20_991)).line == "20,991 done"
    assert (shown.in_flight, shown.state) == ("1 now", "busy failing")
    assert (cells(Figures()).in_flight, cells(Figures()).state) == ("", "idle")


def test_who_is_on_the_way_is_a_pseudonym_with_the_steps_so_far() -> None:
    meter = FlowMeter(lambda: 0.0)
    token = current_part.set(part_of(10, author_id=0xAB))
    meter.on_begin("gate")(None)
    current_part.reset(token)
    view = now_view(meter, showing(), AT)
    (row,) = view.in_progress
    assert (row.kind, row.who, row.where, row.steps) == ("question", "abababab", "#channel-11", "gate 0 ms")
    assert view.ends == dict.fromkeys((name for name in chain.from_iterable(flow.ENDS)), "0")
    assert view.cells["gate"].line.startswith("1 done")
