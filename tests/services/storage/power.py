"""A machine whose power is cut after so many system calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from services.storage.files import LEFTOVER_PREFIX

CALLS = ("open", "write", "fsync", "ftruncate", "close", "rename", "unlink", "fchmod", "mkdir")


class PowerCut(BaseException):
    """From here on nothing reaches the disk."""


class Machine:
    """Counts the calls that change files, and dies at the one after `last`; `partial`: a write still gets so many
    bytes down.
    """

    def __init__(self, last: int | None = None, partial: int | None = None) -> None:
        self.last, self.partial = last, partial
        self.calls: list[str] = []
        self.dead = False

    def run(self, work: Callable[[], object]) -> bool:
        """Do the work, as far as power lasts. Gives whether it was done."""
        with pytest.MonkeyPatch.context() as monkeypatch:
            for name in CALLS:
                monkeypatch.setattr(os, name, self._wired(name))
            try:
                work()
            except PowerCut:
                return False
            return not self.dead

    def _wired(self, name: str) -> Callable[..., object]:
        real = getattr(os, name)

        def call(*args: object, **kwargs: object) -> object:
            if not self.dead:
                self.calls.append(name)
                self.dead = self.last is not None and len(self.calls) > self.last
                if self.dead and name == "write" and self.partial is not None:
                    descriptor, data = cast("tuple[int, memoryview]", args)
                    real(descriptor, data[: self.partial])
            if self.dead:
                if name == "close":  # the system closes what the dead have left open, and so ends their locks
                    real(*args, **kwargs)
                raise PowerCut
            return real(*args, **kwargs)

        return call


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith(LEFTOVER_PREFIX)]
