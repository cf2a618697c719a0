"""The kind of source that docs/extending.md adds, from the command line to the answer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from app import main
from assembly.answering import addresses_of, library_of
from assembly.dashboard import known_sources
from examples.extending.source_kind import Questions
from services.knowledge import kinds
from settings import load

PORT, LOGS = "Which port does the relay use?", "Where are the logs?"
FAQ = {PORT: "The relay listens on port 7070.", LOGS: "The mill writes its logs to /var/log/mill."}


class Base:
    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = root / "data" / "knowledge-base"
        self.config = root / "config.yaml"
        self._capsys = capsys
        (self.folder / "sources").mkdir(parents=True)
        (self.folder / "sources" / "mill.md").write_text("# The mill\n\nIt turns with the river.\n")
        self.config.write_text("{}\n")
        self.write(FAQ)

    def write(self, faq: object) -> None:
        (self.folder / "questions.json").write_text(json.dumps(faq))

    def run(self, *command: str) -> tuple[int, str]:
        code = main(["--config", str(self.config), *command])
        out, err = self._capsys.readouterr()
        return code, out + err


@pytest.fixture
def base(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Base:
    monkeypatch.setattr(kinds, "KINDS", [*kinds.KINDS, Questions])
    return Base(tmp_path, capsys)


def test_its_sources_are_described_indexed_and_answered_from(base: Base) -> None:
    code, said = base.run("--init-kb")
    assert (code, "1 file, 0 pages, 2 questions: 3 described" in said) == (0, True)
    ids = [line for line in (base.folder / "index.txt").read_text().splitlines() if line.startswith("kb:")]
    assert ids == ["kb:mill.md", f"kb:faq:{LOGS}", f"kb:faq:{PORT}"]
    code, said = base.run("--ask", PORT)
    assert code == 0
    assert "7070" in said
    assert f"kb:faq:{PORT}" in said


def test_they_are_shown_like_others_and_have_no_address(base: Base) -> None:
    base.config.write_text("kb: {source_base_url: 'https://docs.example'}\n")
    base.run("--init-kb")
    settings = load(base.config, {})
    shown = asyncio.run(known_sources(settings.kb, library_of(settings)))
    assert [(each.id, each.kind, each.state) for each in shown] == [
        ("kb:mill.md", "file", "indexed"),
        (f"kb:faq:{LOGS}", "question", "indexed"),
        (f"kb:faq:{PORT}", "question", "indexed"),
    ]
    addresses = addresses_of(settings)
    assert [addresses.address_of(each.id) for each in shown] == ["https://docs.example/mill/", None, None]


def test_what_is_known_of_them_is_kept_in_the_cache(base: Base) -> None:
    base.run("--init-kb")
    kept = json.loads((base.folder / "index-cache.json").read_text())["sources"][f"faq:{LOGS}"]
    assert (kept["source_type"], kept["question"]) == ("question", {"id": f"faq:{LOGS}"})
    assert "0 described" in base.run("--init-kb")[1]


def test_changes_are_found_and_a_file_that_cannot_be_read_changes_nothing(base: Base) -> None:
    base.run("--init-kb")
    base.write({PORT: "8080."})
    assert "1 question: 1 described, 0 recognised, 1 unchanged, 0 failed; 1 gone" in base.run("--init-kb")[1]
    base.write([])
    code, said = base.run("--init-kb")
    assert (code, "questions.json: cannot be read" in said) == (2, True)
    assert f"kb:faq:{PORT}" in (base.folder / "index.txt").read_text()


def test_a_file_with_a_name_of_theirs_is_left_out(base: Base) -> None:
    (base.folder / "sources" / "faq:why.md").write_text("# Why\n")
    code, said = base.run("--init-kb")
    assert (code, "faq:why.md is left out: another kind of source" in said) == (0, True)
    assert "faq:why" not in (base.folder / "index.txt").read_text()


def test_they_are_read_before_any_index_was_built(base: Base) -> None:
    assert "/var/log/mill" in base.run("--ask", "Where are the logs of the mill?")[1]


def test_a_half_written_file_costs_its_own_source_and_no_other(base: Base) -> None:
    base.run("--init-kb")
    (base.folder / "questions.json").write_text('{"half": ')
    code, said = base.run("--ask", PORT)
    assert code == 0
    assert "cannot be read" in said


def test_a_kind_that_nobody_uses_fails_nothing_and_is_not_named(base: Base) -> None:
    (base.folder / "questions.json").unlink()
    code, said = base.run("--init-kb")
    assert (code, "1 file, 0 pages: 1 described" in said) == (0, True)
