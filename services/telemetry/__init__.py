"""What the running program says about itself: log lines, and how counts read in them. `exporter` serves metrics."""

# pyright: reportUnusedImport=false
from services.telemetry import logs
from services.telemetry.connections import why_unreached
from services.telemetry.logs import about, about_message, number_of, people
