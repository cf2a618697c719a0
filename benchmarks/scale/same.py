"""The same recording through one process and through many: the same outcome of every message."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from benchmarks.scale import judge
from benchmarks.scale.discord import RECORDING
from benchmarks.scale.findings import Requirement, none
from benchmarks.scale.processes import ROOT
from benchmarks.scale.scene import Scene, write_config
from services.team import Pair
from services.team.archive_files import pairs_in

SECONDS = 60.0
UNSAID = "ignored"
"""What has no line among the outcomes of a replay was ignored."""


async def outcomes(scene: Scene, workers: int = 2) -> list[Requirement]:
    """Undisturbed; then the recording of it is replayed by one process."""
    await scene.started(gateway=1, worker=workers, team=1, knowledge=1)
    said = await scene.discord.play()
    settled = await scene.settled(SECONDS) is not None
    await scene.watch.caught_up()
    sent, _ = await scene.discord.report()
    local = await replayed(scene)
    kinds, log = local.kinds, scene.watch.log
    differ = [
        f"{each.id} ({kinds.get(each.id, UNSAID)} by one process, {log.kinds.get(each.id, 'nothing')} by many)"
        for each in sent
        if kinds.get(each.id, UNSAID) != log.kinds.get(each.id)
    ]
    ours, theirs = (ids_in(pairs) for pairs in (judge.pairs(log), local.pairs))
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(kinds.values()).items()))
    return [
        (settled and said > 0, f"{said} messages, undisturbed, all with an outcome: {settled}"),
        none(f"outcomes that differ from those of one process ({counts})", differ),
        none("captured messages that one of both has not", sorted(ours ^ theirs)),
    ]


class Replayed:
    """What one process made of a recording."""

    def __init__(self, lines: str, archive: Path) -> None:
        outcomes = [json.loads(line) for line in lines.splitlines()]
        self.pairs = pairs_in(archive)
        self.kinds: Mapping[int, str] = {
            int(message_id): each["outcome"]
            for each in outcomes
            if "outcome" in each
            for message_id in each["message_ids"]
        }


async def replayed(scene: Scene) -> Replayed:
    """Raises AssertionError: the replay has failed."""
    folder, discord = scene.folder, scene.discord
    config = write_config(folder, "local", discord.about["team"], "local")
    data = folder / "replayed"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "app.py", "--config", str(config), "--replay", str(discord.folder / RECORDING)),
        *("--json", "--data", str(data)),
        cwd=ROOT,
        env={**os.environ, "APP__AI_RESPONSE__LLM__BASE_URL": scene.model.address("local")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, said = await process.communicate()
    assert process.returncode == 0, said.decode()[-2000:]
    return Replayed(out.decode(), data / "team-knowledge" / "raw")


def ids_in(pairs: list[Pair]) -> set[int]:
    return {message_id for pair in pairs for message_id in pair.message_ids}
