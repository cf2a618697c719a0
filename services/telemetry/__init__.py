"""Logs, the record of outcomes, limits of listening servers, webhooks. `exporter` serves metrics."""

# pyright: reportUnusedImport=false
from typing import TYPE_CHECKING

from services import lazy_exports

if TYPE_CHECKING:
    from model.words import number_of
    from services.telemetry import logs
    from services.telemetry.connections import (
        BACKLOG,
        Connections,
        connection_problem,
        limit_log_lines,
        most_connections,
        raise_descriptor_limit,
    )
    from services.telemetry.logs import LastError, about_message, add_people, current_part, current_people
    from services.telemetry.part_outcomes import (
        QUESTION_CHARS,
        PartOutcome,
        parse_part_outcome,
        part_outcome_of,
        recorded_question,
        render_part_outcome,
    )
    from services.telemetry.webhook import Webhook, WebhookFailed

__getattr__ = lazy_exports(__name__)
