"""Which files are documentation (SEARCH; pitfall 58)."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.knowledge import NOT_CHOSEN, NOT_DOCUMENTATION, PathFilter, TextFiles
from services.knowledge.file_selection import (
    BUILD_FILE,
    CREDENTIALS,
    LEFTOVER,
    LICENCE,
    NO_TEXT,
    PEOPLE,
    PRIVATE,
    SOURCE_CODE,
)
from tests.shelves import source_setup


@pytest.mark.parametrize(
    "name", ["logo.PNG", "assets/site.css", "js/app.min.js", "uv.lock", "web/package-lock.json", "diagram.svg"]
)
def test_pictures_styles_scripts_and_locks_are_no_documents(name: str) -> None:
    assert PathFilter().refusal(name) in NOT_DOCUMENTATION


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("_ext/highlight.py", SOURCE_CODE),
        ("_script/main.go", SOURCE_CODE),
        ("docker-build.sh", SOURCE_CODE),
        ("go.mod", BUILD_FILE),
        ("docs/_templates/globaltoc.html", BUILD_FILE),
        ("misc/asciinema/basic.cast", BUILD_FILE),
        ("Containerfile", BUILD_FILE),
        ("man/borg-create.1", BUILD_FILE),
        ("package.json", BUILD_FILE),
        ("public/_redirects", BUILD_FILE),
        ("AUTHORS", PEOPLE),
        ("thanks.txt", PEOPLE),
        ("misc/CONTRIBUTORS.md", PEOPLE),
        ("LICENSE", LICENCE),
        ("LICENSE-MIT.txt", LICENCE),
        ("tls/server.KEY", PRIVATE),
        ("deploy/prod.env", PRIVATE),
        ("id_ed25519", PRIVATE),
        ("config.local.yaml", PRIVATE),
        ("state/posts.jsonl", PRIVATE),
        ("deploy/docker-compose.override.yml", BUILD_FILE),
        ("env", CREDENTIALS),
        ("env.production", CREDENTIALS),
        ("prod.env.local", CREDENTIALS),
        ("secrets.yml", CREDENTIALS),
        ("k8s/db-Secret.yaml", CREDENTIALS),
        ("credentials", CREDENTIALS),
        ("gcp-credentials.json", CREDENTIALS),
        ("kubeconfig", CREDENTIALS),
        ("prod-kubeconfig.yaml", CREDENTIALS),
        ("service-account-otter.json", CREDENTIALS),
        ("htpasswd", CREDENTIALS),
        ("passwords.csv", CREDENTIALS),
        ("db_password.ini", CREDENTIALS),
        ("guide.md~", LEFTOVER),
        ("#guide.md#", LEFTOVER),
        ("backup.md.bak", LEFTOVER),
        ("guide.md.orig", LEFTOVER),
        ("app.log", LEFTOVER),
        ("app.log.1", LEFTOVER),
        ("app.log-20310305", LEFTOVER),
    ],
)
def test_what_is_not_for_readers_is_no_document_unless_it_is_chosen(name: str, why: str) -> None:
    assert PathFilter().refusal(name) == why
    assert PathFilter(include=("**",)).refusal(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "a.md",
        "b.mdx",
        "c.rst",
        "d.txt",
        "e",
        "x.json",
        "f.yaml",
        "lock",
        "css",
        "license.rst",
        "contributing.md",
        "secrets.md",
        "credentials-guide.md",
        "password-reset.md",
        "kubeconfig.adoc",
        "topics/auth/passwords.txt",
        "env.rst",
        "htpasswd.html",
        "password-reset.json",
        "environment.yaml",
        "console.log.md",
        "log",
        "changelog",
    ],
)
def test_everything_else_may_be_a_document(name: str) -> None:
    assert PathFilter().refusal(name) is None


@pytest.mark.parametrize("name", ["conf.py", "docs/conf.py", "docs/make.bat", "docs/Makefile"])
def test_what_builds_a_sphinx_tree_is_no_document_unless_it_is_chosen(name: str) -> None:
    assert PathFilter().refusal(name) in NOT_DOCUMENTATION
    assert PathFilter(include=("docs/**", "conf.py")).refusal(name) is None


def test_globs_choose_and_exclusion_wins() -> None:
    choice = PathFilter(include=("guides/**", "*.md", "img/?.svg"), exclude=("guides/old/**", "draft-*.md"))
    kept = {
        name: choice.refusal(name) is None
        for name in [
            "guides/a/b.txt",
            "guides/old/a.md",
            "deep/in/x.md",
            "deep/draft-1.md",
            "img/a.svg",
            "img/ab.svg",
            "x.rst",
        ]
    }
    assert kept == {
        "guides/a/b.txt": True,
        "guides/old/a.md": False,
        "deep/in/x.md": True,
        "deep/draft-1.md": False,
        "img/a.svg": True,
        "img/ab.svg": False,
        "x.rst": False,
    }
    assert choice.refusal("x.rst") == NOT_CHOSEN


def test_what_is_not_chosen_is_not_even_read(tmp_path: Path) -> None:
    for name in ("a.md", "logo.svg", "app.js"):
        (tmp_path / name).write_text("# A\n")
    listing = TextFiles(source_setup(tmp_path, 100)).list_sources({}, 0)
    assert listing.due == ["a.md"]
    assert listing.left_out == {"app.js": SOURCE_CODE, "logo.svg": NO_TEXT}
