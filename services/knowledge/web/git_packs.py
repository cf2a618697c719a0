"""Reads packs of git objects. Anybody may have made them, so it runs in processes with limits (`clock.Processes`).

It checks nothing out, so hooks, configuration, submodules and links in a repository have no effect.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterator, Mapping
from io import BytesIO

from dulwich.object_format import SHA1
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tag, Tree
from dulwich.pack import PackData, PackInflater

from services.knowledge.file_selection import BEYOND_LIMIT, NOT_CHOSEN, NOT_DOCUMENTATION
from services.knowledge.web_interface import FetchFailed, RepositoryFiles, RepositorySelection

_MAX_DEPTH = 64
"""The depth of folders."""
MAX_ENTRIES = 200_000
"""The number of files and folders of a commit. A few trees that name one another make more than can be counted."""
_SHORT_REASONS = {
    **dict.fromkeys(NOT_DOCUMENTATION, "no documents, by their names"),
    NOT_CHOSEN: "left out by kb.include or kb.exclude",
}
MAX_TEXT_BYTES = 64 * 1024 * 1024
"""The size of all files of a commit together: they are sent to the bot's process at once."""
_MAX_TAGS = 5
"""The depth of tags of tags."""


def read_pack(pack: bytes, commit: str, selection: RepositorySelection) -> RepositoryFiles:
    """Return the selected files of `commit`, with those contents that are in the pack. Blocking. Raises FetchFailed: it
    is no pack, it is damaged, or it lacks the commit.
    """
    objects = _objects(pack)
    files = RepositoryFiles(commit)
    try:
        tree = _folder(objects, _tree_of(objects, commit), selection.folder)
        for count, (path, mode, sha) in enumerate(_walk(objects, tree, selection.folder, 0)):
            if count >= MAX_ENTRIES:
                raise FetchFailed(f"its commit has more than {MAX_ENTRIES:,} files and folders")
            if stat.S_ISDIR(mode):
                continue
            reason = _refusal(path, mode, selection)
            if reason is None and len(files.blobs) >= selection.most:
                reason = BEYOND_LIMIT
            if reason is not None:
                files.left_out[reason] = files.left_out.get(reason, 0) + 1
                continue
            files.blobs[path] = sha
            blob = objects.get(sha)
            if isinstance(blob, Blob):
                files.texts[sha] = blob.data
        _require_bounded(files.texts)
    except (KeyError, ValueError) as error:
        raise FetchFailed("what the server sent lacks a part of the commit, or is damaged") from error
    return files


def read_blobs(pack: bytes, wanted: Collection[str]) -> Mapping[str, bytes]:
    """Return the contents in the pack that have these hashes. Blocking. Raises FetchFailed: it is damaged."""
    objects = _objects(pack)
    return _require_bounded({sha: found.data for sha in wanted if isinstance(found := objects.get(sha), Blob)})


def _require_bounded(texts: Mapping[str, bytes]) -> Mapping[str, bytes]:
    if sum(map(len, texts.values())) > MAX_TEXT_BYTES:
        raise FetchFailed(f"its documents have more than {MAX_TEXT_BYTES >> 20} MB together; name a folder of it")
    return texts


def _objects(pack: bytes) -> dict[str, ShaFile]:
    try:
        with PackData.from_file(BytesIO(pack), SHA1, len(pack)) as data:
            data.check()
            # Ids are computed from the content, so no object can pass for another.
            return {found.id.decode(): found for found in PackInflater.for_pack_data(data)}
    except MemoryError:
        raise
    except Exception as error:  # damaged packs break readers in more ways than those document
        raise FetchFailed(f"what the server sent is no pack, or is damaged ({type(error).__name__})") from error


def _tree_of(objects: Mapping[str, ShaFile], name: str) -> str:
    """Return the tree of a commit, or of the commit of a tag. Raises KeyError."""
    for _ in range(_MAX_TAGS):
        found = objects[name]
        match found:
            case Commit():
                return found.tree.decode()
            case Tag():
                name = found.object[1].decode()
            case _:
                break
    raise KeyError(name)


def _folder(objects: Mapping[str, ShaFile], tree: str, folder: str) -> str:
    """Return the tree of a folder. Raises FetchFailed: it does not exist. Raises KeyError: an object is missing."""
    for step in filter(None, folder.split("/")):
        entries = {entry: (mode, sha) for entry, mode, sha in _entries(objects, tree)}
        mode, tree = entries.get(step, (0, ""))
        if not stat.S_ISDIR(mode):
            raise FetchFailed(f"there is no folder {folder!r} in it")
    return tree


def _walk(objects: Mapping[str, ShaFile], tree: str, above: str, depth: int) -> Iterator[tuple[str, int, str]]:
    """Yield files (also links and submodules) and folders with their mode and hash, in git's order."""
    for name, mode, sha in _entries(objects, tree):
        path = f"{above}/{name}" if above else name
        yield path, mode, sha
        if stat.S_ISDIR(mode) and depth < _MAX_DEPTH and not name.startswith("."):
            yield from _walk(objects, sha, path, depth + 1)


def _entries(objects: Mapping[str, ShaFile], tree: str) -> Iterator[tuple[str, int, str]]:
    found = objects[tree]
    if not isinstance(found, Tree):
        raise KeyError(tree)
    for entry in found.iteritems():
        yield entry.path.decode("utf-8", "replace"), entry.mode, ObjectID(entry.sha).decode()


LONGEST_PATH = 1_024
"""The length of a file's path, which is in the index and in prompts."""


def _refusal(path: str, mode: int, selection: RepositorySelection) -> str | None:
    own = path.rpartition("/")[2]
    if not stat.S_ISREG(mode):
        return "links or submodules"
    if any(step in {"", "..", "."} or step.startswith(".") for step in path.split("/")):
        return "hidden"
    if len(path) > LONGEST_PATH or own[-1] == " " or "\\" in path or not path.isprintable() or "\ufffd" in path:
        return "with names that cannot stand in an index"
    below = path.removeprefix(f"{selection.folder}/") if selection.folder else path
    return _SHORT_REASONS.get(selection.path_filter.refusal(below) or "")
