"""`--init-kb` over git repositories, served by git itself on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.knowledge import cache
from services.knowledge.source_repositories import Repositories
from tests.commands.kb_folder import Base
from tests.loopback.git_server import GIT, Repository, backend, git
from tests.loopback.web_server import page, redirect, status
from tests.shelves import RECORDS, source_setup

pytestmark = pytest.mark.skipif(
    GIT is None, reason="git is not installed, which serves the repositories of these tests"
)

FIRST = {
    "README.md": "# The mill\n\nIt grinds rye.\n",
    "docs/guide.md": "# Guide\n\nPour in the rye.\n",
    "docs/deep/more.rst": "More\n====\n\nTurn the wheel.\n",
    "docs/logo.png": b"\x89PNG\0",
    "docs/.hidden.md": "# Hidden\n",
    "docs/empty.md": "",
    "docs/binary.txt": b"a\0b",
    "src/mill.c": "int main;\n",
}


def served(base: Base, *, filters: bool = True) -> Repository:
    repository = Repository(base.root / "git" / "mill", filters=filters)
    for path in ("/mill/info/refs", "/mill/git-upload-pack"):
        base.serve(path, backend(base.root / "git"))
    return repository


def read(base: Base, source_id: str) -> str:
    return Repositories(source_setup(base.folder / "sources", 100_000)).read(source_id).text


@pytest.mark.parametrize("filters", [True, False], ids=["parts", "whole"])
def test_a_repository_is_copied_and_then_as_far_as_it_has_changed(base: Base, *, filters: bool) -> None:
    """Pitfalls 36 and 58."""
    repository = served(base, filters=filters)
    repository.commit(FIRST)
    base.link(f"git: {base.server.origin}/mill docs")
    prefix = f"git:127.0.0.1:{base.server.port}/mill//docs/"
    assert base.run() == 0
    assert "2 files, 0 pages: 2 described" in base.out  # another is found to be binary when it is read
    assert [line for line in base.index.splitlines() if line.startswith("kb:")] == [
        f"kb:{prefix}deep/more.rst", f"kb:{prefix}guide.md",
    ]  # fmt: skip
    assert read(base, f"{prefix}guide.md") == FIRST["docs/guide.md"]
    assert f"{prefix}binary.txt" in base.err
    assert "1 hidden, 1 no documents, by their names, 1 empty or not sent" in base.err

    assert base.run() == 0
    assert [path.partition("?")[0] for path, _ in base.server.seen] == ["/mill/info/refs", "/mill/git-upload-pack"]

    repository.commit({"docs/guide.md": "# Guide\n\nPour in the wheat.\n", "docs/deep/more.rst": None})
    assert base.run() == 0
    assert "1 described, 0 recognised, 0 unchanged, 0 failed; 1 gone" in base.out
    assert "wheat" in read(base, f"{prefix}guide.md")
    assert f"{prefix}deep" not in base.index


def test_a_part_belongs_to_the_pages_that_include_it_and_a_draft_is_no_page(base: Base) -> None:
    repository = served(base)
    repository.commit({
        "docs/guide.md": '# Guide\n\n--8<-- "_includes/ports.md"\n',
        "docs/_includes/ports.md": "It listens on 8443.\n",
        "docs/later.md": "---\ndraft: true\n---\n# Later\n\nNot yet.\n",
    })  # fmt: skip
    base.link(f"git: {base.server.origin}/mill docs")
    prefix = f"git:127.0.0.1:{base.server.port}/mill//docs/"
    assert base.run() == 0
    assert [line for line in base.index.splitlines() if line.startswith("kb:")] == [f"kb:{prefix}guide.md"]
    assert "8443" in read(base, f"{prefix}guide.md")
    repository.commit({"docs/_includes/ports.md": "It listens on 9443.\n"})
    assert base.run() == 0
    assert "1 described" in base.out
    assert "9443" in read(base, f"{prefix}guide.md")


def test_a_branch_or_a_tag_is_followed(base: Base) -> None:
    repository = served(base)
    repository.commit(FIRST)
    git(repository.folder, "tag", "-a", "v1", "-m", "One")
    git(repository.folder, "checkout", "-q", "-b", "next/one")
    repository.commit({"docs/guide.md": "# Next\n\nPour in the wheat.\n"})
    base.link(*(f"git: {base.server.origin}/mill@{name} docs/" for name in ("v1", "next/one")))
    assert base.run() == 0
    prefix = f"git:127.0.0.1:{base.server.port}/mill"
    assert "rye" in read(base, f"{prefix}@v1//docs/guide.md")
    assert "wheat" in read(base, f"{prefix}@next/one//docs/guide.md")


def test_a_file_that_was_too_large_is_read_whole_once_it_may_be_larger(base: Base) -> None:
    """What is stored of it was cut at the limit before."""
    repository = served(base)
    long = f"# Guide\n\n{'Pour in the rye. ' * 50}And last the salt.\n"
    repository.commit({"docs/guide.md": long, "docs/short.md": "# Short\n\nTurn the wheel.\n"})
    base.link(f"git: {base.server.origin}/mill docs")
    source_id = f"git:127.0.0.1:{base.server.port}/mill//docs/guide.md"
    base.settings["max_source_bytes"] = 500
    base.run()
    assert f"{source_id}" not in base.index
    base.settings["max_source_bytes"] = 100_000
    assert base.run() == 0
    assert f"kb:{source_id}" in base.index
    assert read(base, source_id) == long


def test_links_and_submodules_are_not_followed(base: Base) -> None:
    """Pitfall 16: nothing is checked out, so nothing leads anywhere."""
    repository = served(base)
    (repository.folder / "passwd.md").symlink_to("/etc/passwd")
    commit = repository.commit(FIRST)
    git(repository.folder, "update-index", "--add", "--cacheinfo", f"160000,{commit},module")
    git(repository.folder, "commit", "-q", "-m", "A module")
    base.link(f"git: {base.server.origin}/mill")
    assert base.run() == 0
    assert "2 links or submodules" in base.err
    assert "passwd" not in base.index
    names = {path.name for path in (base.folder / "web-cache").iterdir()}
    assert all(len(name) == 64 or name in {"sites", "repositories"} for name in names)


def test_large_files_kept_elsewhere_are_no_documents(base: Base) -> None:
    repository = served(base)
    repository.commit({"a.md": "version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "b.md": "# B\n\nRye.\n"})
    base.link(f"git: {base.server.origin}/mill")
    assert base.run() == 0
    assert "Git LFS" in base.err
    assert "b.md" in base.index


@pytest.mark.slow
def test_a_repository_that_cannot_be_had_keeps_its_files(base: Base) -> None:
    """Pitfalls 11, 17 and 64."""
    repository = served(base)
    repository.commit(FIRST)
    base.link(f"git: {base.server.origin}/mill docs")
    assert base.run() == 0
    before = base.index
    for play, words in [
        (status(500), "HTTP 500"),
        (status(401), "a private repository cannot be read"),
        (redirect("http://169.254.169.254/mill/info/refs"), "its address is not public"),
        (page("<html>"), "no answer of git"),
        (page("0005"), "breaks off"),
        (page("001eERR access denied, go away"), "its server refuses"),
        (page("000eversion 1\n0000"), "does not speak version 2"),
    ]:
        base.serve("/mill/info/refs", play)
        assert base.run() == 1
        assert words in base.err
        assert "links.txt, line 1" in base.err
        assert base.index == before


@pytest.mark.parametrize("path", ["/mill/info/refs", "/mill/git-upload-pack"])
@pytest.mark.parametrize("to", ["http://169.254.169.254/latest", "http://10.0.0.1/mill", "file:///etc/passwd"])
def test_a_repository_that_leads_inside_leads_nowhere(base: Base, path: str, to: str) -> None:
    """Pitfall 17: neither what is asked first nor what the contents come from."""
    served(base).commit(FIRST)
    base.serve(path, redirect(to))
    base.link(f"git: {base.server.origin}/mill")
    assert base.run() == 1
    why = {"/mill/info/refs": "it redirects", "/mill/git-upload-pack": "the server answered HTTP 302"}[path]
    assert f"links.txt, line 1: {why}" in base.err


@pytest.mark.parametrize("suffix", ["@none", " nothing/there"])
def test_what_is_not_there_is_said(base: Base, suffix: str) -> None:
    served(base).commit(FIRST)
    base.link(f"git: {base.server.origin}/mill{suffix}")
    assert base.run() == 1
    assert "no branch or tag 'none'" in base.err or "there is no folder 'nothing/there'" in base.err


def test_a_damaged_pack_costs_nothing(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 64."""
    monkeypatch.setattr("services.knowledge.web.git_http.MAX_PACK_BYTES", 200)
    repository = served(base)
    repository.commit(FIRST)
    base.link(f"git: {base.server.origin}/mill")
    assert base.run() == 1
    assert "it is larger than 200 bytes" in base.err


def test_its_files_have_records_of_their_own(base: Base, tmp_path: Path) -> None:
    served(base).commit({"b.md": "# B\n\nRye.\n"})
    base.link(f"git: {base.server.origin}/mill")
    assert base.run() == 0
    records = cache.parse((base.folder / "index-cache.json").read_bytes(), RECORDS)
    assert [record.source_type for record in records.values()] == ["git"]
