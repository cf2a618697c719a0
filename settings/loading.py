"""The configuration files: read, merged with the environment, and checked as a whole."""

from __future__ import annotations

import io
import ipaddress
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml
from dotenv.parser import parse_stream
from pydantic import ValidationError
from yaml.composer import Composer

from settings.errors import (
    VARIABLE_ORIGIN,
    Problem,
    SettingKey,
    SettingMissing,
    SettingsError,
    Where,
    all_keys,
    dotted,
    find_key,
    problems_of,
    summarise,
    unknown_key,
    variable_name,
)
from settings.kinds import fits_in_header
from settings.sections import LLMSettings, Settings

MAX_DEPTH = 8
"""More names than the path of any key has: aliases in YAML can make endless mappings."""


@dataclass(slots=True)
class ConfigDraft:
    """The unchecked values of one configuration file, or of several merged ones, with their origins."""

    file: str  # the configuration file, as the operator named it
    values: dict[Any, Any] = field(default_factory=dict[Any, Any])
    origins: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """File and line, or environment variable, by path."""

    def where(self, path: Sequence[object]) -> str:
        """Return the file and line of the value at `path`, or of the nearest section around it."""
        words = tuple(map(str, path))
        while words and words not in self.origins:
            words = words[:-1]
        return self.origins.get(words, self.file)

    def put(self, path: Sequence[str], value: object, origin: str) -> None:
        """Set the value at `path`, and make missing mappings above it.

        If a value above it is no mapping, nothing is set, and the models will refuse that value.
        """
        words = tuple(path)
        at = self.values
        for depth, word in enumerate(words[:-1], start=1):
            name = find_name(at, word)
            below: object = at.get(name)
            if below is None or _is_shorthand(words[:depth], below):
                below = None
                self.origins[words[:depth]] = origin
            elif not isinstance(below, dict):
                return
            # A copy: YAML lets two keys share one mapping.
            at[name] = dict(cast("dict[Any, Any]", below)) if below else {}
            at = at[name]
        at[find_name(at, words[-1])] = value
        for old in [known for known in self.origins if known[: len(words)] == words]:
            del self.origins[old]
        self.origins[words] = origin

    def merge(self, other: ConfigDraft, path: tuple[str, ...] = ()) -> None:
        """Override values with those of `other` at `path`, key by key; values other than mappings as a whole."""
        overriding: Mapping[Any, Any] = value_at(other.values, path)
        for name, value in overriding.items():
            words = (*path, str(name))
            if value is None and _is_section(words):
                continue  # it has only comments
            if len(words) < MAX_DEPTH and all(isinstance(value_at(each.values, words), dict) for each in (self, other)):
                self.merge(other, words)
                continue
            self.put(words, value, other.where(words))
            self.origins |= {known: where for known, where in other.origins.items() if known[: len(words)] == words}


def value_at(values: Any, path: Sequence[str]) -> Any:
    """Return the value at `path`; None if it is not set."""
    for word in path:
        if not isinstance(values, dict):
            return None
        mapping = cast("dict[Any, Any]", values)
        values = mapping.get(find_name(mapping, word))
    return values


def _is_section(path: tuple[str, ...]) -> bool:
    key = find_key(path)
    return key is not None and key.section is not None and not key.nullable


def _is_shorthand(path: tuple[str, ...], value: object) -> bool:
    """Return True if a word replaces a mapping, as in `search.embeddings: packaged`."""
    key = find_key(path)
    return isinstance(value, str) and key is not None and key.section is not None and key.nullable


def find_name(mapping: dict[Any, Any], word: str) -> Any:
    """Return the key of `mapping` whose text is `word`: YAML makes numbers of ids."""
    return next((key for key in mapping if str(key) == word), word)


YAML_ERRORS = (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""The errors of PyYAML about text that it cannot read: other ones than its own for `!!bool x`, `!!int ""` and
`!!timestamp x`.
"""

_Loaders = tuple[Callable[[str], Any], ...]


def _loaders() -> _Loaders:
    """Return the loaders in the order of trying: what a faster one refuses is left to the last, whose errors
    `_describe_yaml_error` knows.
    """
    if not yaml.__with_libyaml__:
        return (yaml.SafeLoader,)

    class FastLoader(Composer, yaml.CSafeLoader):
        """The parser in C, which is ten times faster, and the composer in Python: that in C recurses without limit, and
        many brackets end the process.
        """

        def __init__(self, text: str) -> None:
            yaml.CSafeLoader.__init__(self, text)
            Composer.__init__(self)

    return FastLoader, yaml.SafeLoader


_LOADERS = _loaders()
_READ_DIFFERENTLY = re.compile(r"[\t\ufeff]|[?!](?:\s|$)|[|>][^\s|>#]*#", re.MULTILINE)
"""The C parser takes some of these for something else, or for no error."""

MERGE_TAG = "tag:yaml.org,2002:merge"
YAML_REMEDY = "check indentation and colons, and put quotes around text with special signs"


def read_yaml(
    path: Path, *, option: str = "--config", top: str = "discord", scalars_as_text: bool = False
) -> ConfigDraft:
    """Read a YAML file, unchecked. `option`: of the command line, which names the file; `top`: a valid name of its top
    level, for errors; `scalars_as_text`: read all scalars as texts, such as `yes` or `1.10`.

    Raises:
        SettingsError: the file is missing, unreadable, not YAML, no mapping, or has a key twice.
    """
    text = read_text(path, missing=f"create it, go to its folder, or name another with {option} FILE")
    draft = ConfigDraft(str(path))
    values: object = None
    loaders: _Loaders = (
        (yaml.BaseLoader,) if scalars_as_text else _LOADERS[-1:] if _READ_DIFFERENTLY.search(text) else _LOADERS
    )
    for loader_class in loaders:
        draft.origins.clear()
        try:
            loader: Any = loader_class(text)
            node: yaml.Node | None = loader.get_single_node()
            if node is None:
                return draft
            _record_lines(node, (), draft, set())
            values = loader.construct_document(node)
            break
        except YAML_ERRORS as error:
            # The original error is not chained, as it quotes the line.
            if loader_class is loaders[-1]:
                raise SettingsError(_describe_yaml_error(path, error)) from None
    if values is None:
        return draft
    if not isinstance(values, dict):
        raise SettingsError(f"{path}: the top level must be a mapping of sections, such as `{top}:`")
    draft.values = cast("dict[Any, Any]", values)
    return draft


def read_text(path: Path, *, missing: str) -> str:
    """Read a UTF-8 file. `missing`: the remedy if it does not exist.

    Raises:
        SettingsError: the file is missing or unreadable.
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


def _record_lines(node: yaml.Node, path: tuple[str, ...], draft: ConfigDraft, seen: set[int]) -> None:
    """Record the line of each key and item in `draft`. Raises SettingsError: a key occurs twice."""
    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            draft.origins[*path, str(number)] = f"{draft.file}:{item.start_mark.line + 1}"
            _record_lines(item, (*path, str(number)), draft, seen)
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    for name, value in node.value:
        line = name.start_mark.line + 1
        if isinstance(name, yaml.ScalarNode) and name.tag != MERGE_TAG:
            word: str = name.value
            if word in lines:
                key = dotted((*path, word))
                raise SettingsError(
                    f"{draft.file}:{line}: {key} stands here again, after line {lines[word]}; keep one of the two"
                )
            lines[word] = line
            draft.origins[*path, word] = f"{draft.file}:{line}"
            _record_lines(value, (*path, word), draft, seen)


def _describe_yaml_error(path: Path, error: Exception) -> str:
    """Return the line about a file that is not YAML, without quoting from the file."""
    where, what = str(path), "not valid YAML"
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        if mark is not None:
            where = f"{path}:{mark.line + 1}:{mark.column + 1}"
        # The parser quotes the text that it found, which may be part of a secret.
        problem = (error.problem or "").split("'")[0].split('"')[0].removesuffix("but found ").strip(" ,")
        if "'\\t'" in (error.problem or ""):
            return f"{where}: {what} (a tab stands here); indent with blanks"
        # A single word explains nothing: the context explains more.
        reason = problem if " " in problem else error.context
        what = f"{what} ({reason})" if reason else what
    return f"{where}: {what}; {YAML_REMEDY}"


def local_file(path: Path) -> Path:
    """Return the path of the operator's own file: config.local.yaml beside config.yaml."""
    return path.with_name(f"{path.stem}.local{path.suffix}")


def config_files(path: Path) -> list[Path]:
    """Return the files of a configuration in the order of reading; only the first must exist."""
    return [path, local_file(path), path.with_name(".env")]


_RECORDS = ("state", "team-knowledge", "evidence", "runbooks", "documents", "llm-recordings")
"""The folders below a data folder that contain messages of people."""


def problems_between_keys(settings: Settings, where: Where) -> Iterator[Problem]:
    """Report the keys that do not go together. `settings`: with resolved paths; `where`: gives the line of a key."""
    yield from _dashboard_problems(settings, where)
    yield from _shared_path_problems(settings, where)
    yield from _record_problems(settings, where)
    yield from _approval_problems(settings, where)


def _problem(path: tuple[str, ...], text: str, where: Where) -> Problem:
    return Problem(where(path), dotted(path), text)


def _section_of(guild_id: int | None) -> tuple[str, ...]:
    """Return the path of the keys of a server; empty: those of all servers without their own."""
    return () if guild_id is None else ("guilds", str(guild_id))


class _OwnedPath(NamedTuple):
    """A path of knowledge. `key`: the setting; `path`: with symlinks followed; `name`: for the operator."""

    key: tuple[str, ...]
    path: str
    name: str


def _shared_path_problems(settings: Settings, where: Where) -> Iterator[Problem]:
    """Report overlapping paths of two servers, as knowledge of both would be used in both."""
    servers = [_owned_paths(server, guild_id) for guild_id, server in settings.servers.items()]
    for ones, others in itertools.combinations(servers, 2):
        pairs = itertools.product(ones, others)
        pair = next((pair for pair in pairs if _overlap(pair[0].path, pair[1].path)), None)
        if pair is not None:
            # The longest key is the nearest to the one that the operator wrote for a server.
            first, second = sorted(pair, key=lambda owned: -len(owned.key))
            text = f"{first.name} must lie apart from {second.name}: what is in both would be told in both"
            yield _problem(first.key, f"{text}; name another place", where)


def _owned_paths(settings: Settings, guild_id: int | None) -> list[_OwnedPath]:
    kb, section, paths = settings.kb, _section_of(guild_id), list[_OwnedPath]()
    if guild_id is not None:
        folder = settings.app.data_dir
        name = f"{folder.parent.name}/{folder.name} below app.data_dir"
        paths.append(_OwnedPath(section, os.path.realpath(folder), name))
    named = [("sources_dir", folder) for folder in kb.document_folders]
    for name, path in (*named, ("links_file_path", kb.links_file_path)):
        key = (*section, "kb", name)
        paths.append(_OwnedPath(key, os.path.realpath(path), dotted(key)))
    return paths


def _record_problems(settings: Settings, where: Where) -> Iterator[Problem]:
    """Report each folder of documents that contains, or lies in, records of people."""
    servers = settings.servers
    paths = [path for each in servers.values() for path in (each.kb.team_raw_dir, each.kb.team_topics_dir)]
    paths += [each.app.data_dir / name for each in servers.values() for name in _RECORDS]
    records = list(map(os.path.realpath, paths))
    for guild_id, server in servers.items():
        key = (*_section_of(guild_id), "kb", "sources_dir")
        documents = list(map(os.path.realpath, server.kb.document_folders))
        record = next((path for path in records for each in documents if _overlap(each, path)), None)
        if record is not None:
            text = f"{dotted(key)} must lie apart from {record}: what people wrote would be told as documentation"
            yield _problem(key, f"{text}; name another place", where)


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other.removesuffix('/')}/") or f"{other}/".startswith(f"{one.removesuffix('/')}/")


def _dashboard_problems(settings: Settings, where: Where) -> Iterator[Problem]:
    """Report a dashboard that nobody could open, or everybody, or two in one name."""
    host, owners = settings.metrics.host, dict[str, str]()
    tokens = {"token": settings.dashboard.token}
    tokens |= {f"operators.{name}.token": each.token for name, each in settings.dashboard.operators.items()}
    for key, token in tokens.items():
        first = owners.setdefault(token.get_secret_value(), key)
        if first != key:
            text = f"dashboard.{key} is the same as dashboard.{first}: give each a token of its own"
            yield _problem(("dashboard", *key.split(".")), text, where)
    if not settings.dashboard.enabled:
        return
    if not settings.metrics.port:
        text = "dashboard.enabled is true, but metrics.port is 0: set metrics.port, such as 9090, which serves both"
        yield _problem(("dashboard", "enabled"), text, where)
    elif not _is_loopback(host) and not settings.dashboard.has_login:
        remedy = "set dashboard.token, or metrics.host to 127.0.0.1"
        text = f"metrics.host is {host}, where others reach the dashboard: {remedy}"
        yield Problem(where(("metrics", "host")), "dashboard.token", text)


def _approval_problems(settings: Settings, where: Where) -> Iterator[Problem]:
    """Report answers that would wait for approval where nobody is shown them."""
    for guild_id, server in settings.servers.items():
        section = _section_of(guild_id)
        modes = {(*section, "ai_response", "approval"): server.ai_response.approval}
        for channel_id, channel in server.discord.channels.items():
            modes[(*section, "discord", "channels", str(channel_id), "approval")] = channel.approval or "off"
        on = next((path for path, mode in modes.items() if mode != "off"), None)
        # Where another team decides nobody could press a button, or should read what was asked here.
        entry = settings.guilds.get(guild_id) if guild_id is not None and settings.has_own_team(guild_id) else None
        review_id = server.discord.review_channel_id if entry is None else entry.discord.review_channel_id
        if on is not None and review_id is None:
            key = dotted((*section, "discord", "review_channel_id"))
            team = "the team" if entry is None else "the team of this server"
            text = f"{dotted(on)} is {modes[on]}, but {key} is not set: set it to the channel in which {team} decides"
            yield Problem(where(on), key, text)
            return


def _is_loopback(host: str) -> bool:
    """Return True if only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


VARIABLE_PREFIX = "app__"


@dataclass(frozen=True, slots=True)
class Variable:
    path: tuple[str, ...]
    name: str
    text: str
    origin: str


def read_environment(environ: Mapping[str, str]) -> list[Variable]:
    """Return the environment variables that set a key, sorted by name."""
    return [
        Variable(path, name, text, f"{VARIABLE_ORIGIN}{_shown(name, path)}")
        for name, text in sorted(environ.items())
        if (path := path_of(name)) is not None
    ]


def names_of_variables(environ: Mapping[str, str]) -> list[str]:
    """Return the names of the environment variables that set a key."""
    return [variable_name(each.path) for each in read_environment(environ)]


def read_dotenv(file: Path) -> list[Variable]:
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
            raise SettingsError(f"{where}: {variable_name(path)} has no value; write {variable_name(path)}=…")
        # As in a shell, the last of several lines counts.
        found[binding.key] = Variable(path, binding.key, binding.value, f"{where}: {_shown(binding.key, path)}")
    return list(found.values())


def apply_variables(draft: ConfigDraft, variables: Iterable[Variable]) -> list[Problem]:
    """Override values of the draft with variables, those for whole sections first. Returns problems of variables."""
    problems: list[Problem] = []
    names: dict[tuple[str, ...], str] = {}
    for each in sorted(variables, key=lambda each: len(each.path)):
        key = find_key(each.path)
        if key is None:
            problems.append(unknown_key(each.path, each.origin, as_variable=True))
        elif each.path in names:
            text = f"{dotted(each.path)} is set twice, in names that differ only in case; keep one of the two"
            problems.append(Problem(each.origin, dotted(each.path), text))
        elif key.secret and not each.text.strip() and value_at(draft.values, each.path):
            # Compose and systemd make this of a variable that is not set: without its token, the dashboard is open.
            text = f"it is empty, and {draft.where(each.path)} has a value: unset one of the two"
            problems.append(Problem(each.origin, dotted(each.path), text))
        else:
            names[each.path] = each.name
            draft.put(each.path, _parse_variable(key, each.text), each.origin)
    return problems


def path_of(name: str) -> tuple[str, ...] | None:
    """Return the path of the key that a variable sets; None: it is no variable of this program. `APP_DISCORD__TOKEN`
    lacks an underscore and would set nothing: it has a path that is no key, so that it is refused.
    """
    lower = name.lower()
    if lower.startswith(VARIABLE_PREFIX):
        return tuple(lower.removeprefix(VARIABLE_PREFIX).split("__"))
    first, *rest = lower.removeprefix("app_").split("__")
    return (f"app_{first}", *rest) if rest and lower.startswith("app_") and find_key((first, *rest)) else None


def _shown(name: str, path: tuple[str, ...]) -> str:
    full = variable_name(path)
    return full if name.lower().startswith(VARIABLE_PREFIX) else full.removeprefix(VARIABLE_PREFIX.upper())


def _parse_variable(key: SettingKey, text: str) -> Any:
    """Parse JSON unless the key takes text; a text that is not JSON is returned, for the models to refuse."""
    if key.is_text:
        return text
    try:
        return json.loads(text, object_pairs_hook=_unique_names)
    except (ValueError, RecursionError):
        return text


def _unique_names(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
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
    """Load the configuration in `path` and the files beside it, checked, with absolute paths.

    `environ`: replaces the environment of the process; `answers`: values by the paths of their keys, which override all
    others; `setting_up`: an incomplete model counts as none, as the operator is about to be told, or asked for it.

    Raises:
        SettingsError: something is missing or wrong.
    """
    draft, problems = _read_all(path, environ)
    for each, value in (answers or {}).items():
        draft.put(each, value, "this answer")
    for model in _partial_models(draft) if setting_up else ():
        if not any(each[: len(model)] == model for each in answers or {}):
            draft.put(model, None, draft.where(model))
    settings = None
    try:
        settings = Settings.model_validate(draft.values).resolve_paths(path.absolute().parent)
    except ValidationError as error:
        problems += problems_of(error, draft.where)
    else:
        problems += problems_between_keys(settings, draft.where)
    # Raised outside of the handler, so that Pydantic's error, which contains all values, is not chained.
    if settings is None or problems:
        raise SettingsError(summarise(problems))
    return settings


def partial_models(path: Path) -> dict[str, dict[str, str]]:
    """Return the incomplete models by their key, such as `kb.llm`, each with the texts that are set.

    Raises:
        SettingsError: a file cannot be read.
    """
    return {dotted(key): values for key, values in _partial_models(_read_all(path, None)[0]).items()}


def _read_all(path: Path, environ: Mapping[str, str] | None) -> tuple[ConfigDraft, list[Problem]]:
    draft, local = read_yaml(path), local_file(path)
    if os.path.lexists(local):
        draft.merge(read_yaml(local))
    problems = apply_variables(draft, read_dotenv(path.with_name(".env")))
    problems += apply_variables(draft, read_environment(os.environ if environ is None else environ))
    return draft, problems


def _partial_models(draft: ConfigDraft) -> dict[tuple[str, ...], dict[str, str]]:
    models = [key.path for key in all_keys() if key.section is LLMSettings]
    return {path: values for path in models if (values := _partial_model(value_at(draft.values, path)))}


def _partial_model(model: object) -> dict[str, str]:
    if not isinstance(model, dict):
        return {}
    values = cast("dict[object, object]", model)
    fields = LLMSettings.model_fields
    if not any(field.is_required() and name not in values for name, field in fields.items()):
        return {}
    return {name: value for name in fields if isinstance(value := values.get(name), str)}


PLACEHOLDER = "REPLACE_ME"


def discord_token(settings: Settings) -> str:
    """Return the bot's token.

    Raises:
        SettingMissing: it is missing, or a placeholder.
        SettingsError: it has not the form of a token.
    """
    token = settings.discord.token.get_secret_value()
    remedy = "copy the bot's token from Discord's developer portal into .env as APP__DISCORD__TOKEN=…"
    if not token or PLACEHOLDER in token:
        raise SettingMissing(f"discord.token is not set: {remedy}")
    if not fits_in_header(token):
        raise SettingsError(f"discord.token holds blanks or letters that no token has: {remedy}")
    return token
