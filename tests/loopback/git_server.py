"""A server of git on loopback: `git http-backend`, as a web server runs it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from aiohttp import web

from tests.loopback.web_server import Play

GIT = shutil.which("git")


def git(folder: Path, *arguments: str) -> str:
    """What a git command says, without the configuration of whoever runs the tests."""
    assert GIT is not None
    who = {f"GIT_{role}_{what}": "mill@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
    nothing = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        [GIT, "-C", str(folder), *arguments], check=True, capture_output=True, text=True, env={**who, **when, **nothing}
    )
    return done.stdout.strip()


class Repository:
    """A repository in a folder, one commit after another."""

    def __init__(self, folder: Path, *, filters: bool = True) -> None:
        """`filters`: whether its server can leave contents out."""
        folder.mkdir(parents=True)
        self.folder = folder
        git(folder, "init", "-q", "-b", "main")
        git(folder, "config", "uploadpack.allowFilter", str(filters).lower())

    def commit(self, files: Mapping[str, str | bytes | None]) -> str:
        """Write these files (None: delete one) and commit them; gives the commit's name."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_bytes(text.encode() if isinstance(text, str) else text)
        git(self.folder, "add", "-A", "-f")
        git(self.folder, "commit", "-q", "--allow-empty", "-m", "More")
        return git(self.folder, "rev-parse", "HEAD")


def backend(root: Path) -> Play:
    """Serves the repositories below `root`, by their paths, for reading."""

    async def play(request: web.Request) -> web.StreamResponse:
        assert GIT is not None
        variables = {
            "GIT_PROJECT_ROOT": str(root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "PATH": os.environ["PATH"],
        }
        process = await asyncio.create_subprocess_exec(
            *(GIT, "http-backend"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables
        )
        out, _ = await process.communicate(await request.read())
        head, _, body = out.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        status = int(headers.pop("Status", "200").split()[0])
        return web.Response(status=status, headers=headers, body=body)

    return play
