"""Temporary folders for copies of what people wrote. Those that killed processes have left are deleted."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from pathlib import Path

_PREFIX = "millrace-copies-"


@contextlib.contextmanager
def temporary_folder() -> Generator[Path]:
    """Make a folder below the system's temporary one, and delete it at the end of the block. Raises OSError.

    The process holds its lock meanwhile, and the system ends that with the process. Before, what others have left is
    deleted, as by `drop_left_folders`.
    """
    drop_left_folders()
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder, _opened(folder) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # it waits only for who looks whether the folder is empty
        yield Path(folder)


def drop_left_folders() -> None:
    """Delete the temporary folders of killed processes of this user. Blocking. Raises OSError."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(FileNotFoundError, BlockingIOError):  # it is over, or another process is at work there
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                continue
            with _opened(folder) as descriptor:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if any(folder.iterdir()):  # else it may be new, and about to be locked
                    shutil.rmtree(folder)


@contextlib.contextmanager
def _opened(folder: Path | str) -> Generator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
