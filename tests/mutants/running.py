"""Runs mutmut on a copy of the tree, `.mutants/<area>`, so that nothing of it gets between the files of the project."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from tests.mutants.areas import Area
from tests.mutants.wording import in_words_only

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".mutants"
_CHILDREN = 2
_PYTEST = ("-p", "no:cacheprovider", "-m", "not slow")
_NOT_PRODUCT = {"tests", "benchmarks", "examples"}
_PRODUCT = ("app.py", *sorted({file.parent.name for file in ROOT.glob("*/__init__.py")} - _NOT_PRODUCT))

# Children, as mutmut reads the configuration of the folder that it runs in, once.
_MAKE = """
import sys
from pathlib import Path
from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants
Path("mutants").mkdir()
copy_src_dir()
copy_also_copy_files()
create_mutants(int(sys.argv[1]))
"""

_SHOW = """
import sys
from mutmut.mutation.diff_apply import find_mutant, get_diff_for_mutant
for name in sys.argv[1:]:
    print(f"# {name}\\n{get_diff_for_mutant(name, path=find_mutant(name).path)}")
"""


class Broken(Exception):
    """mutmut could not do its work: the tests fail without any mutant, say. The message holds what it said."""


class Workshop:
    """A fresh copy of the tree for one area, with what mutmut has to know."""

    def __init__(self, name: str, area: Area) -> None:
        self._folder, self._area = WORK / name, area
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        for file in _called(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"], ROOT).split("\0"):
            if file and (ROOT / file).is_file():
                (self._folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, self._folder / file)
        for file in area.without:
            path = self._folder / file
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        (self._folder / "setup.cfg").write_text(_configuration(self._folder, area))

    def mutants(self) -> list[str]:
        """Makes all mutants of the area, and gives the names of those that a test has to notice."""
        _called([sys.executable, "-c", _MAKE, str(_CHILDREN)], self._folder)
        return [name for file in self._records() for name in _noticeable(file)]

    def run(self, names: Sequence[str]) -> dict[str, int | None]:
        """Runs these mutants, and gives mutmut's code for every mutant of the area; None: it was not run."""
        mutmut = Path(sys.executable).with_name("mutmut")
        _called([str(mutmut), "run", "--max-children", str(_CHILDREN), *names], self._folder)
        return self._codes()

    def _codes(self) -> dict[str, int | None]:
        codes: dict[str, int | None] = {}
        for file in self._records():
            codes |= _codes(file)
        return codes

    def _records(self) -> list[Path]:
        """mutmut's files about the modules, each beside the module with its mutants."""
        return sorted((self._folder / "mutants").rglob("*.meta"))

    def survives_from_the_start(self, name: str) -> bool:
        """Whether all tests pass in a process of its own that has this mutant while it imports the modules."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", *_PYTEST, *self._area.tests]
        environment = {**os.environ, "MUTANT_UNDER_TEST": name}
        folder = self._folder / "mutants"
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode == 0

    def differences(self, names: Sequence[str]) -> str:
        """What each of these mutants changes."""
        return _called([sys.executable, "-c", _SHOW, *names], self._folder)


def _codes(record: Path) -> dict[str, int | None]:
    """mutmut's codes of a module's mutants, by their full names."""
    return cast("dict[str, int | None]", json.loads(record.read_text())["exit_code_by_key"])


def _noticeable(record: Path) -> list[str]:
    in_words = in_words_only(record.with_suffix("").read_text())
    return [name for name in _codes(record) if name.rpartition(".")[2] not in in_words]


def _configuration(folder: Path, area: Area) -> str:
    product = {Path(each).parts[0] for each in _PRODUCT}
    others = sorted(path.name for path in folder.iterdir() if path.name not in {*product, "tests", "setup.cfg"})
    lists = {
        "source_paths": _PRODUCT,
        "only_mutate": area.code,
        "also_copy": others,
        "pytest_add_cli_args_test_selection": area.tests,
        "pytest_add_cli_args": _PYTEST,
    }
    # Six times as long as the tests took without it: one that is slow because the machine is busy is not dead.
    values = {"timeout_multiplier": "6", "timeout_constant": "2", "use_git_change_detection": "false"}
    values["track_dependencies"] = "false"
    # Each mutant in a process in which no test has run: threads that another has started would be missing in it.
    values["process_isolation"] = "forkserver"
    lines = [f"{name} =\n" + "".join(f"    {value}\n" for value in items) for name, items in lists.items()]
    return "[mutmut]\n" + "".join(lines) + "".join(f"{name} = {value}\n" for name, value in values.items())


def _called(command: Sequence[str], folder: Path) -> str:
    told = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if told.returncode:
        raise Broken(f"{command[0]} ended with {told.returncode}:\n{told.stdout[-3000:]}")
    return told.stdout
