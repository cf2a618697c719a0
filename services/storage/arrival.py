"""The last step of a restore: a backup is unpacked inside the data folder, checked, and moved into place.

    .restoring/    being unpacked and checked: rubble, if whoever did it is gone
    .restored/     whole: what is in there belongs into the data folder

The second name is given to the first in one step. From then on the data counts as restored: whoever takes the folder's
lock next finishes the move, so that after a crash the folder is empty or complete for everybody who writes it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path

from services.storage import files

RESTORING = ".restoring"
RESTORED = ".restored"


def commit(root: Path) -> None:
    """Declare the unpacked files complete and durable: they become the content of the data folder."""
    with contextlib.suppress(PermissionError):  # of a folder that is not ours, `root` was there before
        files.sync_folder(root.parent)
    os.rename(root / RESTORING, root / RESTORED)  # noqa: PTH104 (the crash tests cut at the system calls)
    files.sync_folder(root)


def settle(root: Path) -> None:
    """Finish a restore that was committed, even if a crash cut it off. Only for the holder of the lock. Raises
    OSError.
    """
    arrived = root / RESTORED
    if arrived.is_dir():
        for name in sorted(os.listdir(arrived)):  # noqa: PTH208 (as above)
            os.rename(arrived / name, root / name)  # noqa: PTH104 (as above)
        files.sync_folder(root)
        os.rmdir(arrived)  # noqa: PTH106 (as above)
        files.sync_folder(root)
    drop(root)


def drop(root: Path) -> None:
    """Delete what was unpacked and not committed, at any depth. Raises OSError."""
    top = root / RESTORING
    if not top.is_dir():
        return
    # Folders come up step by step: a walk down would end at the longest path, or in too many calls.
    while inside := [path for path in top.iterdir() if _is_folder(path)]:
        for folder in inside:
            for path in list(folder.iterdir()):
                if _is_folder(path):
                    os.rename(path, top / f".lifted-{secrets.token_hex(8)}")  # noqa: PTH104 (as above)
                else:
                    os.unlink(path)  # noqa: PTH108 (as above)
            os.rmdir(folder)  # noqa: PTH106 (as above)
    shutil.rmtree(top)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
