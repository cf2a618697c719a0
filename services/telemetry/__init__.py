"""What the running program says about itself: log lines, how counts read in them, how each part ended, and why a server
was not reached. `exporter` serves metrics.
"""

# pyright: reportUnusedImport=false
from services.telemetry import logs
from services.telemetry.connections import why_unreached
from services.telemetry.ended import Ended, ended, parse_ended, render_ended
from services.telemetry.logs import about, about_message, number_of, people
