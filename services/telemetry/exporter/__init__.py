"""Metrics for Prometheus, and the server that shows them. Loads aiohttp: import it only where metrics are served."""

# pyright: reportUnusedImport=false
from services.telemetry.exporter.metrics import CONTENT_TYPE, Metrics
from services.telemetry.exporter.server import CannotListen, serve_metrics
