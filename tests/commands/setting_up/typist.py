"""Somebody who types at a terminal, and reads what stands there."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[3]
PATIENCE = 60.0
"""Seconds until what is waited for must stand there; a busy machine takes its time to import."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
QUIET = 5
"""So many looks in a row find a program asleep that waits for keys."""
CTRL_C = "\x03"
CTRL_D = "\x04"


class Typist:
    """Runs `python app.py` with these arguments at a terminal of its own, while the block lasts."""

    def __init__(self, rest: str, *arguments: str, folder: Path, columns: int = 200) -> None:
        """`rest`: where Discord's REST API is."""
        self._master, terminal = os.openpty()
        environ = {name: value for name, value in os.environ.items() if not name.upper().startswith("APP__")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.commands.setting_up.at_terminal", rest, "ws://127.0.0.1:9", *arguments],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=folder,
            env={**environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": str(columns)},
        )
        os.close(terminal)
        self._seen = ""
        self._read = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    @property
    def seen(self) -> str:
        """All that stood on the screen."""
        return _ESCAPES.sub("", self._seen)

    def until(self, words: str) -> str:
        """Wait for `words`; gives what came since the last wait."""
        end = time.monotonic() + PATIENCE
        while words not in self.seen[self._read :]:
            if not self._more(end - time.monotonic()):
                raise AssertionError(f"{words!r} never came:\n{self.seen}")
        at = self.seen.index(words, self._read) + len(words)
        came, self._read = self.seen[self._read : at], at
        return came

    def answers(self, question: str, answer: str) -> str:
        """Answer a question as soon as it is asked; gives what came before it."""
        came = self.until(question)
        self.types(f"{answer}\r")
        return came

    def until_it_reads(self) -> None:
        """Wait until the program waits for keys: of a signal just before that it would learn with the next key only."""
        state, quiet = Path(f"/proc/{self._process.pid}/stat"), 0
        while quiet < QUIET and state.exists():
            sleeping = state.read_text().rpartition(")")[2].split()[0] == "S"
            quiet = quiet + 1 if sleeping else 0
            self._more(0.02)

    def types(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def end(self) -> int:
        """Read to the end; gives the exit code."""
        stop = time.monotonic() + PATIENCE
        while self._more(stop - time.monotonic()):
            pass
        return self._process.wait(PATIENCE)

    def _more(self, seconds: float) -> bool:
        """Read on; False at the end, or after so long."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, seconds))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux: nobody has the other side open any more
            return False
        self._seen += data.decode(errors="replace")
        return bool(data)
