"""From parsed options to a command; from what can go wrong to one readable line and an exit code."""

from __future__ import annotations

import argparse
import sys

from commands.ask import ask
from commands.assembling import redactor_of
from commands.replay import ReplayOptions, replay
from services import logs
from services.connection import GatewayRefused
from services.data_folder import FolderBusy
from services.llm.exchanges import UnreadableExchanges
from services.recordings import BadRecording
from settings import Settings, SettingsError, load

UNUSABLE = 2


def run(options: argparse.Namespace) -> int:
    """The exit code of the command that `options` (see `app.parser`) name."""
    try:
        settings = load(options.config)
        configure_logging(settings)
        return command(settings, options)
    except (SettingsError, BadRecording, FolderBusy, GatewayRefused, UnreadableExchanges) as error:
        print(f"app.py: {error}", file=sys.stderr)  # noqa: T201 (the one line the user is to read)
        return UNUSABLE


def command(settings: Settings, options: argparse.Namespace) -> int:
    if options.replay is not None:
        return replay(
            settings,
            ReplayOptions(
                options.replay, options.data, options.speed, options.json, options.llm_record, options.llm_replay
            ),
        )
    if options.ask is not None:
        return ask(settings, options.ask, record=options.llm_record, replay=options.llm_replay)
    # discord.py takes over a second to import, and nobody else needs it.
    from commands.live import LiveOptions, live  # noqa: PLC0415

    return live(settings, LiveOptions(options.dry_run, options.record, options.llm_record, options.llm_replay))


def configure_logging(settings: Settings) -> None:
    logging_ = settings.logging
    logs.configure(
        level=logging_.level,
        style=logging_.format,
        file=logging_.file.path,
        backup_count=logging_.file.rotation.backup_count,
        redact=redactor_of(settings).text,
    )
