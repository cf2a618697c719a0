"""Makes the parts of the branch `alerts` from the settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from assembly.health import SAMPLE_SECONDS, HealthMonitor
from assembly.running import Meters
from model.health import Condition, Topic
from services.discord import Poster
from services.storage import DataFolder
from services.telemetry import Webhook
from settings import AlertSettings, Settings
from sinks.alerts import Alerts, Send, send_to_channel, send_to_webhook
from streams.alerts import AlertParts

MINUTE, HOUR = 60.0, 3600.0


def alert_parts(
    settings: Settings,
    monitor: HealthMonitor,
    sample: Callable[[], Awaitable[Sequence[Condition]]],
    poster: Poster,
    meters: Meters,
) -> AlertParts | None:
    """Return the parts of the branch; None if no target is set, and in a dry run. Blocking. Raises OSError: its file
    cannot be read.
    """
    chosen = settings.alerts
    if not chosen.enabled or settings.app.dry_run:
        return None
    targets: dict[str, Send] = {}
    if chosen.channel_id is not None:
        targets["channel_id"] = send_to_channel(poster, chosen.channel_id)
    if address := chosen.webhook_url.get_secret_value():
        targets["webhook_url"] = send_to_webhook(Webhook(address))
    after = seconds_in_trouble(chosen)
    sink = Alerts(DataFolder(settings.app.data_dir).alerts, targets, after, meters.incidents)
    return AlertParts(
        sample=sample,
        states=lambda: sink.states,
        keep=sink.keep,
        is_told=sink.is_told,
        changes=monitor.changed,
        after=after,
        every_seconds=SAMPLE_SECONDS,
    )


def seconds_in_trouble(chosen: AlertSettings) -> dict[Topic, float]:
    """Return how long the trouble of each topic has to last before people are told."""
    return {
        Topic.DISCORD: chosen.discord_lost_minutes * MINUTE,
        Topic.ACCESS: 0.0,
        Topic.MODEL: chosen.model_failing_minutes * MINUTE,
        # The age of the knowledge has a limit of its own: this is for a moment between two processes that keep it.
        Topic.KNOWLEDGE: 5 * MINUTE,
        Topic.SOURCES: chosen.source_failing_hours * HOUR,
        Topic.BUDGET: 0.0,
        Topic.DISK: 0.0,
    }
