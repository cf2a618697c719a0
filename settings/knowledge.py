"""The sections about knowledge: documents and pages, the team, and files that people upload."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from settings import prompts
from settings.bot import LLMSettings
from settings.kinds import (
    ApiKey,
    Count,
    Flag,
    Hours,
    KnowledgePath,
    LearnedPath,
    Rate,
    Renderer,
    Says,
    Seconds,
    Section,
    Share,
    Store,
    Text,
    TopicNames,
    Url,
    Weight,
    Word,
    Words,
)

QA_ID = re.compile(r"qa_(\d{8}_\d{6})(?:\.\d+)?", re.ASCII)

KNOWLEDGE = Path("data/knowledge-base")
LEARNED = Path("data/team-knowledge")


def _qa_id_or_empty(given: str) -> str:
    if given:
        found = QA_ID.fullmatch(given)
        if found is None:
            raise ValueError("not an id of a pair")
        datetime.strptime(f"{found[1]}+0000", "%Y%m%d_%H%M%S%z")  # a ValueError if there is no such time
    return given


QaIdOrEmpty = Annotated[
    str,
    AfterValidator(_qa_id_or_empty),
    Says("the id of a captured pair, such as qa_20260201_031056.228000, or empty", as_text=True),
]


class KnowledgeSettings(Section):
    """Where knowledge comes from and how it is kept up to date."""

    llm: LLMSettings | None = Field(
        default=None, description="The LLM for knowledge work; null: the one of ai_response."
    )
    sources_dir: KnowledgePath = Field(default=KNOWLEDGE / "sources", description="The folder of documents.")
    links_file_path: KnowledgePath = Field(
        default=KNOWLEDGE / "links.txt", description="The list of web pages, one URL a line."
    )
    index_path: KnowledgePath = Field(default=KNOWLEDGE / "index.txt", description="The index of descriptions.")
    index_cache_path: KnowledgePath = Field(
        default=KNOWLEDGE / "index-cache.json",
        description="What is known about each source, so that nothing is done twice.",
    )
    web_fetch_cache_dir: KnowledgePath = Field(
        default=KNOWLEDGE / "web-cache", description="The text of fetched pages."
    )
    web_fetch_timeout_seconds: Seconds = Field(default=30, description="How long fetching one page may take.")
    web_fetch_renderer: Renderer = Field(
        default="http", description="Fetch pages as they are, or render them in a browser."
    )
    web_fetch_private_hosts: Words = Field(default=(), description="Hosts that may be fetched from a private address.")
    url_download_concurrency: Count = Field(default=3, description="How many pages are fetched at once.")
    url_requests_per_second: Rate = Field(default=2, description="How many requests per second go to one host.")
    summarization_concurrency: Count = Field(default=5, description="How many descriptions are written at once.")
    url_refresh_min_interval_hours: Hours = Field(default=72, description="How long a fetched page counts as fresh.")
    runtime_refresh_tick_seconds: Seconds = Field(default=300, description="How often sources are checked for changes.")
    file_watch_debounce_seconds: Seconds = Field(
        default=2, description="How long files must be unchanged before an update starts."
    )
    max_source_bytes: Count = Field(default=2_000_000, description="Larger documents and pages are left out.")
    summarization_prompt: Word = Field(default=prompts.SUMMARIZATION, description="The task of describing a document.")
    team_raw_dir: LearnedPath = Field(default=LEARNED / "raw", description="The archive of captured conversations.")
    team_topics_dir: LearnedPath = Field(
        default=LEARNED / "topics", description="The topic files made from the archive."
    )
    team_index_path: LearnedPath = Field(default=LEARNED / "index-team.txt", description="The index of topics.")
    team_index_cache_path: LearnedPath = Field(
        default=LEARNED / "index-team-cache.json", description="What is known about each topic file."
    )
    team_state_path: LearnedPath = Field(
        default=LEARNED / "state.json", description="How far the archive has been filed."
    )
    qa_raw_last_processed_id: QaIdOrEmpty = Field(
        default="", description="Where classification starts in an archive without decisions; empty: at its start."
    )
    max_topic_chars: Count = Field(default=40_000, description="A longer topic continues in a second file.")
    internal_topics: TopicNames = Field(
        default=frozenset(),
        description="Topics for the team only, with all their files: used in /ask of team members, nowhere else.",
    )
    team_classification_prompt: Word = Field(
        default=prompts.TEAM_CLASSIFICATION, description="The task of filing a conversation under a topic."
    )
    team_integration_prompt: Word = Field(
        default=prompts.TEAM_INTEGRATION, description="The task of integrating a conversation into its topic."
    )
    team_summarization_prompt: Word = Field(
        default=prompts.TEAM_SUMMARIZATION, description="The task of describing a topic for the index."
    )
    team_image_summary_prompt: Word = Field(
        default=prompts.TEAM_IMAGE_SUMMARY, description="The task of summarising the images of a conversation."
    )


MIB = 1024 * 1024
HOUR = 3600


class EmbeddingSettings(Section):
    """An OpenAI-compatible endpoint for embeddings."""

    base_url: Url = Field(description="The endpoint, up to and including the version.")
    api_key: ApiKey = Field(description="The key for the endpoint; best kept in .env.")
    model: Word = Field(description="The embedding model's name at the endpoint.")


class DocumentCacheSettings(Section):
    """How many answers of the document tools are cached, and for how long."""

    max_entries: Count = Field(default=1000, description="How many answers are cached.")
    max_bytes: Count = Field(default=16 * MIB, description="How much memory they may take.")
    case_seconds: Seconds = Field(default=HOUR, description="Lifetime of answers from files of a thread.")
    user_seconds: Seconds = Field(default=24 * HOUR, description="Lifetime of answers from personal runbooks.")
    team_seconds: Seconds = Field(default=12 * HOUR, description="Lifetime of answers from the team's knowledge.")
    global_seconds: Seconds = Field(default=168 * HOUR, description="Lifetime of answers from the documentation.")
    not_found_seconds: Seconds = Field(default=60, description='Lifetime of a "not found".')


class RankingSettings(Section):
    """The weights of keyword and vector search."""

    prose_weight: Share = Field(default=0.7, description="Share of the vector score in prose.")
    window_weight: Share = Field(default=0.5, description="Share of the vector score in windows of log lines.")
    pattern_weight: Share = Field(default=0.7, description="Share of the vector score in log line patterns.")
    leaf_weight: Share = Field(default=0.7, description="Share of the vector score in values of configuration files.")
    identifier_weight: Share = Field(
        default=0.3, description="Share of the vector score when an identifier is found literally."
    )
    identifier_bonus: Weight = Field(
        default=2.0, description="Added to the score when all identifiers are found literally."
    )
    bm25_k1: Rate = Field(default=1.2, description="BM25: how soon repetitions of a word stop counting (k1).")
    bm25_b: Share = Field(default=0.75, description="BM25: how much long passages lose (b).")


class DocumentSettings(Section):
    """Questions about uploaded files and personal runbooks."""

    enabled: Flag = Field(default=True, description="Offer the document tools and their commands.")
    max_file_bytes: Count = Field(default=10 * MIB, description="The largest file that is accepted.")
    max_files_per_thread: Count = Field(default=20, description="How many files a thread may have.")
    max_thread_bytes: Count = Field(default=30 * MIB, description="How large the files of a thread may be together.")
    max_lines_per_file: Count = Field(default=200_000, description="How many lines a file may have.")
    max_line_chars: Count = Field(default=4000, description="Longer lines are cut.")
    max_runbook_bytes: Count = Field(default=3 * MIB, description="The largest personal runbook.")
    max_runbooks_per_user: Count = Field(default=200, description="How many runbooks one user may have.")
    code_blocks: Flag = Field(default=False, description="Treat long code blocks in messages as files.")
    code_block_min_lines: Count = Field(default=15, description="From how many lines on a code block is long.")
    ready_wait_seconds: Seconds = Field(
        default=10, description="How long an answer waits for new files to become searchable."
    )
    embed_concurrency: Count = Field(default=2, description="How many files are embedded at once.")
    solved_tags: Words = Field(
        default=("solved",), description="Forum tags that mark a thread as solved; its files are deleted at once."
    )
    evidence_grace_hours: Hours = Field(default=24, description="How long the files of an archived thread are kept.")
    sweep_hours: Hours = Field(default=6, description="How often the bot looks for files of threads that are gone.")
    max_tool_calls: Count = Field(default=6, description="How many tool calls one answer may make.")
    max_repeated_questions: Count = Field(default=3, description="How many of these calls may repeat a question.")
    tools_timeout_seconds: Seconds = Field(
        default=60, description="How long the tool calls of one answer may take together."
    )
    store_timeout_seconds: Seconds = Field(default=10, description="How long one search may take.")
    team_name: Text = Field(default="", description="The team's name in its knowledge; empty: the id of the guild.")
    embeddings: EmbeddingSettings | None = Field(
        default=None, description="Where text is embedded; null: the packaged model."
    )
    synthesis_llm: LLMSettings | None = Field(
        default=None, description="The LLM that condenses passages; null: the one of ai_response."
    )
    store: Store = Field(default="embedded", description="Where passages are kept: in the data folder, or in Chroma.")
    cache: DocumentCacheSettings = Field(
        default_factory=DocumentCacheSettings, description="The cache of the document tools' answers."
    )
    ranking: RankingSettings = Field(
        default_factory=RankingSettings, description="Weights of keyword and vector search."
    )
