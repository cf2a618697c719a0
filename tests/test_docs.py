"""The pages name files, identifiers and headings that exist, and docs/pitfalls.md lists every number that is cited."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from settings.errors import find_key

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *(ROOT / "tests" / "README.md", ROOT / "benchmarks" / "README.md"),
    *sorted((ROOT / "docs").glob("*.md")),
]
FOLDERS = [path.name for path in ROOT.iterdir() if path.is_dir() and any(path.glob("**/*.py"))]
OF_OTHERS = {"conf.py"}
"""Files of the documentation that a bot reads."""

CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
MODULE = re.compile(r"(?P<file>[\w./-]*\w\.py)(?:: ?(?P<names>[\w., …-]+))?")
FOLDER = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
DOTTED = re.compile(r"\w+(?:\.\w+)+")
CLASS = re.compile(r"(?:[A-Z][a-z0-9]+){2,}(?:\.\w+)?")
LINK = re.compile(r"\]\((?!<?https?:)(?P<file>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
PITFALL = re.compile(r"\bpitfalls?\s+(?P<numbers>\d+(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+)\d+)*)", re.IGNORECASE)


@cache
def modules() -> dict[str, str]:
    """The text of each Python file, by its path below the project."""
    folders = [ROOT / folder for folder in (*FOLDERS, ".ci") if not folder.startswith(".venv")]
    files = [*ROOT.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in files}


def spans(page: Path) -> Iterator[str]:
    """What stands between backticks, outside of code blocks."""
    for found in SPAN.finditer(CODE_BLOCK.sub("", page.read_text())):
        yield found[1]


def named_modules(file: str) -> list[str]:
    """The paths that a page can mean, as it may leave out the folder that it is about."""
    return [path for path in modules() if path == file or path.endswith(f"/{file}")]


def holds(text: str, name: str) -> bool:
    """Whether each part of a name occurs as a word; `…` stands for the rest of it."""
    if "…" in name:
        return all(part in text for part in name.split("…"))
    return all(re.search(rf"\b{part}\b", text) for part in name.split(".") if part)


def is_known(dotted: str) -> bool:
    """Whether `package.module.name` exists."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        path = "/".join(parts[:length])
        text = modules().get(f"{path}.py", modules().get(f"{path}/__init__.py"))
        if text is not None:
            return holds(text, ".".join(parts[length:]))
    return False


def missing(span: str) -> str:
    """What there is not of that which a span names; empty if all of it exists, or it names nothing of ours."""
    if found := MODULE.fullmatch(span):
        return missing_in_module(found["file"], re.split(r", *", found["names"] or ""))
    if FOLDER.fullmatch(span) and "/" in span and span.partition("/")[0] in FOLDERS:
        exists = (ROOT / span).exists()
    elif DOTTED.fullmatch(span) and span.partition(".")[0] in FOLDERS:
        exists = is_known(span) or is_setting(span)
    elif CLASS.fullmatch(span):
        exists = words().issuperset(span.split("."))
    else:
        exists = True
    return "" if exists else f"no {span}"


def missing_in_module(file: str, names: list[str]) -> str:
    files = named_modules(file)
    if not files:
        return "" if file in OF_OTHERS else f"no {file}"
    unknown = [name for name in names if not any(holds(modules()[file], name) for file in files)]
    return f"no {', '.join(unknown)} in {file}" if unknown else ""


@cache
def words() -> set[str]:
    """All words of the code, and of what runs it."""
    deployed = (path.read_text() for path in (ROOT / "deploy").iterdir() if path.is_file())
    return {word for text in (*modules().values(), *deployed) for word in re.findall(r"\w+", text)}


@cache
def is_setting(span: str) -> bool:
    """Sections of the configuration have names of packages: `dashboard.enabled`."""
    return find_key(span.split(".")) is not None or (ROOT / span).exists()


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", CODE_BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_names_exists(page: Path) -> None:
    assert sorted({problem for span in spans(page) if (problem := missing(span))}) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_where_a_page_links_to_exists(page: Path) -> None:
    broken: list[str] = []
    for found in LINK.finditer(CODE_BLOCK.sub("", page.read_text())):
        target = page.parent / found["file"] if found["file"] else page
        if not target.exists() or (found["anchor"] and found["anchor"] not in anchors(target)):
            broken.append(found[0])
    assert broken == []


def test_a_name_that_is_gone_is_noticed() -> None:
    assert missing("streams/graph.py: graph") == ""
    assert missing("streams/graph.py: graphs") == "no graphs in streams/graph.py"
    assert missing("streams/graphs.py") == "no streams/graphs.py"
    assert missing("services/nowhere/") == "no services/nowhere/"
    assert missing("clock.run_blocking") == ""
    assert missing("clock.run_nothing") == "no clock.run_nothing"
    gone = "quiet room".title().replace(" ", "")  # as one word it would be found in this file
    assert missing(gone) == f"no {gone}"
    assert missing("data/state/seen.json") == missing("dashboard.enabled") == missing("a.log") == ""


def listed_pitfalls() -> list[int]:
    text = (ROOT / "docs" / "pitfalls.md").read_text()
    return [int(number) for number in re.findall(r"^- \*\*(\d+)\.\*\* \S", text, re.MULTILINE)]


def test_every_pitfall_that_is_cited_is_in_the_list() -> None:
    texts = [*modules().values(), *(page.read_text() for page in PAGES)]
    cited = {
        int(number)
        for text in texts
        for found in PITFALL.finditer(text)
        for number in re.findall(r"\d+", found["numbers"])
    }
    assert len(cited) >= 80
    assert sorted(cited - set(listed_pitfalls())) == []


def test_a_pitfall_has_one_line() -> None:
    assert [number for number, times in Counter(listed_pitfalls()).items() if times > 1] == []
