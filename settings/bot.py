"""The sections about the program, Discord, answering and limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, SecretStr

from settings import prompts
from settings.kinds import (
    ApiKey,
    Count,
    CountOrNone,
    Flag,
    ImageAdapter,
    Level,
    LogFormat,
    Minutes,
    MinutesOrOff,
    OutputMethod,
    PathBeside,
    PathOrNone,
    Port,
    ReplyMode,
    Seconds,
    Secret,
    Section,
    Snowflake,
    SnowflakeOrNone,
    Snowflakes,
    Text,
    Url,
    Word,
)


class AppSettings(Section):
    """The program as a whole."""

    data_dir: PathBeside = Field(default=Path("data"), description="Folder for everything that the bot keeps.")
    dry_run: Flag = Field(default=False, description="Log replies instead of posting them.")
    shutdown_grace_seconds: Seconds = Field(
        default=20, description="How long work in flight may continue after a stop signal."
    )


class LogRotationSettings(Section):
    """Daily rotation of the log file."""

    backup_count: Count = Field(default=5, description="How many past days of log files are kept.")


class LogFileSettings(Section):
    """A log file beside the console."""

    path: PathOrNone = Field(default=None, description="A file that the log is also written to; empty: console only.")
    rotation: LogRotationSettings = Field(
        default_factory=LogRotationSettings, description="Daily rotation of the log file."
    )


class LoggingSettings(Section):
    """What is logged, and where to."""

    level: Level = Field(
        default="INFO",
        description="The least severity that is logged; DEBUG includes message texts. Commands other than the bot "
        "itself log to the console only, and for INFO no less than WARNING.",
    )
    format: LogFormat = Field(default="text", description="Lines for people, or one JSON object a line.")
    file: LogFileSettings = Field(default_factory=LogFileSettings, description="A log file beside the console.")


class ChannelSettings(Section):
    """What differs in one channel."""

    reply_mode: ReplyMode = Field(description="Replaces discord.reply_mode in this channel.")


class DiscordSettings(Section):
    """Where the bot listens, when it speaks, and who belongs to the team."""

    token: Secret = Field(
        default=SecretStr(""), description="The bot's token; best kept in .env as APP__DISCORD__TOKEN."
    )
    message_batch_wait_seconds: Seconds = Field(
        default=60, description="A batch closes when its author has written nothing for this long."
    )
    message_batch_max_seconds: Seconds = Field(
        default=600, description="A batch closes at the latest this long after its first message."
    )
    message_grouping_window_seconds: Seconds = Field(
        default=300, description="Messages of one author no further apart than this count as one in gathered context."
    )
    team_member_ids: Snowflakes = Field(default=frozenset(), description="Users who answer for the team.")
    team_role_ids: Snowflakes = Field(default=frozenset(), description="Roles whose holders answer for the team.")
    channel_allowlist: Snowflakes = Field(
        default=frozenset(), description="Read only these channels; empty: all it can see."
    )
    channel_denylist: Snowflakes = Field(default=frozenset(), description="Never read these channels.")
    capture_channels: Snowflakes = Field(
        default=frozenset(), description="Learn from the team in these channels even if not everyone can view them."
    )
    reply_mode: ReplyMode = Field(default="all", description="Answer every question, only when mentioned, or never.")
    channels: Mapping[Snowflake, ChannelSettings] = Field(
        default_factory=dict[int, ChannelSettings], description="Settings for single channels, by channel id."
    )
    reply_chain_max_depth: Count = Field(
        default=20, description="How many messages back a chain of replies is followed."
    )
    team_active_seconds: Seconds = Field(
        default=120,
        description="The bot stays silent this long after a team member replied to the asker in the channel.",
    )
    thread_reuse_minutes: Minutes = Field(
        default=15,
        description="A new question of an asker goes to their last thread if the bot posted there within this time.",
    )
    catch_up_minutes: MinutesOrOff = Field(
        default=60, description="How far back messages missed while offline are processed; 0: not at all."
    )
    capture_continuations: Flag = Field(
        default=False, description="Count a team member's next message without a reply as part of their last answer."
    )
    opt_out_marker: Word = Field(
        default="!nobot", description="A message that contains this is neither answered, learned from nor recorded."
    )
    feedback: Flag = Field(default=False, description="Add 👍 and 👎 below answers and keep the votes.")
    escalation_emoji: Word = Field(default="🆘", description="The reaction with which users ask for a person.")
    escalation_channel_id: SnowflakeOrNone = Field(
        default=None, description="Where a link to an escalated thread is posted; null: nowhere."
    )


class LimitSettings(Section):
    """Limits; a question beyond them is not answered."""

    chains_per_user_per_hour: Count = Field(
        default=20, description="How many questions of one user are processed per hour."
    )
    answers_per_day: CountOrNone = Field(default=0, description="Answers per UTC day; 0: unlimited.")
    tokens_per_day: CountOrNone = Field(default=0, description="LLM tokens per UTC day; 0: unlimited.")


class MetricsSettings(Section):
    """Prometheus metrics and the health check."""

    port: Port = Field(default=0, description="The port that serves /metrics and /healthz; 0: off.")
    host: Word = Field(
        default="127.0.0.1", description="The address to listen on; the default is reachable from this machine only."
    )


class LLMSettings(Section):
    """An endpoint that speaks the OpenAI protocol, and a model on it."""

    base_url: Url = Field(description="The endpoint, up to and including the version, such as …/v1.")
    api_key: ApiKey = Field(description="The key for the endpoint; best kept in .env.")
    model: Word = Field(description="The model's name at the endpoint.")
    vram_limit: Count = Field(default=24, description="The least GPU memory in GB that Crynux runs the model on.")
    structured_output_method: OutputMethod = Field(
        default="function_calling", description="How the endpoint is asked for structured output."
    )
    timeout_seconds: Seconds = Field(default=60, description="How long one call may take.")
    max_retries: CountOrNone = Field(default=2, description="How often a call is repeated after a temporary failure.")
    retry_timeouts: Flag = Field(
        default=False, description="Repeat calls that timed out as well; the endpoint may bill them twice."
    )


class AnswerSettings(Section):
    """How questions are answered."""

    llm: LLMSettings | None = Field(
        default=None, description="The LLM that answers; null: no LLM, answers quote the best passage."
    )
    llm_enable_image: Flag = Field(default=False, description="Show images to the LLM.")
    llm_image_adapter: ImageAdapter = Field(
        default="OpenAIImageAdapter", description="The form in which the endpoint takes images."
    )
    image_download_timeout_seconds: Seconds = Field(
        default=20, description="How long the download of one image may take."
    )
    image_download_max_retries: CountOrNone = Field(default=2, description="How often a failed download is repeated.")
    graph_timeout_seconds: Seconds = Field(default=200, description="How long one answer may take, all steps together.")
    max_concurrent_answers: Count = Field(default=32, description="How many answers are in progress at once.")
    max_waiting_answers: Count = Field(
        default=1000, description="How many may wait; beyond that the oldest is dropped."
    )
    enable_verification: Flag = Field(default=False, description="Have the LLM check each draft before it is posted.")
    require_citations: Flag = Field(default=False, description="Post no answer that cites none of its sources.")
    max_sources: Count = Field(default=3, description="How many sources may be loaded for one answer.")
    max_answer_chars: Count = Field(default=3000, description="The maximum length of an answer in characters.")
    max_index_chars: Count = Field(
        default=60_000,
        description="A longer index is cut to the entries that rank best before the LLM selects from it.",
    )
    project_introduction: Text = Field(
        default="", description="What the project is, in a few sentences; added to the instructions of every step."
    )
    gating_prompt: Word = Field(default=prompts.GATING, description="The task of deciding what deserves an answer.")
    selection_prompt: Word = Field(default=prompts.SELECTION, description="The task of choosing sources.")
    answer_prompt: Word = Field(default=prompts.ANSWER, description="The task of writing the answer.")
    verification_prompt: Word = Field(default=prompts.VERIFICATION, description="The task of checking a draft.")
