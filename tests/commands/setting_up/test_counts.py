"""What is said of a folder of documents, from one command to the next."""

from __future__ import annotations

from tests.commands.setting_up.conftest import Clone


def test_three_commands_count_the_documents_of_a_folder_alike(clone: Clone) -> None:
    docs = clone.folder / "docs"
    (docs / "empty.md").touch()
    (docs / ".git").mkdir()
    for name in ("HEAD", "index"):
        (docs / ".git" / name).write_text("x")
    (docs / "more.rst").write_text("More\n====\n\nWords about it.\n")
    _, out, _ = clone.init(documentation="docs")
    assert (
        "docs: 2 documents (1 .md, 1 .rst), 3 left out (1: it is hidden; 1: it is empty; 1: it is no text to read"
        in out
    )
    _, out, _ = clone.run("--check")
    assert (
        "docs, 2 documents (1 .md, 1 .rst), 3 left out (1: it is hidden; 1: it is empty; 1: it is no text to read"
        in out
    )
    _, out, _ = clone.run("--init-kb")
    assert out.startswith("2 files, 0 pages: 2 described")
    assert ", 3 left out; " in out
