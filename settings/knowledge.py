"""The section about the knowledge base and what is learned from the team."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from settings import prompts
from settings.answers import LLMSettings
from settings.kinds import (
    Count,
    Hours,
    KnowledgePath,
    LearnedPath,
    Rate,
    Renderer,
    Says,
    Seconds,
    Section,
    TopicNames,
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
    runtime_refresh_tick_seconds: Seconds = Field(
        default=300, description="How often sources are looked through for changes."
    )
    file_watch_debounce_seconds: Seconds = Field(
        default=2, description="How long files must have been quiet before a change is taken up."
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
        default="", description="Where filing begins in an archive that has no decisions yet; empty: at its start."
    )
    max_topic_chars: Count = Field(default=40_000, description="A longer topic goes on in a second file.")
    internal_topics: TopicNames = Field(
        default=frozenset(),
        description="Topics for the team only, with all their files: shown to its members in /ask, to nobody else.",
    )
    team_classification_prompt: Word = Field(
        default=prompts.TEAM_CLASSIFICATION, description="The task of filing a conversation under a topic."
    )
    team_integration_prompt: Word = Field(
        default=prompts.TEAM_INTEGRATION, description="The task of fitting a conversation into its topic."
    )
    team_summarization_prompt: Word = Field(
        default=prompts.TEAM_SUMMARIZATION, description="The task of describing a topic for the index."
    )
    team_image_summary_prompt: Word = Field(
        default=prompts.TEAM_IMAGE_SUMMARY, description="The task of putting the images of a conversation into words."
    )
