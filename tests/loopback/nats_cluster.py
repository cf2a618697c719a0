"""Three real servers of NATS that are one, on 127.0.0.1: the network between them can be cut, and can lose and delay;
the disk of one is small.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.loopback.nats_server import NatsServer, free_port

NAMES = ("n1", "n2", "n3")
SMALL = "n3"
"""The server whose disk is small, where this system lets us mount one."""
SMALL_MEGABYTES = 192
CHUNK_BYTES = 16_384
MAX_CHUNKS = 64
"""On their way at a time, one way; then the sender has to wait, as with a full window."""
RESEND_SECONDS = 0.2
"""How long TCP waits on Linux before it sends a lost packet again; twice as long each further time."""
NOBODY = "127.0.0.1:1"
"""Servers tell each other this address of themselves, so that they use no other way than the links."""
MORE = """\
jetstream {{ store_dir: "{store}", max_file_store: 64GB, max_memory_store: 1GB }}
cluster {{
  name: drill
  listen: "127.0.0.1:{route}"
  advertise: "{nobody}"
  routes: [{routes}]
}}
"""


class Link:
    """The way from one server to another: what the one opens goes through here, in both directions.

    TCP shows those who use it no lost packets: they see that bytes come later, and all that follow as well. So nothing
    is dropped here either. A cut holds everything back until it is healed, and a loss holds one piece for as long as
    it takes to send it again.

    Attributes:
        delay: seconds that each piece takes.
        loss: the share of pieces that is lost, and of these again each time that they are sent again.
    """

    def __init__(self, target: int, seed: int) -> None:
        self.delay = self.loss = 0.0
        self.port = 0
        self._target, self._dice = target, random.Random(seed)  # noqa: S311 (not a secret)
        self._is_whole = asyncio.Event()
        self._is_whole.set()
        self._server: asyncio.Server | None = None
        self._carrying: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for each in self._carrying:
            each.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    def cut(self) -> None:
        self._is_whole.clear()

    def heal(self) -> None:
        self._is_whole.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._carrying.add(task)
        try:
            await self._is_whole.wait()
            onward, back = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                ways = {
                    asyncio.create_task(self._carry(reader, back)),
                    asyncio.create_task(self._carry(onward, writer)),
                }
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for each in ways:
                        each.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)
            finally:
                back.close()
        except (OSError, asyncio.CancelledError):  # nobody listens there, or the end of the drill
            pass
        finally:
            writer.close()
            self._carrying.discard(task)

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        on_their_way = asyncio.Queue[tuple[float, bytes]](MAX_CHUNKS)

        async def read() -> None:
            while True:
                data = await source.read(CHUNK_BYTES)
                await on_their_way.put((loop.time() + self.delay, data))
                if not data:
                    return

        reading = asyncio.create_task(read())
        try:
            while True:
                due, data = await on_their_way.get()
                await asyncio.sleep(due - loop.time())
                again = RESEND_SECONDS
                while self._dice.random() < self.loss:
                    await asyncio.sleep(again)
                    again *= 2
                await self._is_whole.wait()
                if not data:
                    return
                sink.write(data)
                await sink.drain()
        except OSError:
            return
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


class SmallDisk:
    """A file system of some megabytes in memory, which only processes started with `command` see at `path`.

    It needs no privileges, but a system on which users may have name spaces of their own.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        mount = f'mount -t tmpfs -o size={SMALL_MEGABYTES}m tmpfs "$0" && echo there && exec sleep infinity'
        self._holder = subprocess.Popen(
            ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(path)],  # noqa: S607 (of the system)
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._holder.stdout is not None
        self.is_there = self._holder.stdout.readline() == b"there\n"

    @property
    def command(self) -> Sequence[str]:
        """The words before a command that is to see the disk."""
        return ("nsenter", "--target", str(self._holder.pid), "--user", "--mount", "--preserve-credentials")

    async def fill(self) -> None:
        """Write until nothing more fits."""
        await self._run(f"dd if=/dev/zero of='{self.path}/ballast' bs=4k 2>/dev/null")

    async def free(self) -> None:
        await self._run(f"rm -f '{self.path}/ballast'")

    async def _run(self, script: str) -> None:
        process = await asyncio.create_subprocess_exec(*self.command, "sh", "-c", script)
        await process.wait()

    def end(self) -> None:
        self._holder.kill()
        self._holder.wait()
        assert self._holder.stdout is not None
        self._holder.stdout.close()


class NatsCluster:
    """Started at `async with`. Its addresses are those of a setting `transport`.

    Attributes:
        disk: that of the server SMALL; None: this system has none for us.
    """

    replicas = len(NAMES)

    def __init__(self, root: Path) -> None:
        self.servers = {name: NatsServer(root, name) for name in NAMES}
        self.disk: SmallDisk | None = None
        self._routes = {name: free_port() for name in NAMES}
        self._links = {
            (one, other): Link(self._routes[other], seed)
            for seed, (one, other) in enumerate((one, other) for one in NAMES for other in NAMES if one != other)
        }

    @property
    def url(self) -> str:
        return ",".join(each.url for each in self.servers.values())

    @property
    def pids(self) -> Sequence[int]:
        return [each.pid for each in self.servers.values() if each.process is not None]

    def cut_off(self, name: str) -> None:
        """Nothing passes between this server and the others; its clients still reach it."""
        for each in self._links_of(name):
            each.cut()

    def heal(self) -> None:
        for each in self._links.values():
            each.heal()

    def trouble(self, loss: float, delay: float) -> None:
        """Have all links lose and delay from now on."""
        for each in self._links.values():
            each.loss, each.delay = loss, delay

    def _links_of(self, name: str) -> Sequence[Link]:
        return [link for ends, link in self._links.items() if name in ends]

    async def kill(self, name: str) -> None:
        await asyncio.to_thread(self.servers[name].end, signal.SIGKILL)

    async def start(self, name: str) -> None:
        await asyncio.to_thread(self.servers[name].start)

    async def __aenter__(self) -> Self:
        try:
            await self._start_all()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _start_all(self) -> None:
        for each in self._links.values():
            await each.open()
        for name, server in self.servers.items():
            if name == SMALL and shutil.which("unshare") and shutil.which("nsenter"):
                disk = SmallDisk(server.store)
                if disk.is_there:
                    self.disk, server.before = disk, disk.command
                else:
                    disk.end()
            routes = [f'"nats://127.0.0.1:{self._links[name, other].port}"' for other in NAMES if other != name]
            server.more = MORE.format(
                store=server.store, route=self._routes[name], nobody=NOBODY, routes=", ".join(routes)
            )
            await self.start(name)

    async def __aexit__(self, *_: object) -> None:
        for name in NAMES:
            await self.kill(name)
        if self.disk is not None:
            self.disk.end()
        with contextlib.suppress(OSError):
            await asyncio.gather(*(each.close() for each in self._links.values()))
