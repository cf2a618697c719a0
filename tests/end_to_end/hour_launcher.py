"""As `benchmarks.scale.launch`, with a clock and a disk that go wrong.

The wall clock is an hour behind while `an_hour_back` lies beside the configuration. A write that the system refuses
because the file is too large fails as on a full disk.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.scale.launch import main

FLAG = "an_hour_back"
HOUR = 3600.0


def set_back_by(flag: Path) -> None:
    real = time.time

    def wall() -> float:
        return real() - HOUR * flag.exists()

    time.time = wall


def tell_as_full() -> None:
    real = os.write

    def write(descriptor: int, data: Any) -> int:
        try:
            return real(descriptor, data)
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
            raise

    os.write = write


if __name__ == "__main__":
    set_back_by(Path(sys.argv[sys.argv.index("--config") + 1]).with_name(FLAG))
    tell_as_full()
    sys.exit(main())
