"""The types of configuration values, each with the words that describe it to an operator."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, Strict, model_validator

from model.messages import is_snowflake
from model.permissions import OWNER, TERMINAL
from model.source_ids import topic_in

T = TypeVar("T")

MAX_TOPIC_BYTES = 64
EMBEDDED = "embedded"  # the store of documents that needs no server
QA_ID = re.compile(r"qa_(\d{8}_\d{6})(?:\.\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ValueHelp:
    """The words that complete "must be …" in errors, and describe the type in the reference. Numbers and choices
    without them are described by their bounds or values (`settings.errors`).
    """

    kind: str
    is_text: bool = False  # an environment variable is used as it is, even if it looks like a number or a list


@dataclass(frozen=True, slots=True)
class BelowDataDir:
    """Marks a path that lies below `app.data_dir` unless it is set. Its default begins with the default of that key."""

    is_learned: bool  # a path of knowledge that the bot learns, which a rehearsal keeps in a separate folder


@dataclass(frozen=True, slots=True)
class TaskOf:
    """Marks a key that holds the operator's task for the model at a step of `model.steps.STEPS`."""

    step: str


def null_as_empty(given: Any) -> Any:
    """Replace null by an empty mapping: YAML reads a mapping that has only comments as null."""
    return {} if given is None else given


class SettingsSection(BaseModel):
    """A section of the configuration: no unknown keys, no changes after loading, no values in error texts."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        str_strip_whitespace=True,
        allow_inf_nan=False,
        defer_build=True,  # importing stays quick: only used models are built, and once
    )

    @model_validator(mode="before")
    @classmethod
    def _null_as_empty(cls, given: Any) -> Any:
        return null_as_empty(given)

    @classmethod
    def task_keys(cls) -> dict[str, str]:
        """Return the keys of the operator's tasks, by step."""
        marks = ((mark, name) for name, field in cls.model_fields.items() for mark in field.metadata)
        return {mark.step: name for mark, name in marks if isinstance(mark, TaskOf)}

    @property
    def tasks(self) -> dict[str, str]:
        """The operator's tasks, by step."""
        return {step: getattr(self, name) for step, name in self.task_keys().items()}


S = TypeVar("S", bound=SettingsSection)


def setting(default: T, description: str) -> T:
    """Define a key that may be left out."""
    return Field(default=default, description=description)


def replacement(key: str, where: str = "server") -> None:
    """Define a key that replaces `key` in one server or channel; null: it does not."""
    return setting(None, f"Replaces {key} in this {where}.")


def section(model: type[S]) -> S:
    """Define a section that may be left out; its description is the model's docstring."""
    return Field(default_factory=model, description=(model.__doc__ or "").strip())


def _snowflake(given: Any) -> int:
    if isinstance(given, str):
        digits = given.strip()
        given = int(digits) if is_snowflake(digits) else None
    if not isinstance(given, int) or isinstance(given, bool) or not 0 < given < 2**64:
        raise ValueError("not a Discord id")
    return given


def _path(given: Any) -> Path:
    if isinstance(given, str) and given.strip():
        return Path(given.strip())
    if isinstance(given, Path):
        return given
    raise ValueError("not a path")


def _path_or_none(given: Any) -> Path | None:
    return None if given is None or given == "" else _path(given)


def _url(given: Any) -> str:
    """Return an http(s) URL without a slash at its end. Credentials in it are refused, as URLs are logged."""
    if not isinstance(given, str):
        raise ValueError("not text")  # noqa: TRY004 (Pydantic reports a ValueError and lets a TypeError through)
    url = given.strip()
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise ValueError("not a URL")
    if any(letter.isspace() for letter in url) or parts.port == 0:
        raise ValueError("not a URL")
    _check_host(parts.hostname)
    return url.rstrip("/")


def _check_host(name: str) -> None:
    """Raise ValueError if a host can have no address by the form of its name: a request to it would raise that."""
    if name.isascii():
        name.encode("idna")
    else:
        import idna  # noqa: PLC0415 (it takes longer than all of the loading, and few names need it)

        idna.encode(name)


def _relative(given: Any) -> str:
    """Return a relative path or glob that stays below its folder."""
    if not isinstance(given, str):
        raise ValueError("not text")  # noqa: TRY004 (as above)
    path = given.strip().replace("\\", "/").removeprefix("./")
    if not path or path.startswith(("/", "~")) or ".." in path.split("/") or path[1:2] == ":" or not path.isprintable():
        raise ValueError("not below the folder")
    return path


def _folder(given: Any) -> str:
    path = _relative(given).strip("/")
    if path in {"", "."}:
        raise ValueError("not a folder below the folder")
    return path


def _addresses(given: Any) -> str | dict[str, str]:
    """Check where documents are published: nowhere (empty), below one URL, or below one URL per folder."""
    if isinstance(given, Mapping):
        addresses = cast("Mapping[Any, Any]", given)
        return {_relative(folder).strip("/"): _url(url) for folder, url in addresses.items()}
    return "" if given == "" else _url(given)


def _refuse_bytes(given: Any) -> Any:
    # YAML's !!binary, which Pydantic would decode.
    if isinstance(given, bytes):
        raise ValueError("not text")  # noqa: TRY004 (as above)
    return given


def _topic(given: Any) -> str:
    """Normalise the name of a topic as `services.knowledge.topic_files` does."""
    if not isinstance(given, str):
        raise ValueError("not text")  # noqa: TRY004 (as above)
    name = topic_in(unicodedata.normalize("NFKC", given.strip().lower()))
    if not all(word.isalnum() for word in name.split("-")) or len(name.encode()) > MAX_TOPIC_BYTES:
        raise ValueError("not the name of a topic")
    return name


def _qa_id_or_empty(given: str) -> str:
    if given:
        found = QA_ID.fullmatch(given)
        if found is None:
            raise ValueError("not an id of a pair")
        datetime.strptime(f"{found[1]}+0000", "%Y%m%d_%H%M%S%z")  # a ValueError if there is no such time
    return given


def _refuse_bad_address(secret: SecretStr) -> SecretStr:
    """Check the address of a webhook, which is a secret: who knows it can post there."""
    if address := secret.get_secret_value():
        _url(address)
    return secret


def _lower(given: Any) -> Any:
    return given.lower() if isinstance(given, str) else given


def fits_in_header(word: str) -> bool:
    """Return True if a key can be sent in an HTTP header. Other keys would cause an error that may quote them."""
    return word.isascii() and word.isprintable() and " " not in word


def _refuse_unsendable(secret: SecretStr) -> SecretStr:
    if not fits_in_header(secret.get_secret_value()):
        raise ValueError("not a key")
    return secret


MIN_TOKEN_CHARS = 16


OPERATOR_NAME = re.compile("(?!.*__)[a-z][a-z0-9_]*(?<!_)")
MAX_NAME_CHARS = 32
TAKEN_NAMES = {OWNER.name, TERMINAL}
"""In the audit log, these are not people with a token of their own."""


def _operator_name(given: Any) -> str:
    """Check a name that can be a part of a variable's name."""
    is_name = isinstance(given, str) and len(given) <= MAX_NAME_CHARS and OPERATOR_NAME.fullmatch(given) is not None
    if not is_name or given in TAKEN_NAMES:
        raise ValueError("not a name")
    return given


def _refuse_short_token(secret: SecretStr) -> SecretStr:
    """Check a token that is chosen by the operator, and sent in a header."""
    word = secret.get_secret_value()
    if word and (len(word) < MIN_TOKEN_CHARS or not fits_in_header(word)):
        raise ValueError("easy to guess")
    return secret


Flag = Annotated[bool, Strict(), ValueHelp("true or false")]
Seconds = Annotated[float, Field(gt=0, strict=True), ValueHelp("a number of seconds above 0")]
Minutes = Annotated[float, Field(gt=0, strict=True), ValueHelp("a number of minutes above 0")]
Hours = Annotated[float, Field(gt=0, strict=True), ValueHelp("a number of hours above 0")]
Rate = Annotated[float, Field(gt=0, strict=True)]
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Weight = Annotated[float, Field(ge=0, strict=True)]

Count = Annotated[int, Field(ge=1, strict=True)]
CountOrZero = Annotated[int, Field(ge=0, strict=True)]
Port = Annotated[int, Field(ge=0, le=65535, strict=True), ValueHelp("a port from 1 to 65535, or 0 for off")]

Text = Annotated[str, BeforeValidator(_refuse_bytes), ValueHelp("text, which may be empty", is_text=True)]
NonEmpty = Annotated[
    str, Field(min_length=1), BeforeValidator(_refuse_bytes), ValueHelp("text that is not empty", is_text=True)
]
_LowerCase = Annotated[str, Field(min_length=1), BeforeValidator(_lower), BeforeValidator(_refuse_bytes)]
Texts = Annotated[tuple[_LowerCase, ...], ValueHelp('a list of texts, such as ["one", "two"]')]


def _host(name: str) -> str:
    """Return the name of a host. Raises ValueError: it has a port or anything else."""
    try:
        ip_address(name)
    except ValueError:
        if any(letter in name for letter in ":/[]@ "):
            raise ValueError("not the name of a host") from None
    return name


Hosts = Annotated[
    tuple[Annotated[_LowerCase, AfterValidator(_host)], ...],
    ValueHelp('a list of names without a port, such as ["mcp.example.com"]'),
]

Globs = Annotated[
    tuple[Annotated[str, BeforeValidator(_relative)], ...],
    ValueHelp('a list of globs below kb.sources_dir, such as ["guides/**", "*.md"]'),
]
Folders = Annotated[
    tuple[Annotated[str, BeforeValidator(_folder)], ...],
    ValueHelp('a list of folders below kb.sources_dir, such as ["docs", "wiki/pages"]'),
]
Addresses = Annotated[
    str | Mapping[str, str],
    BeforeValidator(_addresses),
    ValueHelp("a URL that begins with http:// or https://, a mapping from folders to such URLs, or empty"),
]

QaIdOrEmpty = Annotated[
    str,
    AfterValidator(_qa_id_or_empty),
    ValueHelp("the id of a captured pair, such as qa_20260201_031056.228000, or empty", is_text=True),
]

# Without a help of its own, `Type | None` has the help of the type and "or null".
AddressesOrNone = Annotated[
    Addresses | None,
    ValueHelp("a URL that begins with http:// or https://, a mapping from folders to such URLs, empty, or null"),
]
TextOrNone = Annotated[Text | None, ValueHelp("text, or null", is_text=True)]
LimitOrNull = Annotated[CountOrZero | None, ValueHelp("a whole number, or null")]

TopicNames = Annotated[
    frozenset[Annotated[str, BeforeValidator(_topic)]],
    ValueHelp('a list of topic names as `--kb list` shows them, such as ["pricing", "on-call"]'),
]

Secret = Annotated[SecretStr, BeforeValidator(_refuse_bytes), ValueHelp("text in quotes", is_text=True)]
ApiKey = Annotated[
    SecretStr,
    Field(min_length=1),
    AfterValidator(_refuse_unsendable),
    BeforeValidator(_refuse_bytes),
    ValueHelp("one word of plain letters, digits and signs, in quotes (a server without keys takes any)", is_text=True),
]

LoginToken = Annotated[
    SecretStr,
    AfterValidator(_refuse_short_token),
    BeforeValidator(_refuse_bytes),
    ValueHelp(f"at least {MIN_TOKEN_CHARS} plain letters, digits and signs, in quotes, or empty", is_text=True),
]

OwnToken = Annotated[
    SecretStr,
    Field(min_length=1),
    AfterValidator(_refuse_short_token),
    BeforeValidator(_refuse_bytes),
    ValueHelp(f"at least {MIN_TOKEN_CHARS} plain letters, digits and signs, in quotes", is_text=True),
]
OperatorName = Annotated[str, BeforeValidator(_operator_name)]

WebhookAddress = Annotated[
    SecretStr,
    AfterValidator(_refuse_bad_address),
    BeforeValidator(_refuse_bytes),
    ValueHelp("a URL that begins with http:// or https:// and holds no password, in quotes, or empty", is_text=True),
]

_Id = Annotated[int, BeforeValidator(_snowflake)]
Snowflake = Annotated[_Id, ValueHelp("a Discord id, such as 1458745245675032710")]
Snowflakes = Annotated[frozenset[_Id], ValueHelp("a list of Discord ids, such as [1458745245675032710]")]
SnowflakesOrNone = Annotated[Snowflakes | None, ValueHelp("a list of Discord ids, such as [311], or null")]

ConfigPath = Annotated[Path, BeforeValidator(_path), ValueHelp("a path", is_text=True)]
PathOrNone = Annotated[
    Path | None, BeforeValidator(_path_or_none), ValueHelp("a path, or empty for none", is_text=True)
]
KnowledgePath = Annotated[
    Path, BeforeValidator(_path), BelowDataDir(is_learned=False), ValueHelp("a path", is_text=True)
]
LearnedPath = Annotated[Path, BeforeValidator(_path), BelowDataDir(is_learned=True), ValueHelp("a path", is_text=True)]

Url = Annotated[
    str,
    BeforeValidator(_url),
    ValueHelp("a URL that begins with http:// or https:// and holds no password", is_text=True),
]
Store = Annotated[
    str,
    BeforeValidator(lambda given: given if given == EMBEDDED else _url(given)),
    ValueHelp("`embedded`, or the address of a Chroma server, such as http://127.0.0.1:8000", is_text=True),
]

Level = Annotated[
    Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"],
    BeforeValidator(lambda given: given.upper() if isinstance(given, str) else given),
]
ReplyMode = Annotated[
    Literal["all", "mention", "off"],
    BeforeValidator(lambda given: "off" if given is False else given),  # YAML reads a bare `off` as false
]
WhenUnsure = Literal["silent", "point"]
ReplyLanguage = Literal["question", "en", "de", "es", "fr", "pt", "ru", "zh", "ja"]


LOCAL = "local"
NATS_ADDRESS = re.compile(r"(?:nats|tls|wss?)://[^\s,@]+")


def _transport(given: Any) -> str:
    """Check addresses of NATS servers. Passwords in them are refused: they belong into `nats.credentials_env`."""
    if not isinstance(given, str):
        raise ValueError("not text")  # noqa: TRY004 (as above)
    addresses = [each.strip() for each in given.split(",")]
    if given != LOCAL and not all(map(NATS_ADDRESS.fullmatch, addresses)):
        raise ValueError("no address")
    return ",".join(addresses)


Transport = Annotated[
    str,
    BeforeValidator(_transport),
    ValueHelp("`local`, or addresses of NATS servers such as nats://10.0.0.1:4222,nats://10.0.0.2:4222", is_text=True),
]
