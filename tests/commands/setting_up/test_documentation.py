"""What may be answered where `--init` asks for the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.setting_up.documents import site_address, split_documentation
from settings import load
from tests.commands.setting_up.conftest import ARTICLE, Clone, page
from tests.loopback.web_server import WebServer

URLSET = "<urlset><url><loc>{0}/a</loc></url><url><loc>{0}/b.css</loc></url></urlset>"


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("docs", ["docs"]),
        ("docs guides", ["docs", "guides"]),
        ("docs, guides; my notes", ["docs", "guides", "my notes"]),
        ("my notes docs", ["my notes", "docs"]),
        ("no such folder", ["no such folder"]),
        ("docs nowhere", ["docs", "nowhere"]),
        ("docs.example.org example.com/faq", ["docs.example.org", "example.com/faq"]),
        ("https://a.example/x https://b.example/y,z", ["https://a.example/x", "https://b.example/y,z"]),
        (
            "sitemap: https://a.example/s.xml docs/** !docs/old/** git:https://b.example/c docs, docs https://d.example",
            [
                "sitemap: https://a.example/s.xml docs/** !docs/old/**",
                *("git:https://b.example/c docs", "docs", "https://d.example"),
            ],
        ),
        (" , ", []),
    ],
)
def test_an_answer_may_hold_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, pieces: list[str]
) -> None:
    for name in ("docs", "guides", "my notes"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    assert split_documentation(text) == pieces


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("docs.example.org", "https://docs.example.org"),
        ("docs.example.org/en/", "https://docs.example.org/en"),
        ("localhost:8000", "http://localhost:8000"),
        ("127.0.0.1:8000/docs", "http://127.0.0.1:8000/docs"),
        ("nowhere.md", ""),
        ("guides/start.md", ""),
        ("docs", ""),
        ("docs.example.org and more", ""),
    ],
)
def test_a_host_is_a_site(text: str, address: str) -> None:
    assert site_address(text) == address


def test_none_is_no_folder(clone: Clone) -> None:
    assert clone.init(documentation="None")[0] == 0
    assert "config.local.yaml" not in clone.written


def test_a_site_is_taken_by_its_list_of_pages_else_as_a_page(clone: Clone, site: WebServer) -> None:
    host = site.origin.removeprefix("http://")
    site.paths |= {"/sitemap.xml": page(URLSET.format(site.origin), "application/xml"), "/faq": page(ARTICLE)}
    site.paths["/list/llms.txt"] = page(f"# X\n- [a]({site.origin}/a.md): a\n", "text/plain")
    code, out, _ = clone.init(documentation=f"{host} {host}/list {host}/faq/")
    assert code == 0
    assert f"✓ sitemap: {site.origin}/sitemap.xml: 1 document; left out: 1 no documents, by their names" in out
    assert clone.written["data/knowledge-base/links.txt"].splitlines() == [
        f"sitemap: {site.origin}/sitemap.xml",
        f"llms: {site.origin}/list/llms.txt",
        f"{site.origin}/faq",
    ]
    assert "the server answered HTTP 404" in clone.refused(documentation=f"{host}/nothing")


def test_folders_together_are_those_below_the_folder_above_them(clone: Clone) -> None:
    (clone.folder / "wiki" / "pages").mkdir(parents=True)
    (clone.folder / "wiki" / "pages" / "start.md").write_text("# Start\n\nTurn the brass key.\n")
    (clone.folder / "other.md").write_text("# Other\n\nTurn the copper key.\n")
    code, out, _ = clone.init(documentation=["docs", "wiki/pages"], build_index=True)
    assert code == 0
    assert clone.local == {"kb": {"sources_dir": ".", "source_folders": ["docs", "wiki/pages"]}}
    assert "kb.source_base_url" in out
    index = load(clone.config).kb.index_path.read_text().splitlines()
    assert {"kb:docs/install.md", "kb:wiki/pages/start.md"} == {line for line in index if line.startswith("kb:")}
    _, out, _ = clone.run("--check")
    assert f"{clone.folder}, 2 documents, 1 left out" in out
    assert clone.init(documentation="docs")[0] == 0
    assert clone.local == {"kb": {"sources_dir": "docs", "source_folders": []}}


def test_what_is_taken_is_told_by_its_endings(clone: Clone) -> None:
    for name in ("a.rst", "b.rst", "README", "c.md"):
        (clone.folder / "docs" / name).write_text("Words about it.\n")
    _, out, _ = clone.init(documentation="docs")
    assert "docs: 5 documents (2 .rst, 2 .md, 1 without an ending), 1 left out (1: it is no text to read" in out
