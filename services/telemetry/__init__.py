"""What the running program says about itself: log lines, how counts read in them, and why a server was not reached.
`exporter` serves metrics.
"""

# pyright: reportUnusedImport=false
from services.telemetry import logs
from services.telemetry.connections import why_unreached
from services.telemetry.logs import about, about_message, number_of, people
