"""Metrics for Prometheus, and the server that shows them. Loads aiohttp: import it only where metrics are served."""

# pyright: reportUnusedImport=false
from services.telemetry.exporter.metrics import CONNECTIONS, CONTENT_TYPE, CannotListen, Metrics, peer_of, serve_metrics
