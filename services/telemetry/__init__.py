"""Log lines, the record of outcomes, explanations of failed connections, and limits for everything that listens.
`exporter` serves metrics.
"""

# pyright: reportUnusedImport=false
from services.telemetry import logs
from services.telemetry.connections import why_unreached
from services.telemetry.ended import Ended, ended, parse_ended, render_ended
from services.telemetry.listening import BACKLOG, Connections, few_lines_of, most_connections, raise_descriptor_limit
from services.telemetry.logs import about, about_message, number_of, people
