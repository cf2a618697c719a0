"""Metrics for Prometheus, and the server that shows them. Loads aiohttp: import it only where metrics are served."""

# pyright: reportUnusedImport=false
from services.telemetry.exporter.metrics import CONTENT_TYPE, CannotListen, Metrics, serve_metrics
