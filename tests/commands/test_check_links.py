"""What `--check` says of the links file."""

from __future__ import annotations

import pytest

from commands.check import LAST_ATTEMPT_FAILED, NOT_ASKED_YET, Finding, Verdict, links_rows
from services.knowledge import LINE_FORMS
from settings import load
from tests.commands.kb_folder import Base, html
from tests.commands.test_init_kb_sites import urlset
from tests.loopback.git_server import GIT, Repository, backend
from tests.loopback.web_server import page, status

WORDS = ", ".join(f"`{form.word}`" for form in LINE_FORMS)


def rows(base: Base) -> list[tuple[Verdict, str]]:
    found: list[Finding] = list(links_rows(load(base.root / "config.yaml").kb))
    assert {finding.about for finding in found} <= {"kb.links_file_path"}
    return [(finding.verdict, finding.says) for finding in found]


@pytest.mark.skipif(GIT is None, reason="git is not installed, which serves the repository of this test")
def test_each_line_tells_what_it_brings(base: Base) -> None:
    """Pitfall 70."""
    origin = base.server.origin
    Repository(base.root / "git" / "mill").commit({"docs/a.md": "# A\n\nRye.\n", "docs/b.png": b"\x89"})
    for path in ("/mill/info/refs", "/mill/git-upload-pack"):
        base.serve(path, backend(base.root / "git"))
    one = base.serve("/one", page(html("Mill one grinds rye.")))
    base.serve("/sitemap.xml", page(urlset((one, ""), (f"{origin}/x.css", ""))))
    lines = [one, f"sitemap: {origin}/sitemap.xml", f"git: {origin}/mill@main docs", "sitmap: oops"]
    base.link(*lines)
    (base.root / "config.yaml").write_text("kb: {}\n")
    assert rows(base)[1:3] == [
        (Verdict.WARNING, f"links.txt, line 2: sitemap: {origin}/sitemap.xml: {NOT_ASKED_YET}"),
        (Verdict.WARNING, f"links.txt, line 3: git: {origin}/mill@main docs: {NOT_ASKED_YET}"),
    ]
    assert base.run() == 0
    assert rows(base) == [
        (Verdict.OK, "named by themselves: 1 page"),
        (
            Verdict.OK,
            f"links.txt, line 2: sitemap: {origin}/sitemap.xml: 1 page; left out: 1 no documents, by their names",
        ),
        (
            Verdict.OK,
            f"links.txt, line 3: git: {origin}/mill@main docs: 1 file; left out: 1 no documents, by their names",
        ),
        (
            Verdict.WARNING,
            f"links.txt, line 4: it is no http or https URL, and begins with none of {WORDS}",
        ),
    ]


def test_a_line_that_could_not_be_had_says_so(base: Base) -> None:
    one = base.serve("/one", page(html("Mill one grinds rye.")))
    url = base.serve("/sitemap.xml", status(500))
    base.link(f"sitemap: {url}", f"git: {base.server.origin}/nothing")
    assert base.run() == 1
    failed = [f"links.txt, line 1: sitemap: {url}: ", f"links.txt, line 2: git: {base.server.origin}/nothing: "]
    assert rows(base) == [(Verdict.WARNING, f"{line}{LAST_ATTEMPT_FAILED}") for line in failed]
    base.serve("/sitemap.xml", page(urlset((one, ""))))
    base.run()
    base.serve("/sitemap.xml", status(500))
    base.run()
    assert rows(base)[0] == (Verdict.WARNING, f"{failed[0]}1 page; {LAST_ATTEMPT_FAILED}")


def test_a_list_that_is_not_there_or_cannot_be_read_has_no_rows(base: Base) -> None:
    (base.root / "config.yaml").write_text("kb: {}\n")
    assert rows(base) == []
    (base.folder / "links.txt").mkdir()
    assert rows(base) == []
