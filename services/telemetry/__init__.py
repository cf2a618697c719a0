"""Log lines, the record of outcomes, explanations of failed connections, and limits for listening servers.
`exporter` serves metrics.
"""

# pyright: reportUnusedImport=false
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
from services.telemetry.logs import about_message, add_people, current_part, current_people
from services.telemetry.part_outcomes import (
    QUESTION_CHARS,
    PartOutcome,
    parse_part_outcome,
    part_outcome_of,
    render_part_outcome,
)
