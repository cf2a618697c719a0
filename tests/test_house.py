"""What holds the house together besides the import contracts of pyproject.toml: doors, arrows, names and locks."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = (
    "assembly",
    "clock",
    "commands",
    "dashboard",
    "dataflow",
    "model",
    "operators",
    "reporting",
    "services",
    "settings",
    "sinks",
    "streams",
    "transport",
)
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PRODUCT
    for path in (ROOT / package).rglob("*.py")
}
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}
SIDE_DOORS = {"services.discord.slash", "services.search.embedding", "services.telemetry.exporter"}
"""Modules that others import by name, as they load a library that the rest of their room does without."""
MAX_ROOMS, MAX_ARROWS = 12, 36
MERGE_MARK = re.compile(r"^(?:<{7}|>{7})(?: |$)", re.MULTILINE)


@cache
def nodes() -> list[tuple[str, ast.ImportFrom | ast.Constant]]:
    """All imports of names and all constants, with the modules that they stand in: reading them takes a while."""
    return [
        (module, node)
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom | ast.Constant)
    ]


@cache
def imports() -> list[tuple[str, str, str]]:
    """Who imports which name from where."""
    return [
        (module, node.module, alias.name)
        for module, node in nodes()
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    ]


def room(module: str) -> str:
    return ".".join(module.split(".")[:2])


@cache
def exported(package: str) -> set[str]:
    tree = ast.parse(MODULES[package].read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    return names - {"TYPE_CHECKING", "lazy_exports"}


def test_a_room_is_entered_by_its_door() -> None:
    """Others import what a package's `__init__` imports, or a side door: the rest of the room is its own affair."""
    outside = [
        (importer, module, name)
        for importer, module, name in imports()
        if module.startswith("services.") and room(importer) != room(module)
    ]
    assert len(outside) > 100
    private = [
        each
        for each in outside
        if each[1] not in SIDE_DOORS and (each[1] not in PACKAGES or each[2] not in exported(each[1]))
    ]
    assert private == []


def test_what_a_room_exports_somebody_uses() -> None:
    texts = [path.read_text() for path in MODULES.values()]
    used = {(module, name) for importer, module, name in imports() if importer != module}
    unused = [
        f"{package}: {name}"
        for package in sorted(PACKAGES)
        if package.startswith("services.")
        for name in sorted(exported(package))
        if (package, name) not in used and not any(f"{package.rpartition('.')[2]}.{name}" in text for text in texts)
    ]
    assert unused == []


def test_there_are_few_rooms_and_few_arrows_between_them() -> None:
    rooms = {room(module) for module in MODULES if module.count(".") > 1 and module.startswith("services.")}
    arrows = {
        (room(importer), room(module))
        for importer, module, _ in imports()
        if importer.startswith("services.") and module.startswith("services.") and room(importer) != room(module)
    }
    assert len(rooms) <= MAX_ROOMS
    assert len(arrows) <= MAX_ARROWS


def test_the_picture_of_the_rooms_is_what_the_imports_say() -> None:
    """Where it differs, the assertion shows the block that belongs into docs/architecture.md."""
    arrows = sorted(
        {
            (room(importer).removeprefix("services."), room(module).removeprefix("services."))
            for importer, module, _ in imports()
            if importer.startswith("services.") and module.startswith("services.") and room(importer) != room(module)
        }
    )
    lines = "".join(f"  {importer} --> {module}\n" for importer, module in arrows)
    assert f"```mermaid\nflowchart TD\n{lines}```\n" in (ROOT / "docs" / "architecture.md").read_text()


def test_no_export_of_a_room_has_the_name_of_one_of_its_modules() -> None:
    """It would be the module or the export, depending on what was imported first."""
    lazy = [package for package in PACKAGES if "lazy_exports" in MODULES[package].read_text()]
    assert len(lazy) > 5
    clashes = [f"{module}.{name}" for module in lazy for name in exported(module) if f"{module}.{name}" in MODULES]
    modules = {f"{importer}.{name}" for importer, module, name in imports() if importer == module}
    assert sorted({*clashes} - modules) == []


def test_no_module_lies_loose_in_services() -> None:
    assert [path.name for path in (ROOT / "services").glob("*.py")] == ["__init__.py"]


def test_every_room_says_what_it_is_for() -> None:
    assert [name for name in sorted(PACKAGES) if ast.get_docstring(ast.parse(MODULES[name].read_text())) is None] == []


def test_what_is_installed_to_run_is_what_is_tested() -> None:
    def versions(name: str) -> set[str]:
        lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
        return {line.partition(" ;")[0] for line in lines}  # not for which systems: the tests run on few

    assert versions("runtime") - versions("development") == set()


def test_no_page_holds_the_marks_of_an_unfinished_merge() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")]
    assert [str(page.relative_to(ROOT)) for page in pages if MERGE_MARK.search(page.read_text())] == []
    assert pages


def test_values_are_bound_in_their_order() -> None:
    """Python 3.12 warns of a sequence for numbered placeholders of SQL (`?1`), and 3.14 refuses it."""
    numbered = [
        f"{module}: {node.value}"
        for module, node in nodes()
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.search(r"\b(?:SELECT|VALUES|WHERE|SET)\b.*\?\d", node.value, re.DOTALL)
    ]
    assert numbered == []


def test_modules_of_a_room_do_not_import_each_other_in_a_circle() -> None:
    """Also not inside functions."""
    arrows: dict[str, set[str]] = {}
    for importer, module, name in imports():
        target = f"{module}.{name}" if f"{module}.{name}" in MODULES else module
        if target in MODULES and target != importer and not PACKAGES & {importer, target}:
            arrows.setdefault(importer, set()).add(target)

    def reached(start: str) -> set[str]:
        found, waiting = set[str](), [start]
        while waiting:
            new = arrows.get(waiting.pop(), set[str]()) - found
            found |= new
            waiting += new
        return found

    assert [module for module in arrows if module in reached(module)] == []
