"""The table of keys in README.md and the commented config.yaml, both made from the models.

python -m settings.reference --write      rewrites both
python -m settings.reference --check      exits 1 when one of them is stale
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import SecretStr

from settings.keys import ANY, SettingKey, all_keys

BEGIN = "<!-- settings:begin -->"
END = "<!-- settings:end -->"
WIDTH = 110
CHANNEL = 1458745245675032710
"""The id in the example for a channel."""

HEADER = """\
# Every key of the configuration with its default. This file works as it is, with no key of any kind: answers are
# then quoted from the knowledge base, without an LLM.
#
# Whatever is left out has its default. Lines that are commented out are not set: paths then follow app.data_dir.
# Relative paths begin at the folder of this file. A variable such as APP__DISCORD__TOKEN, in .env beside this file or
# in the environment, overrides discord.token; lists, numbers and true or false are written there as in JSON.
#
# Edit it as you like; `python -m settings.reference --write` makes it anew from the code.
"""

PLAIN = re.compile(r"[A-Za-z][\w./-]*", re.ASCII)
NOT_TEXT = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def reference_table() -> str:
    """Every key in Markdown: name, type, default, what it does."""
    rows = ["| key | type | default | what it does |", "|---|---|---|---|"]
    for key in all_keys():
        if key.section is None or key.nullable:
            cells = f"`{key.dotted}`", key.kind, _default_in_table(key), key.description
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def render_config() -> str:
    """The text of a config.yaml that sets every key to its default, each below a comment."""
    lines = HEADER.splitlines()
    for key in all_keys():
        if ANY in key.path or _below_null(key):
            continue  # shown as an example, where a mapping can stand
        if len(key.path) == 1:
            lines.append("")
        block = [f"# {line}" for line in textwrap.wrap(key.description, WIDTH)]
        # Paths are left to follow the data folder.
        block += [f"# {line}" if key.follows_data else line for line in _setting(key)]
        if key.nullable or key.dotted == "discord.channels":
            block += [f"# {line}".rstrip() for line in _example(key)]
        lines += [f"{'  ' * (len(key.path) - 1)}{line}".rstrip() for line in block]
    return "\n".join(lines) + "\n"


def write(root: Path) -> list[str]:
    """Write config.yaml and the table in README.md below `root`; a README.md that is missing stays so.

    Gives a line for each file on what was done. Raises ValueError if the marks are missing in README.md.
    """
    (root / "config.yaml").write_text(render_config(), "utf-8")
    readme = root / "README.md"
    if not readme.exists():
        return ["config.yaml: written", "README.md: there is none, nothing done"]
    readme.write_text(_with_table(readme.read_text("utf-8")), "utf-8")
    return ["config.yaml: written", "README.md: written"]


def stale(root: Path) -> list[str]:
    """The files below `root` that differ from what `write` would make of them."""
    config, readme = root / "config.yaml", root / "README.md"
    found: list[str] = []
    if not config.exists() or config.read_text("utf-8") != render_config():
        found.append("config.yaml")
    if readme.exists():
        text = readme.read_text("utf-8")
        if _with_table(text) != text:
            found.append("README.md")
    return found


def main(arguments: Sequence[str], root: Path) -> int:
    """Gives the exit code: 0 done or fresh, 1 stale or not to be written."""
    parser = argparse.ArgumentParser(prog="python -m settings.reference")
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--write", action="store_true", help="rewrite config.yaml and the table in README.md")
    task.add_argument("--check", action="store_true", help="exit 1 when one of them is stale")
    try:
        if parser.parse_args(arguments).write:
            sys.stdout.write("\n".join(write(root)) + "\n")
            return 0
        names = stale(root)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for name in names:
        sys.stderr.write(f"{name}: stale; run python -m settings.reference --write\n")
    return 1 if names else 0


def _with_table(text: str) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md: put the lines {BEGIN} and {END} where the table of settings belongs")
    return f"{before}{BEGIN}\n{reference_table()}{END}{after}"


def _below_null(key: SettingKey) -> bool:
    return any(
        above.nullable
        for above in all_keys()
        if above.section is not None and len(above.path) < len(key.path) and key.path[: len(above.path)] == above.path
    )


def _setting(key: SettingKey) -> list[str]:
    name = key.path[-1]
    if key.required or (key.section is not None and not key.nullable):
        return [f"{name}:"]
    value = _plain(key.default)
    if value is None and key.as_text:
        value = ""
    if isinstance(value, str) and "\n" in value:
        return [f"{name}: |-", *(f"  {line}" for line in value.split("\n"))]
    return [f"{name}: {_yaml(value)}"]


def _example(above: SettingKey) -> list[str]:
    """The keys below one that is empty by default, as they would be written."""
    lines = [f"{above.path[-1]}:"]
    for key in all_keys():
        depth = len(key.path) - len(above.path)
        if depth > 0 and key.path[: len(above.path)] == above.path:
            (line,) = [f"{CHANNEL}:"] if key.path[-1] == ANY else _setting(key)
            lines.append(f"{'  ' * depth}{line}  # {key.description}")
    return lines


def _plain(value: Any) -> Any:
    """A default as YAML and JSON know it."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Path):
        return value.as_posix()
    if isinstance(value, frozenset | tuple):
        return list(cast("frozenset[object] | tuple[object, ...]", value))
    return value


def _yaml(value: Any) -> str:
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in NOT_TEXT:
        return value
    return json.dumps(value, ensure_ascii=False)


def _default_in_table(key: SettingKey) -> str:
    if key.required:
        return "(required)"
    value = _plain(key.default)
    if key.follows_data:
        return f"`{value}`, below `app.data_dir`"
    if isinstance(value, str) and "\n" in value:
        return "see `config.yaml`"
    if value is None and key.section is None and key.as_text:
        value = ""
    return "(empty)" if value == "" else f"`{_yaml(value)}`"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).parent.parent))
