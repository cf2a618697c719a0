from __future__ import annotations

import pytest

from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed
from services.telemetry.exporter import Metrics


def part(author_type: AuthorType = AuthorType.COMMUNITY_USER) -> Part:
    message = Message(10, 1, Author(2, "ada"), "How?", 5.0)
    return Part(1, (message,), author_type, Place(1, PlaceKind.CHANNEL), 65.0)


def shown(metrics: Metrics) -> dict[str, float]:
    """Samples that are not zero."""
    lines = [line.rpartition(" ") for line in metrics.render().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines if float(value) and "_created" not in name}


def test_an_answer_counts_in_every_step_it_went_through() -> None:
    metrics = Metrics()
    decisions: dict[str, object] = {
        "gate": {"answerable": True, "reason": "r"},
        "select": {"offered": 9, "selected": ["kb:a.md", "kb:b.md"]},
        "verify": {"good_enough": True, "issues": []},
    }
    metrics.count_result(Outcome(part(), 70.0, OutcomeKind.REPLIED, decisions=decisions))
    samples = shown(metrics)
    assert samples['ai_requests_total{result="replied"}'] == 1
    assert samples['ai_gate_total{answerable="true"}'] == 1
    assert samples['ai_verification_total{good_enough="true"}'] == 1
    assert samples['ai_selected_sources_bucket{le="2.0"}'] == 1
    assert 'ai_selected_sources_bucket{le="1.0"}' not in samples
    assert samples['adapter_routing_total{handler="answer"}'] == 1


def test_a_chain_that_ended_early_counts_only_as_far_as_it_got() -> None:
    metrics = Metrics()
    gate = {"gate": {"answerable": False, "reason": "r"}}
    metrics.count_result(Outcome(part(), 70.0, OutcomeKind.SKIPPED, Reason.NOT_ANSWERABLE, decisions=dict(gate)))
    metrics.count_result(Outcome(part(), 70.0, OutcomeKind.FAILED, "Unavailable at gate"))
    assert shown(metrics) == {
        'ai_requests_total{result="skipped"}': 1,
        'ai_requests_total{result="failed"}': 1,
        'ai_gate_total{answerable="false"}': 1,
        'adapter_routing_total{handler="answer"}': 2,
    }


def test_what_the_team_writes_counts_as_captures() -> None:
    metrics = Metrics()
    metrics.count_result(Outcome(part(AuthorType.TEAM_MEMBER), 70.0, OutcomeKind.CAPTURED, qa_id="qa_1"))
    metrics.count_result(Outcome(part(AuthorType.TEAM_MEMBER), 70.0, OutcomeKind.SKIPPED, Reason.NOTHING_TO_LEARN))
    assert shown(metrics) == {
        'adapter_routing_total{handler="capture"}': 2,
        'qa_capture_total{result="captured"}': 1,
        'qa_capture_total{result="skipped"}': 1,
    }


@pytest.mark.parametrize("reason", [Reason.REPLY_MODE, Reason.TEAM_IS_ANSWERING])
def test_what_routing_left_alone_went_nowhere(reason: Reason) -> None:
    metrics = Metrics()
    metrics.count_result(Outcome(part(), 70.0, OutcomeKind.SKIPPED, reason))
    metrics.count_result(Ignored(Reason.NOT_ADDRESSED, 1, (10,), part_number=2))
    assert shown(metrics)['adapter_routing_total{handler="nothing"}'] == 2


def test_messages_that_became_no_part_are_not_counted() -> None:
    metrics = Metrics()
    metrics.count_result(Ignored(Reason.BOT, 1, (10,)))
    metrics.count_result(Removed(1, 10))
    assert shown(metrics) == {}


def test_gauges_show_the_last_count_and_calls_add_up() -> None:
    metrics = Metrics()
    for count in (1, 2):
        metrics.gauge("gate", count)
        metrics.gauge("quiet_window", count + 3)
        metrics.tokens("gate", "prompt", 100)
    metrics.observe_call("gate", 0.3)
    samples = shown(metrics)
    assert samples['operator_in_flight{operator="gate"}'] == 2
    assert samples["open_batches"] == 5
    assert samples['llm_tokens_total{kind="prompt",step="gate"}'] == 200
    assert samples['llm_call_seconds_count{step="gate"}'] == 1


def test_two_runs_in_one_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.gauge("gate", 1)
    assert shown(other) == {}


def test_a_process_among_others_names_its_role_and_tells_what_it_owns() -> None:
    metrics = Metrics("gateway,worker")
    metrics.count_result(Outcome(part(), 70.0, OutcomeKind.FAILED, "Unavailable at gate"))
    metrics.set_partitions({3: 2, 7: 1})
    assert shown(metrics) == {
        'ai_requests_total{result="failed",role="gateway,worker"}': 1,
        'adapter_routing_total{handler="answer",role="gateway,worker"}': 1,
        'millrace_partitions{role="gateway,worker"}': 2,
        'millrace_partition_in_flight{partition="3",role="gateway,worker"}': 2,
        'millrace_partition_in_flight{partition="7",role="gateway,worker"}': 1,
    }
    metrics.set_partitions({7: 0})
    assert not [name for name in shown(metrics) if "partition=" in name]
    assert b'partition="7"' in metrics.render()
    assert b"millrace_partition" not in Metrics().render()


def test_a_draft_counts_as_held_and_then_by_its_end() -> None:
    metrics = Metrics()
    metrics.count_result(Outcome(part(), 70.0, OutcomeKind.HELD, Reason.HELD_FOR_APPROVAL))
    ended: dict[str, object] = {"approve": {"end": "discarded"}}
    metrics.count_result(Outcome(part(), 90.0, OutcomeKind.SKIPPED, Reason.DISCARDED, decisions=ended, ends_draft=True))
    assert shown(metrics) == {
        'ai_requests_total{result="held"}': 1,
        'ai_drafts_total{end="discarded"}': 1,
        'adapter_routing_total{handler="answer"}': 1,
    }


def test_open_incidents_are_shown_by_their_kind_until_another_process_tells_of_them() -> None:
    metrics = Metrics()
    metrics.incidents({"disk": True, "model": False})
    assert b'millrace_alerts_open{kind="disk"} 1.0' in metrics.render()
    assert b'millrace_alerts_open{kind="model"} 0.0' in metrics.render()
    metrics.incidents({})
    assert b"kind=" not in metrics.render()
