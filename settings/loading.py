"""The configuration files: read and laid over each other with the environment, checked as a whole, and edited by
`--init`.
"""

from __future__ import annotations

import copy
import io
import ipaddress
import itertools
import json
import os
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml
from dotenv.parser import parse_stream
from pydantic import ValidationError

from settings.errors import (
    IN_ENVIRONMENT,
    Problem,
    SettingKey,
    SettingsError,
    complaints,
    dotted,
    find,
    summary,
    unknown,
    variable,
)
from settings.kinds import fits_header
from settings.sections import LLMSettings, Settings

DEEPEST = 8
"""More names than any key has: aliases in YAML can make mappings without end."""


@dataclass(slots=True)
class ConfigDraft:
    """The unchecked values of one configuration file, or of several laid over each other, with the place of each."""

    file: str  # the configuration file, as the operator named it
    values: dict[Any, Any] = field(default_factory=dict[Any, Any])
    origins: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """File and line, or environment variable, by path."""

    def where(self, path: Sequence[object]) -> str:
        """Give the file and line where the value at `path`, or the nearest section around it, was written."""
        words = tuple(map(str, path))
        while words and words not in self.origins:
            words = words[:-1]
        return self.origins.get(words, self.file)

    def at(self, path: Sequence[str]) -> object:
        """Give the value at `path`; None where there is none."""
        return _at(self.values, path)

    def put(self, path: Sequence[str], value: object, origin: str) -> None:
        """Set the value at `path` and make the mappings on the way there where they are missing or null.

        What stands in the way and is no mapping stays, for the models to refuse.
        """
        words = tuple(path)
        at = self.values
        for depth, word in enumerate(words[:-1], start=1):
            name = _name_in(at, word)
            below: object = at.get(name)
            if below is None or _gives_way(words[:depth], below):
                below = None
                self.origins[words[:depth]] = origin
            elif not isinstance(below, dict):
                return
            # A copy: YAML lets two keys share one mapping.
            at[name] = dict(cast("dict[Any, Any]", below)) if below else {}
            at = at[name]
        at[_name_in(at, words[-1])] = value
        for old in [known for known in self.origins if known[: len(words)] == words]:
            del self.origins[old]
        self.origins[words] = origin

    def lay(self, other: ConfigDraft, path: tuple[str, ...] = ()) -> None:
        """Put what `other` says at `path` over this, key by key; what is no mapping, such as a list, as a whole."""
        given: Mapping[Any, Any] = _at(other.values, path)
        for name, value in given.items():
            words = (*path, str(name))
            if value is None and _is_section(words):
                continue  # its every line is a comment
            if len(words) < DEEPEST and all(isinstance(_at(each.values, words), dict) for each in (self, other)):
                self.lay(other, words)
                continue
            self.put(words, value, other.where(words))
            self.origins |= {known: where for known, where in other.origins.items() if known[: len(words)] == words}


def _at(values: Any, path: Sequence[str]) -> Any:
    """What stands at `path`; None: nothing."""
    for word in path:
        if not isinstance(values, dict):
            return None
        mapping = cast("dict[Any, Any]", values)
        values = mapping.get(_name_in(mapping, word))
    return values


def _is_section(path: tuple[str, ...]) -> bool:
    key = find(path)
    return key is not None and key.section is not None and not key.nullable


def _gives_way(path: tuple[str, ...], value: object) -> bool:
    """Return whether a word stands where a mapping may stand as well, as in `search.embeddings: packaged`."""
    key = find(path)
    return isinstance(value, str) and key is not None and key.section is not None and key.nullable


def _name_in(mapping: dict[Any, Any], word: str) -> Any:
    """The key of `mapping` that reads like `word`: YAML makes numbers of ids."""
    return next((key for key in mapping if str(key) == word), word)


MERGE = "tag:yaml.org,2002:merge"
QUOTES = "check indentation and colons, and put quotes around text with special signs"


def read_yaml(path: Path, *, option: str = "--config", top: str = "discord", as_text: bool = False) -> ConfigDraft:
    """What the file says, unchecked. `option`: of the command line, which names the file; `top`: a name that may stand
    at its top level; `as_text`: what is no list or mapping is the text that stands there, such as `yes` or `1.10`.

    Raises:
        SettingsError: it is missing, unreadable, not YAML, no mapping, or names a key twice.
    """
    text = read_text(path, missing=f"create it, go to its folder, or name another with {option} FILE")
    draft = ConfigDraft(str(path))
    try:
        loader = (yaml.BaseLoader if as_text else yaml.SafeLoader)(text)
        node: yaml.Node | None = loader.get_single_node()
        if node is None:
            return draft
        _note(node, (), draft, set())
        values: object = loader.construct_document(node)  # pyright: ignore[reportUnknownMemberType] (the stub leaves the node out)
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        # What PyYAML says of `!!bool x`, `!!int ""` and `!!timestamp x` is none of its own errors.
        # Without the original, which quotes the line.
        raise SettingsError(_not_yaml(path, error)) from None
    if values is None:
        return draft
    if not isinstance(values, dict):
        raise SettingsError(f"{path}: the top level must be a mapping of sections, such as `{top}:`")
    draft.values = cast("dict[Any, Any]", values)
    return draft


def read_text(path: Path, *, missing: str) -> str:
    """The text of a UTF-8 file; `missing` is the remedy where there is none.

    Raises:
        SettingsError: it is missing or unreadable.
    """
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise SettingsError(f"{path}: there is no such file; {missing}") from None
    except IsADirectoryError:
        raise SettingsError(f"{path}: is a folder; name a file") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is not UTF-8 text; save it in that encoding") from None


def _note(node: yaml.Node, path: tuple[str, ...], draft: ConfigDraft, seen: set[int]) -> None:
    """Write down the line of each key and item, and refuse the second of two keys."""
    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            draft.origins[*path, str(number)] = f"{draft.file}:{item.start_mark.line + 1}"
            _note(item, (*path, str(number)), draft, seen)
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    for name, value in node.value:
        line = name.start_mark.line + 1
        if isinstance(name, yaml.ScalarNode) and name.tag != MERGE:
            word: str = name.value
            if word in lines:
                key = dotted((*path, word))
                raise SettingsError(
                    f"{draft.file}:{line}: {key} stands here again, after line {lines[word]}; keep one of the two"
                )
            lines[word] = line
            draft.origins[*path, word] = f"{draft.file}:{line}"
            _note(value, (*path, word), draft, seen)


def _not_yaml(path: Path, error: Exception) -> str:
    """Describe where and why a file is not YAML, without quoting from it."""
    where, what = str(path), "not valid YAML"
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        if mark is not None:
            where = f"{path}:{mark.line + 1}:{mark.column + 1}"
        # What the parser found stands in quotes, and may be part of a secret.
        problem = (error.problem or "").split("'")[0].split('"')[0].removesuffix("but found ").strip(" ,")
        if "'\\t'" in (error.problem or ""):
            return f"{where}: {what} (a tab stands here); indent with blanks"
        # Cut short, it says nothing: what was being read says more.
        said = problem if " " in problem else error.context
        what = f"{what} ({said})" if said else what
    return f"{where}: {what}; {QUOTES}"


def local_file(path: Path) -> Path:
    """Give the operator's own file beside a configuration, which updates of the program never touch: config.local.yaml
    for config.yaml.
    """
    return path.with_name(f"{path.stem}.local{path.suffix}")


def files_of(path: Path) -> list[Path]:
    """The files that a configuration is read from, in this order; those after the first need not exist."""
    return [path, local_file(path), path.with_name(".env")]


def drafted(path: Path) -> ConfigDraft:
    """Read a configuration and its local file, unchecked. Raises SettingsError."""
    draft, local = read_yaml(path), local_file(path)
    if os.path.lexists(local):
        draft.lay(read_yaml(local))
    return draft


class _Place(NamedTuple):
    """`key`: names it; `path`: where it leads, without symlinks; `called`: what people know it by."""

    key: tuple[str, ...]
    path: str
    called: str


def overlapping_paths(settings: Settings, where: Callable[[Sequence[object]], str]) -> Iterator[Problem]:
    """One for each two owners of which a folder or list of one lies in those of the other: what is in both would be
    told in both. And one for each folder of documents that meets what is kept of people. `settings`: placed; `where`:
    which line names a key.
    """
    owners = [
        _places(server, "" if guild_id is None else str(guild_id)) for guild_id, server in settings.servers.items()
    ]
    for mine, others in itertools.combinations(owners, 2):
        pairs = (pair for pair in itertools.product(mine, others) if _meet(pair[0].path, pair[1].path))
        for first, second in itertools.islice(pairs, 1):
            # The longest key is the nearest to what the operator wrote for a server.
            named, beside = sorted((first, second), key=lambda place: -len(place.key))
            text = f"{named.called} must lie apart from {beside.called}: what is in both would be told in both"
            yield Problem(where(named.key), dotted(named.key), f"{text}; name another place")
    yield from _published_records(settings, where)


_RECORDS = ("state", "team-knowledge", "evidence", "runbooks", "documents", "llm-recordings")
"""Folders below a data folder that hold what people wrote."""


def _published_records(settings: Settings, where: Callable[[Sequence[object]], str]) -> Iterator[Problem]:
    """One for each folder of documents that holds, or lies in, what the program keeps of people."""
    servers = list(settings.servers.items())
    kept = [path for _, each in servers for path in (each.kb.team_raw_dir, each.kb.team_topics_dir)]
    kept += [each.app.data_dir / name for _, each in servers for name in _RECORDS]
    records = list(map(os.path.realpath, kept))
    for guild_id, server in servers:
        key = ("kb", "sources_dir") if guild_id is None else ("guilds", str(guild_id), "kb", "sources_dir")
        documents = os.path.realpath(server.kb.sources_dir)
        met = next((path for path in records if _meet(documents, path)), None)
        if met is not None:
            text = f"{dotted(key)} must lie apart from {met}: what people wrote would be told as documentation"
            yield Problem(where(key), dotted(key), f"{text}; name another place")


def _places(settings: Settings, guild_id: str = "") -> list[_Place]:
    kb, above = settings.kb, ("guilds", guild_id, "kb") if guild_id else ("kb",)
    places = [
        _Place((*above, name), os.path.realpath(path), dotted((*above, name)))
        for name, path in (("sources_dir", kb.sources_dir), ("links_file_path", kb.links_file_path))
    ]
    if guild_id:
        home = settings.app.data_dir
        called = f"{home.parent.name}/{home.name} below app.data_dir"
        places.insert(0, _Place(("guilds", guild_id), os.path.realpath(home), called))
    return places


def _meet(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other.removesuffix('/')}/") or f"{other}/".startswith(f"{one.removesuffix('/')}/")


def dashboard_problems(settings: Settings, where: Callable[[Sequence[object]], str]) -> Iterator[Problem]:
    """Report a dashboard that nobody, or everybody, could open. `where`: gives the line of a key."""
    host = settings.metrics.host
    if not settings.dashboard.enabled:
        return
    if not settings.metrics.port:
        text = "dashboard.enabled is true, but metrics.port is 0: set metrics.port, such as 9090, which serves both"
        yield Problem(where(("dashboard", "enabled")), "dashboard.enabled", text)
    elif not is_loopback(host) and not settings.dashboard.token.get_secret_value():
        remedy = "set dashboard.token, or metrics.host to 127.0.0.1"
        text = f"metrics.host is {host}, where others reach the dashboard: {remedy}"
        yield Problem(where(("metrics", "host")), "dashboard.token", text)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


PREFIX = "app__"
MODEL = ("ai_response", "llm")


@dataclass(frozen=True, slots=True)
class Variable:
    path: tuple[str, ...]
    name: str
    text: str
    origin: str


def from_environment(environ: Mapping[str, str]) -> list[Variable]:
    """The variables that set a key, in an order that does not depend on the environment's."""
    return [
        Variable(path, name, text, f"{IN_ENVIRONMENT}{variable(path)}")
        for name, text in sorted(environ.items())
        if (path := path_of(name)) is not None
    ]


def variables_of(environ: Mapping[str, str]) -> list[str]:
    """The names of the variables that set a key."""
    return [variable(each.path) for each in from_environment(environ)]


def from_dotenv(file: Path) -> list[Variable]:
    """Read the variables of a .env file, which need not exist. Values are literal: `$` has no meaning.

    Raises:
        SettingsError: the file cannot be read, or a line in it.
    """
    if not file.exists():
        return []
    found: dict[str, Variable] = {}
    for binding in parse_stream(io.StringIO(read_text(file, missing="create it"))):
        where = f"{file}:{binding.original.line}"
        if binding.error:
            raise SettingsError(f"{where}: this line is not NAME=value; correct it, or begin it with #")
        path = path_of(binding.key or "")
        if binding.key is None or path is None:
            continue
        if binding.value is None:
            raise SettingsError(f"{where}: {variable(path)} has no value; write {variable(path)}=…")
        # As in a shell, the last of several lines holds.
        found[binding.key] = Variable(path, binding.key, binding.value, f"{where}: {variable(path)}")
    return list(found.values())


def lay_over(draft: ConfigDraft, variables: Iterable[Variable]) -> list[Problem]:
    """Put `variables` over what the draft says, those for whole sections first. Gives those that name no key."""
    problems: list[Problem] = []
    names: dict[tuple[str, ...], str] = {}
    for each in sorted(variables, key=lambda each: len(each.path)):
        key = find(each.path)
        if key is None:
            problems.append(unknown(each.path, each.origin, as_variable=True))
        elif each.path in names:
            text = f"{dotted(each.path)} is set twice, in names that differ only in case; keep one of the two"
            problems.append(Problem(each.origin, dotted(each.path), text))
        else:
            names[each.path] = each.name
            draft.put(each.path, _value(key, each.text), each.origin)
    return problems


def path_of(name: str) -> tuple[str, ...] | None:
    """The key that a variable of this name sets; None: it is somebody else's."""
    lower = name.lower()
    return tuple(lower.removeprefix(PREFIX).split("__")) if lower.startswith(PREFIX) else None


def _value(key: SettingKey, text: str) -> Any:
    """JSON where the key takes no text; what is not JSON stays text, for the models to refuse."""
    if key.as_text:
        return text
    try:
        return json.loads(text, object_pairs_hook=_mapping)
    except (ValueError, RecursionError):
        return text


def _mapping(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a name occurs twice")
    return mapping


def load(
    path: Path,
    environ: Mapping[str, str] | None = None,
    *,
    answers: Mapping[tuple[str, ...], object] | None = None,
    setting_up: bool = False,
) -> Settings:
    """The configuration in `path` and around it, checked, with absolute paths.

    `environ` takes the place of the process's environment; `answers`, by the paths of their keys, win over everything.
    `setting_up`: a model that has only been begun counts as none, as somebody is about to be asked for the rest.

    Raises:
        SettingsError: something is missing or wrong.
    """
    draft, problems = _laid_over(path, environ)
    for each, value in (answers or {}).items():
        draft.put(each, value, "this answer")
    answered = any(each[: len(MODEL)] == MODEL for each in answers or {})
    if setting_up and not answered and _begun(draft):
        draft.put(MODEL, None, draft.where(MODEL))
    settings = None
    try:
        settings = Settings.model_validate(draft.values).placed(path.absolute().parent)
    except ValidationError as error:
        problems += complaints(error, draft.where)
    else:
        problems += [*dashboard_problems(settings, draft.where), *overlapping_paths(settings, draft.where)]
    # Raised out here, so that it does not carry Pydantic's error, which holds every value.
    if settings is None or problems:
        raise SettingsError(summary(problems))
    return settings


def begun_model(path: Path) -> dict[str, str]:
    """The texts that are set of the model that answers, by name, where one that it takes is missing; else nothing.

    Raises:
        SettingsError: a file cannot be read.
    """
    return _begun(_laid_over(path, None)[0])


def _laid_over(path: Path, environ: Mapping[str, str] | None) -> tuple[ConfigDraft, list[Problem]]:
    draft = drafted(path)
    problems = lay_over(draft, from_dotenv(path.with_name(".env")))
    problems += lay_over(draft, from_environment(os.environ if environ is None else environ))
    return draft, problems


def _begun(draft: ConfigDraft) -> dict[str, str]:
    model = draft.at(MODEL)
    if not isinstance(model, dict):
        return {}
    said = cast("dict[object, object]", model)
    fields = LLMSettings.model_fields
    if not any(field.is_required() and name not in said for name, field in fields.items()):
        return {}
    return {name: value for name in fields if isinstance(value := said.get(name), str)}


PLACEHOLDER = "REPLACE_ME"


def usable_token(settings: Settings) -> str:
    """The token to log in with.

    Raises:
        SettingsError: it is missing, a placeholder, or no token by its form.
    """
    token = settings.discord.token.get_secret_value()
    remedy = "copy the bot's token from Discord's developer portal into .env as APP__DISCORD__TOKEN=…"
    if not token or PLACEHOLDER in token:
        raise SettingsError(f"discord.token is not set: {remedy}")
    if not fits_header(token):
        raise SettingsError(f"discord.token holds blanks or letters that no token has: {remedy}")
    return token


KeyPath = tuple[str, ...]
WIDTH = 110
INDENT = "  "
_BREAKS = {ord(each): f"\\u{ord(each):04x}" for each in "\x85\u2028\u2029"}
"""Line breaks to YAML, and letters to JSON."""
NOT_READ = (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What PyYAML raises for text that it cannot read."""


def with_values(text: str, changes: Mapping[KeyPath, object]) -> str:
    """A YAML file that says what `text` says, and `changes` by the paths of their keys. Each new key gets a comment.

    `text` is a mapping of sections, or empty. What is written in a way that cannot be edited in place (a mapping in
    braces, an alias) is written anew.
    """
    for path, value in changes.items():
        wanted = _with(yaml.safe_load(text), path, value)
        edited = _edited(text, path, wanted)
        # PyYAML reads back some line breaks of Unicode otherwise than it writes them.
        escaped = yaml.safe_dump(wanted, sort_keys=False)
        ways = (edited, yaml.safe_dump(wanted, sort_keys=False, allow_unicode=True))
        text = next((each for each in ways if _says(each, wanted)), escaped)
    return text


def with_variables(text: str, changes: Mapping[KeyPath, str | None]) -> str:
    """A .env file that says what `text` says, and `changes`. None: nothing at or below this path is set any more."""
    pieces: list[str] = []
    left = {path: value for path, value in changes.items() if value is not None}
    for binding in parse_stream(io.StringIO(text)):
        path, whole = path_of(binding.key or ""), binding.original.string
        if path is None or not (path in changes or _taken_away(path, changes)):
            pieces.append(whole)
        elif path in left:
            before = whole[: len(whole) - len(whole.lstrip())]
            pieces.append(before + _assigned(path, left.pop(path)))
    kept = "".join(pieces)
    if left and kept and not kept.endswith("\n"):
        kept += "\n"
    return kept + "".join(_assigned(path, value) for path, value in left.items())


def _taken_away(path: KeyPath, changes: Mapping[KeyPath, str | None]) -> bool:
    return any(value is None and path[: len(each)] == each for each, value in changes.items())


def _assigned(path: KeyPath, value: str) -> str:
    bare = value and value[0] not in "'\"" and value.isprintable() and not any(letter.isspace() for letter in value)
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    written = value if bare else f"'{escaped}'"
    return f"{variable(path)}={written}\n"


def _with(values: Any, path: KeyPath, value: object) -> Any:
    """A copy of `values` with `value` at `path`."""
    if not path:
        return value
    mapping = copy.deepcopy(cast("dict[Any, Any]", values)) if isinstance(values, dict) else {}
    name = next((key for key in mapping if str(key) == path[0]), path[0])
    mapping[name] = _with(mapping.get(name), path[1:], value)
    return mapping


def _says(text: str, wanted: object) -> bool:
    try:
        return bool(yaml.safe_load(text) == wanted)
    except NOT_READ:
        return False


def _edited(text: str, path: KeyPath, wanted: Any) -> str:
    """Edit the lines of one key in place. The result is valid only where the key stands in lines of its own; the
    caller checks it.
    """
    root: yaml.Node | None = yaml.SafeLoader(text).get_single_node()
    at, depth = root, 0
    while isinstance(at, yaml.MappingNode) and at.value:
        entry = next(((name, value) for name, value in at.value if name.value == path[depth]), None)
        if entry is None:
            last = at.value[-1][1]
            indent = " " * at.value[0][0].start_mark.column
            return _inserted(text, _end(text, last), "\n".join(_lines(path[: depth + 1], wanted, indent)))
        name, at = entry
        depth += 1
        if depth == len(path) or not isinstance(at, yaml.MappingNode) or at.flow_style or not at.value:
            lines = "\n".join(_lines(path[:depth], wanted, " " * name.start_mark.column, comment=False)).lstrip()
            return text[: name.start_mark.index] + lines + text[_end(text, at) :]
    return _inserted(text, len(text), "\n".join(_lines(path[:1], wanted, "")))


def _inserted(text: str, after: int, lines: str) -> str:
    """`lines` below the line that holds the position `after`."""
    line_end = text.find("\n", after)
    if line_end < 0:
        return f"{text}\n{lines}\n" if text and not text.endswith("\n") else f"{text}{lines}\n"
    return f"{text[: line_end + 1]}{lines}\n{text[line_end + 1 :]}"


def _end(text: str, node: yaml.Node) -> int:
    """Give the position where a value ends, without the comments that PyYAML counts to it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last: Any = node.value[-1]
        return _end(text, last[1] if isinstance(node, yaml.MappingNode) else last)
    return len(text[: node.end_mark.index].rstrip("\n"))


def _lines(path: KeyPath, wanted: Any, indent: str, *, comment: bool = True) -> Iterator[str]:
    """The lines of the key at `path`, with what is `wanted` there."""
    value: Any = wanted
    for word in path:
        value = next(below for name, below in value.items() if str(name) == word)
    key = find(path)
    if comment and key is not None and (key.section is None or key.nullable):
        yield from (f"{indent}# {line}" for line in textwrap.wrap(key.description, WIDTH))
    below = cast("dict[object, object]", value) if isinstance(value, dict) else {}
    if not below:
        yield f"{indent}{path[-1]}: {json.dumps(value, ensure_ascii=False, default=str).translate(_BREAKS)}"
        return
    yield f"{indent}{path[-1]}:"
    for name in below:
        yield from _lines((*path, str(name)), wanted, indent + INDENT)
