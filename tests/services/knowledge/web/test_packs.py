"""Packs that somebody has made to break who reads them."""

from __future__ import annotations

from io import BytesIO

import pytest
from dulwich.object_format import SHA1
from dulwich.objects import Blob, Commit, ShaFile, Tree
from dulwich.pack import write_pack_objects

from services.knowledge.file_selection import PathFilter
from services.knowledge.web import git_packs
from services.knowledge.web_interface import FetchFailed, RepositorySelection

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


def test_of_a_sound_pack_the_files_are_read() -> None:
    page, tree = Blob.from_string(b"# A page"), Tree()
    tree.add(b"a.md", 0o100644, page.id)
    tree.add(b"b" * 1_100 + b".md", 0o100644, page.id)
    files = git_packs.read_pack(*pack_of(tree, page), TAKEN)
    assert files.blobs == {"a.md": page.id.decode()}
    assert files.left_out == {"with names that cannot stand in an index": 1}
    assert files.texts == {page.id.decode(): b"# A page"}
