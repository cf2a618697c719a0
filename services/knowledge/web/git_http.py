"""Fetches the newest files of a git repository, in version 2 of git's HTTP protocol (gitprotocol-v2).

It does not run git, so a repository cannot misuse other transports, hooks, submodules, helpers or configuration. Every
request goes through the client that checks addresses (pitfall 17). A server with `filter` sends only the wanted
contents; others send the whole newest commit, within a limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from clock import WorkRunner
from services.knowledge.web.client import CheckedClient
from services.knowledge.web.contents import run_parser
from services.knowledge.web.exchange import PAGES
from services.knowledge.web_interface import FetchFailed, RepositoryFiles, RepositorySelection

MAX_PACK_BYTES = 64 * 1024 * 1024
"""The size of one answer with packed contents."""
PACK_SECONDS = 300.0
"""The seconds that such an answer may take: servers compress it first, and connections are slow."""

_MAX_REFS_BYTES = 16 * 1024 * 1024
_FLUSH, _DELIMITER = b"0000", b"0001"
_HASH = re.compile(r"[0-9a-f]{40}")
_VERSION = {"Git-Protocol": "version=2"}
_REQUEST_HEADERS = {
    **_VERSION,
    "Content-Type": "application/x-git-upload-pack-request",
    "Accept": "application/x-git-upload-pack-result",
}
_SENT = "what the server sent"
_DATA, _ERROR = 1, 3
"""The bands of an answer; the second has progress messages."""


class GitFetcher:
    """A `RepositoryWeb` over the checked client. `run`: runs the parsers of packs in other processes."""

    def __init__(self, client: CheckedClient, run: WorkRunner) -> None:
        self._client, self._run = client, run

    async def files(
        self,
        url: str,
        branch: str,
        selection: RepositorySelection,
        known_commit: str,
        choose_hashes: Callable[[Mapping[str, str]], set[str]],
    ) -> RepositoryFiles | None:
        service, can_filter = await self._service(url)
        commit = await self._commit(service, branch)
        if commit == known_commit:
            return None
        from services.knowledge.web.git_packs import read_blobs, read_pack  # noqa: PLC0415 (takes a while to import)

        pack = await self._pack(service, [commit], can_filter=can_filter)
        files = await run_parser(self._run, _SENT, read_pack, pack, commit, selection)
        missing = choose_hashes(files.blobs) - files.texts.keys()
        if not missing:
            return files
        if not can_filter:
            raise FetchFailed("what the server sent lacks files of the commit")
        more = await self._pack(service, sorted(missing), can_filter=False)
        return replace(files, texts={**files.texts, **await run_parser(self._run, _SENT, read_blobs, more, missing)})

    async def _service(self, url: str) -> tuple[str, bool]:
        """Return the address of the service, after redirects, and whether it can leave contents out."""
        answer = await self._client.get(f"{url}/info/refs?service=git-upload-pack", _VERSION)
        if answer.status not in PAGES:
            hint = "; a private repository cannot be read" if answer.status in {401, 403, 404} else ""
            raise FetchFailed(f"the server answered HTTP {answer.status}{hint}")
        found = str(answer.url.with_query(None))
        lines = await run_parser(self._run, _SENT, _parse_lines, answer.body)
        if not found.endswith("/info/refs") or b"version 2" not in lines:
            raise FetchFailed("there is no git repository, or its server does not speak version 2 of git's protocol")
        if b"object-format=sha256" in lines:
            raise FetchFailed("its objects are named by SHA-256, which is not understood")
        offered = b" ".join(line.removeprefix(b"fetch=") for line in lines if line.startswith(b"fetch=")).split()
        return f"{found.removesuffix('/info/refs')}/git-upload-pack", b"filter" in offered

    async def _commit(self, service: str, branch: str) -> str:
        names = [f"refs/heads/{branch}", f"refs/tags/{branch}"] if branch else ["HEAD"]
        request = _request("ls-refs", [*(f"ref-prefix {name}" for name in names)])
        answer = await self._ask(service, request, _MAX_REFS_BYTES)
        refs = await run_parser(self._run, _SENT, _parse_refs, answer, names)
        commit = next((refs[name] for name in names if name in refs), None)
        if commit is None:
            raise FetchFailed(f"it has no branch or tag {branch!r}" if branch else "there is no commit in it")
        return commit

    async def _pack(self, service: str, wants: Iterable[str], *, can_filter: bool) -> bytes:
        options = ["no-progress", "ofs-delta", "deepen 1", *(f"want {sha}" for sha in wants), "done"]
        if can_filter:
            options.insert(0, "filter blob:none")
        answer = await self._ask(service, _request("fetch", options), MAX_PACK_BYTES)
        return await run_parser(self._run, _SENT, _parse_pack, answer)

    async def _ask(self, service: str, request: bytes, most: int) -> bytes:
        answer = await self._client.post(service, request, _REQUEST_HEADERS, max_bytes=most, seconds=PACK_SECONDS)
        if answer.status not in PAGES:
            raise FetchFailed(f"the server answered HTTP {answer.status}")
        return answer.body


def _request(command: str, arguments: Iterable[str]) -> bytes:
    head = b"".join(map(_packet, (f"command={command}", "agent=millrace")))
    return head + _DELIMITER + b"".join(map(_packet, arguments)) + _FLUSH


def _packet(line: str) -> bytes:
    data = f"{line}\n".encode()
    return f"{len(data) + 4:04x}".encode() + data


def _packets(data: bytes) -> Iterator[bytes]:
    """Yield the contents of pkt-lines. Raises FetchFailed: they are none, are cut off, or an error of the server."""
    at = 0
    while at < len(data):
        head = data[at : at + 4]
        try:
            length = int(head, 16)
        except ValueError:
            raise FetchFailed("what the server sent is no answer of git") from None
        if length < len(head):  # a flush, a delimiter, or the end of an answer
            at += len(head)
            continue
        packet = data[at + 4 : at + length]
        if len(packet) != length - 4:
            raise FetchFailed("what the server sent breaks off")
        if packet.startswith(b"ERR "):
            raise FetchFailed(f"its server refuses: {_quote(packet[4:])}")
        yield packet
        at += length


def _parse_lines(answer: bytes) -> list[bytes]:
    """Return the capabilities that a server lists. Raises as `_packets`."""
    return [line.rstrip(b"\n") for line in _packets(answer)]


def _parse_refs(answer: bytes, names: Sequence[str]) -> dict[str, str]:
    """Return the commits of the named branches and tags in an answer to `ls-refs`. Raises as `_packets`."""
    refs: dict[str, str] = {}
    for packet in _packets(answer):
        sha, _, rest = packet.decode("utf-8", "replace").rstrip("\n").partition(" ")
        if _HASH.fullmatch(sha) and (name := rest.partition(" ")[0]) in names:
            refs[name] = sha
    return refs


def _parse_pack(answer: bytes) -> bytes:
    """Return the pack of an answer to `fetch`. Raises as `_packets`."""
    pack, packets = bytearray(), _packets(answer)
    for packet in packets:
        if packet == b"packfile\n":
            break
    for packet in packets:
        if packet[:1] == bytes([_DATA]):
            pack += packet[1:]
        elif packet[:1] == bytes([_ERROR]):
            raise FetchFailed(f"its server refuses: {_quote(packet[1:])}")
    return bytes(pack)


def _quote(data: bytes) -> str:
    return ascii(" ".join(data.decode("utf-8", "replace").split())[:200])
