"""`python app.py …` at a terminal: the one it was started with becomes its own, so that Ctrl-C comes from it.

Arguments as for `tests.end_to_end.launcher`.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import termios


def main() -> int:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background of a shell have it ignored
    from tests.end_to_end.launcher import main as launched  # noqa: PLC0415 (the terminal first)

    return launched()


if __name__ == "__main__":
    sys.exit(main())
