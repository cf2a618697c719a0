"""The settings of answers: models, the section, the default tasks of steps, and what a server replaces. The output
format, and the protection against text from outside, are added to a task in code.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, create_model

from model.outcomes import Approval
from settings.kinds import (
    ApiKey,
    Count,
    CountOrZero,
    Flag,
    Minutes,
    NonEmpty,
    ReplyLanguage,
    Seconds,
    SettingsSection,
    Share,
    TaskOf,
    Text,
    TextOrNone,
    Url,
    Weight,
    WhenUnsure,
    replacement,
    section,
    setting,
)

GATING = """\
Decide whether the newest messages are a request that this project's support should take up.

Within the scope is what concerns this project, its software, its service or its use. Most people name neither: a task
or an unnamed "it" is about this project unless something else is plainly meant. A request need not be a question; what
somebody wants to do, or what goes wrong, is one as well. So is a task that other people are the reason for.

Out of it are greetings, thanks, small talk, jokes, opinions, prices and forecasts, announcements, complaints without a
problem to solve, questions about what particular people are or do, requests that only the operators of a service could
carry out on an account, and messages that clearly address somebody else or go on with a talk among people."""

SELECTION = """\
Choose the sources that are likely to hold the answer to the question.

Judge by what a source is said to cover, not by words that happen to match. Prefer few: name a further one only when it
adds something that the first lacks. When the question is about this project and no description names it, choose the
reference page or the guide in which it would stand. When it is about something else, choose none."""

ANSWER = """\
Answer the user's question from the given sources.

Say only what follows from them: no general knowledge, no guesses, no promises. You may combine commands and options
that they document, put the program's name before its sub-command, and fill in the user's own values. Of a part that
they leave open say "I can't say whether …"; if they answer nothing of it, give no answer at all.

Begin with the answer itself. Be brief and friendly; number the steps of a procedure, and write commands, paths,
settings and error texts exactly as they are documented. If the question calls for a person, as with accounts, payments,
bans or security incidents, point to the contact that the sources name, or give no answer."""

VERIFICATION = """\
Check a drafted answer before it is posted in public.

Good enough: it leaves out nothing that would make following it harmful, and asks nobody for passwords, keys or recovery
phrases. Documented commands and options that are combined, with the user's values filled in, are borne out.

Reject it when something is invented, contradicts a source, or belongs to another product or version. Do not reject it
for its style. When you cannot tell whether a statement is borne out, reject."""


class ModelSettings(SettingsSection):
    """An endpoint that speaks the OpenAI protocol, and a model on it."""

    base_url: Url = Field(description="The endpoint, up to and including the version, such as …/v1.")
    api_key: ApiKey = Field(description="The key for the endpoint; best kept in .env.")
    model: NonEmpty = Field(description="The model's name at the endpoint.")


class PriceSettings(SettingsSection):
    """What a million tokens cost in your currency, for --usage and --report; 0 and 0: unknown."""

    prompt: Weight = setting(0.0, "Of what is asked.")
    completion: Weight = setting(0.0, "Of what is answered.")


class LLMSettings(ModelSettings):
    """A language model, and how it is called."""

    vram_limit: Count = setting(24, "The least GPU memory in GB that Crynux runs the model on.")
    structured_output_method: Literal["function_calling", "json_schema"] = setting(
        "function_calling", "How the endpoint is asked for structured output."
    )
    timeout_seconds: Seconds = setting(60, "How long one call may take.")
    max_retries: CountOrZero = setting(2, "How often a call is repeated after a temporary failure.")
    retry_timeouts: Flag = setting(False, "Repeat calls that timed out as well; the endpoint may bill them twice.")
    price_per_million: PriceSettings = section(PriceSettings)


class AnswerSettings(SettingsSection):
    """How questions are answered."""

    llm: LLMSettings | None = setting(None, "The LLM that answers; null: no LLM, answers quote the best passage.")
    llm_enable_image: Flag = setting(
        False,
        "Show images to the LLM, at most five of a question and 10 MB together. It is told which ones it cannot see.",
    )
    llm_image_adapter: Literal["OpenAIImageAdapter"] = setting(
        "OpenAIImageAdapter", "The form in which the endpoint takes images."
    )
    image_download_timeout_seconds: Seconds = setting(20, "How long the download of one image may take.")
    image_download_max_retries: CountOrZero = setting(2, "How often a failed download is repeated.")
    graph_timeout_seconds: Seconds = setting(200, "How long one answer may take, all steps together.")
    max_concurrent_answers: Count = setting(32, "How many answers are in progress at once.")
    max_waiting_answers: Count = setting(
        1000, "How many may wait; beyond that the oldest is dropped, and a private question is refused."
    )
    enable_verification: Flag = setting(False, "Have the LLM check each draft before it is posted.")
    speculate: Flag = setting(
        False, "Select and load sources while the gate decides: sooner answers, for more calls to the LLM."
    )
    require_citations: Flag = setting(False, "Post no answer that cites none of its sources.")
    max_sources: Count = setting(3, "How many sources may be loaded for one answer.")
    max_answer_chars: Count = setting(
        3000,
        "The maximum length of an answer in characters. The LLM is asked once more for a shorter one; if that is too "
        "long as well, it is not posted.",
    )
    max_index_entries: Count = setting(
        30, "A longer index is cut to this many entries, those that rank best, before the LLM selects from it."
    )
    max_source_chars: Count = setting(
        24_000,
        "How many characters of sources one answer is given; of a long document, its outline and best sections.",
    )
    when_unsure: WhenUnsure = setting(
        "silent", "Where nobody addressed the bot and it is unsure: stay silent, or point to sections that may help."
    )
    approval: Approval = setting(
        "off",
        "Which answers wait in discord.review_channel_id until the team posts, edits or discards them: off, all, or "
        "unsure, which are all but those that cite only pages of which the search is sure (approval_below).",
    )
    approval_below: Share = setting(
        0.8, "With approval: unsure, answers wait if the search is less confident than this, from 0 to 1."
    )
    approval_minutes: Minutes = setting(1440, "How long an answer waits for approval; after that it is not posted.")
    reply_language: ReplyLanguage = setting(
        "question", "The language of the bot's own sentences: that of the question, or always the same."
    )
    out_of_scope_hint: Text = setting(
        "", "One sentence that says where to ask what the bot is not for; given to the LLM that answers."
    )
    project_introduction: Text = setting(
        "", "What the project is, in a few sentences; added to the instructions of every step."
    )
    gating_prompt: Annotated[NonEmpty, TaskOf("gate")] = setting(
        GATING, "The task of deciding what deserves an answer."
    )
    selection_prompt: Annotated[NonEmpty, TaskOf("select")] = setting(SELECTION, "The task of choosing sources.")
    answer_prompt: Annotated[NonEmpty, TaskOf("generate")] = setting(ANSWER, "The task of writing the answer.")
    verification_prompt: Annotated[NonEmpty, TaskOf("verify")] = setting(VERIFICATION, "The task of checking a draft.")


class _OwnAnswerSettings(SettingsSection):
    when_unsure: WhenUnsure | None = replacement("ai_response.when_unsure")
    approval: Approval | None = replacement("ai_response.approval")
    reply_language: ReplyLanguage | None = replacement("ai_response.reply_language")
    out_of_scope_hint: TextOrNone = replacement("ai_response.out_of_scope_hint")
    project_introduction: TextOrNone = replacement("ai_response.project_introduction")


_OwnTask: TypeAlias = NonEmpty | None
_OWN_TASKS: dict[str, Any] = {
    name: (_OwnTask, replacement(f"ai_response.{name}")) for name in AnswerSettings.task_keys().values()
}


class GuildAnswerSettings(create_model("_OwnTasks", __base__=_OwnAnswerSettings, **_OWN_TASKS)):
    """How questions of one server are answered."""
