"""The rows of `--check` about the servers of NATS. Makes nothing there."""

from __future__ import annotations

import os

from assembly import Unusable
from commands.check_transport import transport_problems
from commands.findings import Finding, Verdict
from commands.roles import requires_nats_extra
from services.telemetry import number_of
from settings import NatsSettings, Settings


async def nats(settings: Settings) -> list[Finding]:
    """Check each NATS server and compare its streams with the settings; nothing for `transport: local`."""
    if settings.local:
        return []
    try:
        with requires_nats_extra():
            from assembly.distributed.checking import look  # noqa: PLC0415 (nothing of it is imported for one process)
        found = await look(settings)
    except Unusable as error:
        return [_missing(str(error))]
    usable = any(each.trouble is None for each in found.servers)
    refused = any(each.trouble is not None and not each.silent for each in found.servers)
    rows = [] if refused else [_credentials(settings.nats)]
    for each in found.servers:
        if each.trouble is None:
            says = f"{each.server} is version {each.version}, and keeps streams (JetStream)"
            rows.append(Finding("transport", Verdict.OK, says))
        elif each.silent and usable:
            rows.append(_row(Verdict.WARNING, f"{each.trouble}; the others are used"))
        else:
            rows.append(_missing(each.trouble))
    rows += map(_missing, [*found.wrong, *transport_problems(settings, rehearsal=settings.app.dry_run)])
    if found.streams is not None and not found.wrong:
        chosen = settings.nats
        says = f"{number_of(len(found.streams), 'stream')}, made as nats.partitions and nats.replicas say"
        if not found.streams:
            says = "nothing is kept there yet: the first start, or --adopt, makes the streams"
        rows.append(Finding("nats.partitions", Verdict.OK, f"{chosen.partitions}: {says}"))
    return rows


def _credentials(chosen: NatsSettings) -> Finding:
    about, variable = "nats.credentials_env", chosen.credentials_env
    path = os.environ.get(variable)
    if not path:
        return Finding(about, Verdict.SKIPPED, f"{variable} is not set: no credentials are shown")
    return Finding(about, Verdict.OK, f"{variable} is {path}")


def _missing(line: str) -> Finding:
    return _row(Verdict.MISSING, line)


def _row(verdict: Verdict, line: str) -> Finding:
    """`line`: begins with the key."""
    about, _, says = line.partition(": ")
    return Finding(about, verdict, says)
