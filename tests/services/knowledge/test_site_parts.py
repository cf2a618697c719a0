"""What of a folder of documents is no page: parts, drafts, what the site's generator leaves out."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from services.knowledge import TextFiles
from services.knowledge.file_selection import (
    DRAFT,
    EXCLUDED_BY_SPHINX,
    PARTIAL,
    PathFilter,
    expand_includes,
    is_partial,
    is_unpublished,
    site_generator_of,
    sphinx_excludes,
)
from tests.shelves import source_setup


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", ["usage/create.rst.inc", "ports.inc", "_includes/ports.md", "guide/_shared.mdx"])
def test_parts_are_known_by_their_names(name: str) -> None:
    assert is_partial(name)


@pytest.mark.parametrize("name", ["usage/create.rst", "including.md", "_ext/tool.py", "includes.md", "a_b.md"])
def test_pages_are_no_parts(name: str) -> None:
    assert not is_partial(name)


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: A\ndraft: true\n---\n# A\n",
        "+++\ndraft = true\n+++\n# A\n",
        "---\npublished: false\n---\n# A\n",
        "---\nrobots: noindex, nofollow\n---\n# A\n",
        '---\n"noindex": yes\n---\n# A\n',
        ":nosearch:\n\nTitle\n=====\n",
    ],
)
def test_drafts_and_what_is_not_to_be_indexed_are_told_by_their_front_matter(text: str) -> None:
    assert is_unpublished(text)


@pytest.mark.parametrize(
    "text",
    ["# A\n\ndraft: true\n", "---\ndraft: false\n---\n# A\n", "---\ntitle: draft\n---\n# A\n", ":orphan:\n\nA\n=\n"],
)
def test_what_speaks_of_drafts_is_none(text: str) -> None:
    assert not is_unpublished(text)


@pytest.mark.parametrize(
    ("directive", "shown"),
    [
        (".. include:: ports.inc", "Port 80.\nPort 443."),
        ("   .. include:: /_includes/ports.inc", "   Port 80.\n   Port 443."),
        (".. literalinclude:: ports.inc", "::\n\n    Port 80.\n    Port 443."),
        ("```{include} ports.inc", "Port 80.\nPort 443."),
        ('--8<-- "_includes/ports.inc"', "Port 80.\nPort 443."),
        ("{!ports.inc!}", "Port 80.\nPort 443."),
        ("{{#include ports.inc}}", "Port 80.\nPort 443."),
        ("<!--@include: ./ports.inc-->", "Port 80.\nPort 443."),
        (".. include:: elsewhere.inc", ".. include:: elsewhere.inc"),
        (".. include:: ../../etc/passwd", ".. include:: ../../etc/passwd"),
    ],
)
def test_what_a_page_includes_stands_in_the_place_of_the_directive(directive: str, shown: str) -> None:
    parts = {"guide/ports.inc": "Port 80.\nPort 443.\n", "_includes/ports.inc": "Port 80.\nPort 443.\n"}
    whole, any_part = expand_includes("guide/net.rst", f"Before\n\n{directive}\n\nAfter\n", parts.get)
    assert whole == f"Before\n\n{shown}\n\nAfter\n"
    assert any_part == (shown != directive)


def test_parts_that_include_each_other_and_too_many_of_them_come_to_an_end() -> None:
    parts = {"a.inc": ".. include:: b.inc\n", "b.inc": "b\n.. include:: a.inc\n", "big.inc": "x" * 300_000}
    assert expand_includes("p.rst", ".. include:: a.inc", parts.get)[0] == "b\n.. include:: a.inc"
    assert len(expand_includes("p.rst", ".. include:: big.inc\n" * 100, parts.get)[0]) < 600_000


def test_the_indentation_of_parts_is_bounded() -> None:
    deep = {f"_{level}.md": f"{' ' * 450}{{!_{level + 1}.md!}}\n" for level in range(1, 4)} | {"_4.md": "x\n" * 200_000}
    assert len(expand_includes("p.md", f"{' ' * 450}{{!_1.md!}}\n", deep.get)[0]) < 600_000


def test_the_includes_of_a_page_are_counted() -> None:
    asked: list[str] = []
    expand_includes("p.md", "{!_a.md!}\n" * 100_000, asked.append)
    assert len(asked) <= 2_000


def test_exclude_patterns_are_read_and_nothing_is_run() -> None:
    conf = "import os\nexclude_patterns = ['_build', 'old/*.rst', name]\nexclude_patterns += ['**/draft.rst']\n1/0\n"
    assert sphinx_excludes(conf) == ["_build", "old/*.rst", "**/draft.rst"]
    assert sphinx_excludes("exclude_patterns = [") == []


def test_a_listing_says_why_each_file_is_no_page(tmp_path: Path) -> None:
    write(
        tmp_path,
        docs__conf_DOT_py="exclude_patterns = ['old', 'tips.rst']\n",
        docs__index_DOT_rst="Title\n=====\n",
        docs__old__a_DOT_rst="A\n=\n",
        docs__tips_DOT_rst="B\n=\n",
        docs__deep__tips_DOT_rst="C\n=\n",
        docs__ports_DOT_rst_DOT_inc="Port 80.\n",
    )
    listing = TextFiles(source_setup(tmp_path, 1_000)).list_sources({}, 0)
    assert listing.due == ["docs/deep/tips.rst", "docs/index.rst"]
    assert {name: listing.left_out[name] for name in ("docs/old/a.rst", "docs/tips.rst", "docs/ports.rst.inc")} == {
        "docs/old/a.rst": EXCLUDED_BY_SPHINX,
        "docs/tips.rst": EXCLUDED_BY_SPHINX,
        "docs/ports.rst.inc": PARTIAL,
    }


async def test_a_draft_is_left_out_and_a_page_is_read_with_its_parts(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_DOT_md="---\ndraft: true\n---\n# A\n",
        b_DOT_rst="B\n=\n\n.. include:: p.inc\n",
        p_DOT_inc="Port 80.\n",
    )
    files = TextFiles(source_setup(tmp_path, 1_000))
    listing = files.list_sources({}, 0)
    assert listing.due == ["a.md", "b.rst"]
    draft, page = [each for name in listing.due for each in await files.fetch({name: None})]
    assert getattr(draft, "reason", "") == DRAFT
    assert files.read("b.rst").text == "B\n=\n\nPort 80.\n"
    records = {"b.rst": page}
    assert files.list_sources(records, 0).unchanged == ["b.rst"]  # pyright: ignore[reportArgumentType] (a record)
    os.utime(tmp_path / "p.inc", (4_000_000_000, 4_000_000_000))
    assert "b.rst" in files.list_sources(records, 0).due  # pyright: ignore[reportArgumentType] (a record)


@pytest.mark.parametrize(
    ("name", "generator"),
    [
        ("docs/.vitepress/config.mts", "vitepress"),
        ("mkdocs.yml", "mkdocs"),
        ("docs/conf.py", "sphinx"),
        ("docusaurus.config.ts", "docusaurus"),
        ("book.toml", "mdbook"),
    ],
)
def test_the_generator_of_a_site_leaves_its_configuration_beside_or_above(
    tmp_path: Path, name: str, generator: str
) -> None:
    (tmp_path / "docs").mkdir()
    assert site_generator_of(tmp_path / "docs") is None
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("", encoding="utf-8")
    assert site_generator_of(tmp_path / "docs") == generator


@pytest.mark.parametrize(
    ("exclude", "part", "included"),
    [
        (("internal/**",), "internal/plan.md", False),
        (("_parts/**",), "_parts/ports.md", True),
        ((), "config.local.yaml", False),
        ((), "tool.py", True),
    ],
)
def test_what_is_kept_out_is_included_by_no_page(tmp_path: Path, exclude: list[str], part: str, included: bool) -> None:
    write(tmp_path, a_DOT_rst=f".. include:: {part}\n")
    (tmp_path / part).parent.mkdir(exist_ok=True)
    (tmp_path / part).write_text("what is in it")
    setup = replace(source_setup(tmp_path, 1_000), path_filter=PathFilter(exclude=exclude))
    text = TextFiles(setup).read("a.rst").text
    assert ("what is in it" in text) == included
