"""The sections about the LLM and about answering."""

from __future__ import annotations

from pydantic import Field

from settings import prompts
from settings.kinds import (
    ApiKey,
    Count,
    CountOrNone,
    Flag,
    ImageAdapter,
    OutputMethod,
    Seconds,
    Section,
    Text,
    Url,
    Word,
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
    max_retries: CountOrNone = Field(
        default=2, description="How often a call that failed for a passing reason is repeated."
    )
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
    max_concurrent_answers: Count = Field(default=32, description="How many answers are worked on at once.")
    max_waiting_answers: Count = Field(
        default=1000, description="How many may wait; beyond that the oldest is dropped."
    )
    enable_verification: Flag = Field(default=False, description="Have the LLM check each draft before it is posted.")
    require_citations: Flag = Field(default=False, description="Post no answer that cites none of its sources.")
    max_sources: Count = Field(default=3, description="How many sources may be loaded for one answer.")
    max_answer_chars: Count = Field(default=3000, description="The greatest length of an answer.")
    max_index_chars: Count = Field(
        default=60_000, description="A longer index is narrowed to what ranks best before the LLM chooses from it."
    )
    project_introduction: Text = Field(
        default="", description="What the project is, in a few sentences; added to the instructions of every step."
    )
    gating_prompt: Word = Field(default=prompts.GATING, description="The task of deciding what deserves an answer.")
    selection_prompt: Word = Field(default=prompts.SELECTION, description="The task of choosing sources.")
    answer_prompt: Word = Field(default=prompts.ANSWER, description="The task of writing the answer.")
    verification_prompt: Word = Field(default=prompts.VERIFICATION, description="The task of checking a draft.")
