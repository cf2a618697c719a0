"""Packs that somebody has made to break who reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import ParamSpec, TypeVar, cast

import pytest
from dulwich.object_format import SHA1
from dulwich.objects import Blob, Commit, ShaFile, Tree
from dulwich.pack import write_pack_objects
from yarl import URL

from services.knowledge.file_selection import PathFilter
from services.knowledge.web import git_http, git_packs
from services.knowledge.web.client import CheckedClient
from services.knowledge.web.exchange import Answer
from services.knowledge.web.git_http import GitFetcher
from services.knowledge.web_interface import FetchFailed, RepositorySelection

P = ParamSpec("P")
T = TypeVar("T")

TAKEN = RepositorySelection("", PathFilter(), 100)


def pack_of(top: Tree, *more: ShaFile) -> tuple[bytes, str]:
    commit = Commit()
    commit.tree = top.id
    commit.author = commit.committer = b"A <a@b>"
    commit.author_time = commit.commit_time = 0
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = b"x"
    packed = BytesIO()
    write_pack_objects(packed, [(each, None) for each in (commit, top, *more)], object_format=SHA1)
    return packed.getvalue(), commit.id.decode()


def test_trees_that_name_one_another_over_and_over_are_not_counted_to_the_end() -> None:
    """Ten trees of ten make ten thousand million files."""
    page = Blob.from_string(b"# A page")
    trees: list[ShaFile] = [page]
    below, mode = page.id, 0o100644
    for _ in range(10):
        tree = Tree()
        for number in range(10):
            tree.add(f"n{number}.md".encode(), mode, below)
        trees.append(tree)
        below, mode = tree.id, 0o040000
    top = trees.pop()
    assert isinstance(top, Tree)
    with pytest.raises(FetchFailed, match="more than 200,000 files"):
        git_packs.read_pack(*pack_of(top, *trees), TAKEN)


def test_trees_that_hold_nothing_but_folders_are_not_walked_to_the_end() -> None:
    """Sixty trees of two make 2^60 folders."""
    trees = [Tree()]
    for _ in range(60):
        tree = Tree()
        for name in (b"a", b"b"):
            tree.add(name, 0o040000, trees[-1].id)
        trees.append(tree)
    with pytest.raises(FetchFailed, match="more than 200,000 files and folders"):
        git_packs.read_pack(*pack_of(trees.pop(), *trees), TAKEN)


def packets(*lines: bytes) -> bytes:
    return b"".join(f"{len(line) + 4:04x}".encode() + line for line in lines) + b"0000"


class ScriptedServer:
    """Answers as a server of git does, with one commit."""

    def __init__(self, pack: bytes, commit: str) -> None:
        self._capabilities = packets(b"version 2\n", b"fetch=shallow\n")
        self._answers = [packets(f"{commit} HEAD\n".encode()), packets(b"packfile\n", b"\x01" + pack)]

    async def get(self, url: str, *_: object) -> Answer:
        return Answer(URL(url), 200, {}, self._capabilities)

    async def post(self, url: str, *_: object, **__: object) -> Answer:
        return Answer(URL(url), 200, {}, self._answers.pop(0))


async def test_all_that_a_server_answers_is_read_outside_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 64: 64 MB of empty packets are 64 kB on the wire."""
    outside, read_in_loop, read_outside = False, list[bytes](), list[bytes]()
    read = git_http._packets  # pyright: ignore[reportPrivateUsage]

    def noted(data: bytes) -> Iterator[bytes]:
        (read_outside if outside else read_in_loop).append(data)
        return read(data)

    async def run(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        nonlocal outside
        outside = True
        try:
            return work(*args, **kwargs)
        finally:
            outside = False

    monkeypatch.setattr(git_http, "_packets", noted)
    page, tree = Blob.from_string(b"# A page"), Tree()
    tree.add(b"a.md", 0o100644, page.id)
    server = cast("CheckedClient", ScriptedServer(*pack_of(tree, page)))
    files = await GitFetcher(server, run).files("https://git.example/x", "", TAKEN, "", lambda _: set())
    assert files is not None
    assert files.texts == {page.id.decode(): b"# A page"}
    assert (len(read_outside), read_in_loop) == (3, [])


def test_of_a_sound_pack_the_files_are_read() -> None:
    page, tree = Blob.from_string(b"# A page"), Tree()
    tree.add(b"a.md", 0o100644, page.id)
    tree.add(b"b" * 1_100 + b".md", 0o100644, page.id)
    files = git_packs.read_pack(*pack_of(tree, page), TAKEN)
    assert files.blobs == {"a.md": page.id.decode()}
    assert files.left_out == {"with names that cannot stand in an index": 1}
    assert files.texts == {page.id.decode(): b"# A page"}


def test_the_texts_of_a_repository_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_packs, "MAX_TEXT_BYTES", 5 << 20)
    pages, tree = [Blob.from_string(letter * (3 << 20)) for letter in (b"a", b"b")], Tree()
    for number, page in enumerate(pages):
        tree.add(f"{number}.md".encode(), 0o100644, page.id)
    pack, commit = pack_of(tree, *pages)
    with pytest.raises(FetchFailed, match="more than 5 MB together"):
        git_packs.read_pack(pack, commit, TAKEN)
    with pytest.raises(FetchFailed, match="more than 5 MB together"):
        git_packs.read_blobs(pack, [page.id.decode() for page in pages])
