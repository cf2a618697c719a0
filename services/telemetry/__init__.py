"""What the program says about itself: log lines, counts in words, how parts ended, why servers were not reached.
Also the bounds of whatever listens. `exporter` serves metrics.
"""

# pyright: reportUnusedImport=false
from services.telemetry import logs
from services.telemetry.connections import why_unreached
from services.telemetry.ended import Ended, ended, parse_ended, render_ended
from services.telemetry.listening import BACKLOG, Connections, few_lines_of, most_connections, raise_descriptor_limit
from services.telemetry.logs import about, about_message, number_of, people
