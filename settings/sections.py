"""The sections of the configuration, and how their paths are resolved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, Discriminator, Field, PrivateAttr, SecretStr, Tag

from model.outcomes import Approval
from model.permissions import OperatorRole
from model.servers import Servers
from settings.answering import AnswerSettings, GuildAnswerSettings, LLMSettings, ModelSettings
from settings.kinds import (
    LOCAL,
    BelowDataDir,
    ConfigPath,
    Count,
    CountOrZero,
    Flag,
    Hosts,
    Hours,
    Level,
    LimitOrNull,
    LoginToken,
    Minutes,
    NonEmpty,
    OperatorName,
    OwnToken,
    PathOrNone,
    Port,
    Rate,
    ReplyMode,
    Seconds,
    Secret,
    SettingsSection,
    Share,
    Snowflake,
    Snowflakes,
    SnowflakesOrNone,
    Store,
    Text,
    Texts,
    Transport,
    ValueHelp,
    WebhookAddress,
    Weight,
    WhenUnsure,
    null_as_empty,
    replacement,
    section,
    setting,
)
from settings.knowledge import GuildKnowledgeSettings, KnowledgeSettings

GUILDS = "guilds"
"""The folder in `app.data_dir` that has a data folder for each server, with the same layout."""

MIB = 1024 * 1024
HOUR = 3600


class AppSettings(SettingsSection):
    """The program as a whole."""

    data_dir: ConfigPath = setting(Path("data"), "Folder for everything that the bot keeps.")
    dry_run: Flag = setting(False, "Log replies instead of posting them.")
    shutdown_grace_seconds: Seconds = setting(20, "How long work in flight may continue after a stop signal.")


class LogRotationSettings(SettingsSection):
    """Daily rotation of the log file."""

    backup_count: Count = setting(5, "How many past days of log files are kept.")


class LogFileSettings(SettingsSection):
    """A log file beside the console."""

    path: PathOrNone = setting(None, "A file that the log is also written to; empty: console only.")
    rotation: LogRotationSettings = section(LogRotationSettings)


class LoggingSettings(SettingsSection):
    """What is logged, and where to."""

    level: Level = setting(
        "INFO",
        "The least severity that is logged; DEBUG includes message texts. Commands other than the bot "
        "itself log to the console only, and for INFO no less than WARNING.",
    )
    format: Literal["text", "json"] = setting("text", "Lines for people, or one JSON object a line.")
    file: LogFileSettings = section(LogFileSettings)


class ChannelSettings(SettingsSection):
    """What differs in one channel; null: what holds elsewhere."""

    reply_mode: ReplyMode | None = replacement("discord.reply_mode", "channel")
    when_unsure: WhenUnsure | None = replacement("ai_response.when_unsure", "channel")
    approval: Approval | None = replacement("ai_response.approval", "channel")


class DiscordSettings(SettingsSection):
    """Where the bot listens, when it speaks, and who belongs to the team."""

    token: Secret = setting(SecretStr(""), "The bot's token; best kept in .env as APP__DISCORD__TOKEN.")
    message_batch_wait_seconds: Seconds = setting(
        60, "A batch closes when its author has written nothing for this long."
    )
    message_batch_settle_seconds: Seconds = setting(
        15,
        "If Discord tells who is typing, a batch that looks finished closes once its author has neither written nor "
        "typed for this long; never later than message_batch_wait_seconds.",
    )
    message_batch_max_seconds: Seconds = setting(600, "A batch closes at the latest this long after its first message.")
    message_grouping_window_seconds: Seconds = setting(
        300, "Messages from before the start count as one if the same author wrote them no further apart than this."
    )
    team_member_ids: Snowflakes = setting(frozenset(), "Users who answer for the team.")
    team_role_ids: Snowflakes = setting(frozenset(), "Roles whose holders answer for the team.")
    channel_allowlist: Snowflakes = setting(
        frozenset(), "Read only these channels, threads and posts; empty: all it can see."
    )
    channel_denylist: Snowflakes = setting(frozenset(), "Never read these channels, threads and posts.")
    capture_channels: Snowflakes = setting(
        frozenset(),
        "Learn from the team in these channels even if not everyone can read them. What is said there may be told to "
        "everybody, questions included.",
    )
    reply_mode: ReplyMode = setting("all", "Answer every question, only when mentioned, or never.")
    channels: Mapping[Snowflake, ChannelSettings] = Field(
        default_factory=dict[int, ChannelSettings], description="Settings for single channels, by channel id."
    )
    reply_chain_max_depth: Count = setting(
        20,
        "How many replies back a chain is followed whose conversation is unknown, such as one from before the start.",
    )
    team_active_seconds: Seconds = setting(
        120, "The bot stays silent this long after a team member replied to the asker in the channel."
    )
    thread_reuse_minutes: Minutes = setting(
        15, "A new question of an asker goes to their last thread if the bot posted there within this time."
    )
    catch_up_minutes: Annotated[float, Field(ge=0, strict=True), ValueHelp("a number of minutes, or 0 for off")] = (
        setting(60, "How far back messages missed while offline are processed; 0: not at all.")
    )
    opt_out_marker: NonEmpty = setting(
        "!nobot", "A message that contains this is neither answered, learned from nor recorded."
    )
    feedback: Flag = setting(
        False, "Add 👍 and 👎 below answers and keep the votes, and those inferred from what askers say."
    )
    escalation_emoji: NonEmpty = setting("🆘", "The reaction with which users ask for a person.")
    escalation_channel_id: Snowflake | None = setting(
        None, "Where links to escalated threads are posted: each once an hour, three of one person; null: nowhere."
    )
    review_channel_id: Snowflake | None = setting(
        None, "Where the team decides about answers that wait for approval (ai_response.approval). It is not read."
    )


class LimitSettings(SettingsSection):
    """Limits; a question beyond them is not answered."""

    chains_per_user_per_hour: Count = setting(20, "How many questions of one user are processed per hour.")
    answers_per_day: CountOrZero = setting(0, "Answers per UTC day; 0: unlimited.")
    tokens_per_day: CountOrZero = setting(0, "LLM tokens per UTC day, also to file what the team said; 0: unlimited.")


class MetricsSettings(SettingsSection):
    """Prometheus metrics and the health check."""

    port: Port = setting(0, "The port that serves /metrics and /healthz; 0: off.")
    host: NonEmpty = setting("127.0.0.1", "The address to listen on; the default is reachable from this machine only.")


class OperatorSettings(SettingsSection):
    """An operator with a token of their own."""

    token: OwnToken = Field(
        description="What they log in with; best kept in .env, as APP__DASHBOARD__OPERATORS__ANA__TOKEN for ana."
    )
    role: OperatorRole = Field(description="What they may do; docs/operating.md has a table.")


class DashboardSettings(SettingsSection):
    """Pages that show what the bot does, at `metrics.port`."""

    enabled: Flag = setting(False, "Serve the dashboard at metrics.port, to this machine only unless there is a token.")
    token: LoginToken = setting(SecretStr(""), "What people log in with who may do everything; best kept in .env.")
    operators: Annotated[Mapping[OperatorName, OperatorSettings], BeforeValidator(null_as_empty)] = Field(
        default_factory=dict[str, OperatorSettings],
        description="People with a token and a role of their own, by name. What they decide is noted with it.",
    )
    show_texts: Flag = setting(False, "Show what people wrote and were answered; else only what became of it.")

    @property
    def has_login(self) -> bool:
        """True if nobody sees the pages without a token."""
        return bool(self.token.get_secret_value() or self.operators)


class McpSettings(SettingsSection):
    """What `--mcp` serves to assistants over the Model Context Protocol."""

    host: NonEmpty = setting("127.0.0.1", "The address that `--mcp http` listens on; the default is this machine only.")
    port: Port = setting(8765, "The port of `--mcp http`.")
    token: LoginToken = setting(SecretStr(""), "What assistants send to `--mcp http`; best kept in .env.")
    names: Hosts = setting((), "Names by which assistants reach `--mcp http`, besides mcp.host and localhost.")
    channels: Snowflakes = setting(
        frozenset(),
        "Channels whose posted files assistants may read (of the threads that the bot opened there), and threads.",
    )
    questions_per_hour: CountOrZero = setting(
        60, "How many questions an hour one server of MCP puts to a model; 0: unlimited."
    )


class ReportSettings(SettingsSection):
    """What is told to who runs the bot."""

    channel_id: Snowflake | None = setting(
        None,
        "Where a report of the week is posted, which quotes questions of all its server's channels; null: nowhere.",
    )
    keep_days: CountOrZero = setting(90, "How many days the record of how questions ended is kept; 0: for ever.")


class AlertSettings(SettingsSection):
    """Messages to who runs the bot when something is wrong: one when it begins, and one when it is over."""

    channel_id: Snowflake | None = setting(None, "The channel in Discord where they are posted; null: nowhere.")
    webhook_url: WebhookAddress = setting(
        SecretStr(""),
        "A webhook of Discord, or one that takes a `text`, such as Slack's; best kept in .env as "
        "APP__ALERTS__WEBHOOK_URL. Empty: none.",
    )
    discord_lost_minutes: Minutes = setting(5, "Told when Discord has been away for this long.")
    model_failing_minutes: Minutes = setting(5, "Told when all calls of a model have failed for this long.")
    source_failing_hours: Hours = setting(24, "Told when a source could not be read for this long.")
    disk_free_mb: Count = setting(
        500, "Told when less is free where app.data_dir is, or less than 5 % of the disk, but at most 5 GB."
    )

    @property
    def enabled(self) -> bool:
        """True if there is somewhere to post them."""
        return self.channel_id is not None or bool(self.webhook_url.get_secret_value())


class EmbeddingSettings(ModelSettings):
    """A model that embeds texts."""


def _form_tag(given: Any) -> str:
    # Errors have the tag in their path: `problems_of` leaves out names that begin with "<".
    return "<endpoint>" if isinstance(given, dict | EmbeddingSettings) else "<word>"


class SearchSettings(SettingsSection):
    """How documents are searched, for every use of them."""

    embeddings: Annotated[
        Annotated[EmbeddingSettings, Tag("<endpoint>")] | Annotated[Literal["packaged", "none"], Tag("<word>")],
        Discriminator(_form_tag),
        ValueHelp("`packaged`, `none`, or a mapping of base_url, api_key and model"),
    ] = setting(
        "packaged", "Where text is embedded: by the packaged model, nowhere (search by words only), or at an endpoint."
    )


class DocumentCacheSettings(SettingsSection):
    """The cache of the document tools' answers."""

    max_entries: Count = setting(1000, "How many answers are cached.")
    max_bytes: Count = setting(16 * MIB, "How much memory they may take.")
    case_seconds: Seconds = setting(HOUR, "Lifetime of answers from files of a thread.")
    user_seconds: Seconds = setting(24 * HOUR, "Lifetime of answers from personal runbooks.")
    team_seconds: Seconds = setting(12 * HOUR, "Lifetime of answers from the team's knowledge.")
    global_seconds: Seconds = setting(168 * HOUR, "Lifetime of answers from the documentation.")
    not_found_seconds: Seconds = setting(60, 'Lifetime of a "not found".')


class RankingSettings(SettingsSection):
    """Weights of keyword and vector search."""

    prose_weight: Share = setting(0.7, "Share of the vector score in prose.")
    window_weight: Share = setting(0.5, "Share of the vector score in windows of log lines.")
    pattern_weight: Share = setting(0.7, "Share of the vector score in log line patterns.")
    leaf_weight: Share = setting(0.7, "Share of the vector score in values of configuration files.")
    identifier_weight: Share = setting(0.3, "Share of the vector score when an identifier is found literally.")
    identifier_bonus: Weight = setting(2.0, "Added to the score when all identifiers are found literally.")
    bm25_k1: Rate = setting(1.2, "BM25: how soon repetitions of a word stop counting (k1).")
    bm25_b: Share = setting(0.75, "BM25: how much long passages lose (b).")


class DocumentSettings(SettingsSection):
    """Questions about uploaded files and personal runbooks."""

    enabled: Flag = setting(True, "Offer the document tools and their commands.")
    max_file_bytes: Count = setting(10 * MIB, "The largest file that is accepted.")
    max_files_per_thread: Count = setting(20, "How many files a thread may have.")
    max_thread_bytes: Count = setting(30 * MIB, "How large the files of a thread may be together.")
    max_disk_bytes: Count = setting(
        5120 * MIB,
        "The most disk that all files and runbooks may take; each takes some nine times its own size, twenty if names "
        "in it have many dots.",
    )
    max_lines_per_file: Count = setting(200_000, "How many lines a file may have.")
    max_line_chars: Count = setting(4000, "Longer lines are cut.")
    max_runbook_bytes: Count = setting(3 * MIB, "The largest personal runbook.")
    max_runbooks_per_user: Count = setting(200, "How many runbooks one user may have.")
    code_blocks: Flag = setting(False, "Treat long code blocks in messages as files.")
    code_block_min_lines: Count = setting(15, "From how many lines on a code block is long.")
    ready_wait_seconds: Seconds = setting(10, "How long an answer waits for new files to become searchable.")
    embed_concurrency: Count = setting(2, "How many files are embedded at once.")
    solved_tags: Texts = setting(("solved",), "Forum tags that mark a thread as solved; its files are deleted at once.")
    evidence_grace_hours: Hours = setting(24, "How long the files of an archived thread are kept.")
    sweep_hours: Hours = setting(6, "How often the bot looks for files of threads that are gone.")
    max_tool_calls: Count = setting(6, "How many tool calls one answer may make.")
    max_repeated_questions: Count = setting(3, "How many of these calls may repeat a question.")
    tools_timeout_seconds: Seconds = setting(60, "How long the tool calls of one answer may take together.")
    store_timeout_seconds: Seconds = setting(10, "How long one search may take.")
    team_name: Text = setting("", "The team's name in its knowledge; empty: the id of the guild.")
    embeddings: EmbeddingSettings | None = setting(
        None, "Where the texts of the document tools are embedded; null: as search.embeddings says."
    )
    synthesis_llm: LLMSettings | None = setting(None, "The LLM that condenses passages; null: the one of ai_response.")
    store: Store = setting("embedded", "Where passages are kept: in the data folder, or in Chroma.")
    cache: DocumentCacheSettings = section(DocumentCacheSettings)
    ranking: RankingSettings = section(RankingSettings)


class GuildDiscordSettings(SettingsSection):
    """Where the bot listens and speaks in one server, and who belongs to its team."""

    team_member_ids: SnowflakesOrNone = replacement("discord.team_member_ids")
    team_role_ids: SnowflakesOrNone = replacement("discord.team_role_ids")
    channel_allowlist: SnowflakesOrNone = replacement("discord.channel_allowlist")
    channel_denylist: SnowflakesOrNone = replacement("discord.channel_denylist")
    capture_channels: SnowflakesOrNone = replacement("discord.capture_channels")
    reply_mode: ReplyMode | None = replacement("discord.reply_mode")
    channels: Mapping[Snowflake, ChannelSettings] = Field(
        default_factory=dict[int, ChannelSettings], description="Settings for single channels, beside discord.channels."
    )
    escalation_channel_id: Snowflake | None = replacement("discord.escalation_channel_id")
    review_channel_id: Snowflake | None = replacement("discord.review_channel_id")


class GuildLimitSettings(SettingsSection):
    """Limits of one server, which is counted apart if any is set; one that is left out is as in `limits`."""

    chains_per_user_per_hour: Count | None = replacement("limits.chains_per_user_per_hour")
    answers_per_day: LimitOrNull = replacement("limits.answers_per_day")
    tokens_per_day: LimitOrNull = replacement("limits.tokens_per_day")


class GuildSettings(SettingsSection):
    """What differs in one server; what is left out, or null, is as everywhere."""

    discord: GuildDiscordSettings = section(GuildDiscordSettings)
    ai_response: GuildAnswerSettings = section(GuildAnswerSettings)
    kb: GuildKnowledgeSettings = section(GuildKnowledgeSettings)
    limits: GuildLimitSettings = section(GuildLimitSettings)


class NatsSettings(SettingsSection):
    """How NATS JetStream is used where `transport` names its servers."""

    partitions: Annotated[int, Field(ge=1, le=99, strict=True)] = setting(
        32, "Into how many parts channels are divided among workers; fixed once the streams exist."
    )
    lease_seconds: Seconds = setting(
        3,
        "Others take over from a process that was silent for so long, or disconnected for half as long.",
    )
    replicas: Annotated[Literal[1, 3, 5], ValueHelp("1, 3 or 5")] = setting(
        1, "Servers that keep each message: 1, or 3 or 5 in a cluster."
    )
    credentials_env: NonEmpty = setting(
        "NATS_CREDS", "The environment variable that holds the path of a file of NATS credentials, if any."
    )


class Settings(SettingsSection):
    """The whole configuration. `Settings()` holds the defaults, with paths relative to wherever it is used."""

    app: AppSettings = section(AppSettings)
    logging: LoggingSettings = section(LoggingSettings)
    discord: DiscordSettings = section(DiscordSettings)
    ai_response: AnswerSettings = section(AnswerSettings)
    kb: KnowledgeSettings = section(KnowledgeSettings)
    limits: LimitSettings = section(LimitSettings)
    search: SearchSettings = section(SearchSettings)
    documents: DocumentSettings = section(DocumentSettings)
    metrics: MetricsSettings = section(MetricsSettings)
    dashboard: DashboardSettings = section(DashboardSettings)
    mcp: McpSettings = section(McpSettings)
    report: ReportSettings = section(ReportSettings)
    alerts: AlertSettings = section(AlertSettings)
    transport: Transport = setting(
        "local", "One process on this machine, or the servers of NATS between processes on several."
    )
    nats: NatsSettings = section(NatsSettings)
    guilds: Annotated[Mapping[Snowflake, GuildSettings], BeforeValidator(null_as_empty)] = Field(
        default_factory=dict[int, GuildSettings],
        description="Servers with a team, knowledge or limits of their own, by server id. Such a server is answered "
        "from its own and the shared knowledge, and what its team teaches stays there.",
    )
    _servers: Mapping[int, Settings] = PrivateAttr(default_factory=dict[int, "Settings"])

    @property
    def servers(self) -> Servers[Settings]:
        """The settings of each server: the servers in `guilds` have their own team, knowledge, limits and data folder;
        all others have these settings.
        """
        return Servers({None: self, **self._servers})

    def with_servers(self, servers: Mapping[int, Settings]) -> Self:
        """Return a copy with other settings for the servers."""
        changed = self.model_copy()
        changed._servers = dict(servers)  # noqa: SLF001 (its own copy)
        return changed

    def for_removed_server(self, guild_id: int) -> Settings:
        """Return the settings of a server that was removed from `guilds` and may still have a folder."""
        entry = self.model_copy(update={"guilds": {guild_id: GuildSettings()}})
        return _for_server(entry, guild_id, Path())  # the entry has no paths to resolve

    def has_own_team(self, guild_id: int | None) -> bool:
        """Tell whether the entry of a server in `guilds` says itself who is of its team."""
        entry = self.guilds.get(guild_id) if guild_id is not None else None
        named = () if entry is None else (entry.discord.team_member_ids, entry.discord.team_role_ids)
        return any(each is not None for each in named)

    @property
    def secrets(self) -> list[str]:
        """The values of all secrets, which must be shown nowhere."""
        return list(_secrets_in(self))

    @property
    def local(self) -> bool:
        """True if one process does everything, without NATS."""
        return self.transport == LOCAL

    @property
    def document_embeddings(self) -> EmbeddingSettings | Literal["packaged", "none"]:
        """The embedding model for documents."""
        return self.search.embeddings if self.documents.embeddings is None else self.documents.embeddings

    def when_unsure_in(self, channel_id: int) -> WhenUnsure:
        """Return what the bot does in a channel when it is unsure and was not addressed."""
        return self._channel(channel_id).when_unsure or self.ai_response.when_unsure

    def approval_in(self, channel_id: int) -> Approval:
        """Return which answers in a channel wait for approval."""
        return self._channel(channel_id).approval or self.ai_response.approval

    def _channel(self, channel_id: int) -> ChannelSettings:
        return self.discord.channels.get(channel_id, ChannelSettings())

    @property
    def team_channels(self) -> Sequence[tuple[str, int]]:
        """The channels that only the team should view, each with its key: the bot posts there what it was asked
        elsewhere, or what is wrong with it. `discord.escalation_channel_id` is not among them: only a link is posted
        there.
        """
        named = {("alerts.channel_id", self.alerts.channel_id), ("report.channel_id", self.report.channel_id)}
        for server in self.servers.values():
            modes = (server.ai_response.approval, *map(server.approval_in, server.discord.channels))
            if any(mode != "off" for mode in modes):
                named.add(("discord.review_channel_id", server.discord.review_channel_id))
        return sorted((key, channel_id) for key, channel_id in named if channel_id is not None)

    def resolve_paths(self, folder: Path) -> Self:
        """Return a copy with every path resolved against `folder`; unset ones lie below `app.data_dir`."""
        data = folder / self.app.data_dir
        app = self.app.model_copy(update={"data_dir": data})

        def resolve(name: str, path: Path, _: BelowDataDir) -> Path:
            return folder / path if name in self.kb.model_fields_set else data / _default_path(name)

        log = self.logging.file
        file = log.model_copy(update={"path": None if log.path is None else folder / log.path})
        logging = self.logging.model_copy(update={"file": file})
        resolved = self.model_copy(update={"app": app, "logging": logging, "kb": _replace_paths(self.kb, resolve)})
        return resolved.with_servers({guild_id: _for_server(resolved, guild_id, folder) for guild_id in self.guilds})

    def for_replay(self, data: Path) -> Self:
        """Return the settings of a replay, which learns and saves below `data`. Call it on resolved paths."""
        return self._move_data(data, lambda mark: mark.is_learned)

    def with_data_in(self, data: Path) -> Self:
        """Return the settings of a process with all data below `data`, documents too. Call it on resolved paths."""
        return self._move_data(data, lambda _: True)

    def _move_data(self, data: Path, chosen: Callable[[BelowDataDir], bool]) -> Self:
        app = self.app.model_copy(update={"data_dir": data})

        def move(name: str, path: Path, mark: BelowDataDir) -> Path:
            return data / _default_path(name) if chosen(mark) else path

        moved = self.model_copy(update={"app": app, "kb": _replace_paths(self.kb, move)})
        return moved.with_servers(
            {
                guild_id: server._move_data(data / GUILDS / str(guild_id), chosen)  # noqa: SLF001 (of its own kind)
                for guild_id, server in self._servers.items()
            }
        )


S = TypeVar("S", bound=SettingsSection)


def _secrets_in(value: object) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _secrets_in(getattr(value, name))
    elif isinstance(value, Mapping):
        for each in cast("Mapping[object, object]", value).values():
            yield from _secrets_in(each)


def _override(common: S, own: SettingsSection) -> S:
    """Return a copy of `common` with the values that `own` sets."""
    values = {name: value for name in type(own).model_fields if (value := getattr(own, name)) is not None}
    return common.model_copy(update=values)


def _default_path(name: str) -> Path:
    """Return the default of a path of `kb`, relative to the data folder."""
    default: Path = KnowledgeSettings.model_fields[name].default
    return default.relative_to("data")


def _replace_paths(kb: KnowledgeSettings, change: Callable[[str, Path, BelowDataDir], Path]) -> KnowledgeSettings:
    fields = KnowledgeSettings.model_fields.items()
    marks = ((name, mark) for name, field in fields for mark in field.metadata if isinstance(mark, BelowDataDir))
    return kb.model_copy(update={name: change(name, getattr(kb, name), mark) for name, mark in marks})


def _for_server(common: Settings, guild_id: int, folder: Path) -> Settings:
    """Return the settings of one server, which has a separate data folder."""
    own, data = common.guilds[guild_id], common.app.data_dir / GUILDS / str(guild_id)
    paths = {"sources_dir": own.kb.sources_dir, "links_file_path": own.kb.links_file_path}

    def resolve(name: str, _: Path, _mark: BelowDataDir) -> Path:
        path = paths.get(name)
        return data / _default_path(name) if path is None else folder / path

    kb = _replace_paths(common.kb, resolve).model_copy(
        update={
            "source_base_url": own.kb.source_base_url or "",
            "source_folders": (),
            "site_generator": "auto",
            "internal_topics": common.kb.internal_topics if own.kb.internal_topics is None else own.kb.internal_topics,
            "qa_raw_last_processed_id": "",
        }
    )
    discord = _override(common.discord, own.discord)
    channels = {**common.discord.channels, **own.discord.channels}
    return common.model_copy(
        update={
            "app": common.app.model_copy(update={"data_dir": data}),
            "discord": discord.model_copy(update={"channels": channels}),
            "ai_response": _override(common.ai_response, own.ai_response),
            "kb": kb,
            "limits": _override(common.limits, own.limits),
            "guilds": {},
        }
    )
