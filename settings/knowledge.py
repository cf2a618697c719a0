"""The settings of knowledge: the section, the default tasks of its steps, and the settings of one server. The output
format, and the protection against text from outside, are added to a task in code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from settings.answering import LLMSettings
from settings.kinds import (
    Addresses,
    AddressesOrNone,
    Count,
    Folders,
    Globs,
    Hours,
    KnowledgePath,
    LearnedPath,
    NonEmpty,
    PathOrNone,
    QaIdOrEmpty,
    Rate,
    Seconds,
    SettingsSection,
    TaskOf,
    Texts,
    TopicNames,
    ValueHelp,
    setting,
)

KNOWLEDGE = Path("data/knowledge-base")
LEARNED = Path("data/team-knowledge")

SUMMARIZATION = """\
Describe a document for the index from which sources are chosen.

Say in a few short sentences which questions the document can answer: its subject, and the tasks, products and versions
that it covers. Then list, separated by commas and as they are written, the commands, options, variables and error texts
that people would ask about. Say what it warns of, and what it says is not possible.

Do not repeat the instructions themselves, and do not judge the document."""

TEAM_CLASSIFICATION = """\
File a conversation between users and the team under a topic of the team's knowledge.

Skip it when it would not help to answer somebody else later: chatter, thanks and greetings; an answer that cannot
be understood without what is missing here ("this error" without the error, "see above"); news that has passed; a
matter of one account or person only; a team reply that settles nothing. A reply that says where to turn ("write to
support at …") is an answer: keep it.

Otherwise choose the topic from the index that fits. Open a new one only when none does; name it by its subject,
broad enough for more such conversations to come. When unsure whether it helps, skip."""

TEAM_INTEGRATION = """\
Decide how a new conversation goes into its topic.

Skip it when the topic already says all of it.

Take an earlier conversation out only when the new one makes it wrong or wholly superfluous: the same question with a
newer, different or more complete answer. Keep whatever still says something true that the new one does not, and say
which part of it no longer holds. What the team said later holds over what it said before. When in doubt, take out
nothing."""

TEAM_SUMMARIZATION = """\
Describe a topic of the team's knowledge for the index from which sources are chosen.

Say in a few short sentences of plain English which questions its conversations answer. Then list, separated by commas
and as they are written, the products, commands and error messages in them. Name the problems and leave the solutions
out. Name no people."""

TEAM_IMAGE_SUMMARY = """\
Put into words what each image contributes to the conversation, for readers who will not see it.

Transcribe error messages, settings, versions, commands and figures that matter to the question or to its answer,
letter by letter. Leave out decoration, avatars and window frames, and leave out names, addresses, keys and other
personal data. Use one to three sentences for an image. If it shows nothing that matters, or cannot be made out, say
so; do not guess."""


class KnowledgeSettings(SettingsSection):
    """Where knowledge comes from and how it is kept up to date."""

    llm: LLMSettings | None = setting(None, "The LLM for knowledge work; null: the one of ai_response.")
    sources_dir: KnowledgePath = setting(KNOWLEDGE / "sources", "The folder of documents.")
    source_folders: Folders = setting((), "The folders below kb.sources_dir with documents; empty: all of it.")
    links_file_path: KnowledgePath = setting(
        KNOWLEDGE / "links.txt", "The list of web pages, and of lines that bring many sources: docs/knowledge-base.md."
    )
    index_path: KnowledgePath = setting(KNOWLEDGE / "index.txt", "The index of descriptions.")
    index_cache_path: KnowledgePath = setting(
        KNOWLEDGE / "index-cache.json", "What is known about each source, so that nothing is done twice."
    )
    web_fetch_cache_dir: KnowledgePath = setting(KNOWLEDGE / "web-cache", "The text of fetched pages.")
    web_fetch_timeout_seconds: Seconds = setting(30, "How long fetching one page may take.")
    web_fetch_renderer: Literal["http", "browser"] = setting(
        "http", "Fetch pages as they are, or render them in a browser."
    )
    web_fetch_private_hosts: Texts = setting((), "Hosts that may be fetched from a private address.")
    url_download_concurrency: Count = setting(3, "How many pages are fetched at once.")
    url_requests_per_second: Rate = setting(2, "How many requests per second go to one host.")
    summarization_concurrency: Count = setting(5, "How many descriptions are written at once.")
    url_refresh_min_interval_hours: Hours = setting(72, "How long a fetched page counts as fresh.")
    runtime_refresh_tick_seconds: Seconds = setting(300, "How often sources are checked for changes.")
    file_watch_debounce_seconds: Seconds = setting(2, "How long files must be unchanged before an update starts.")
    max_source_bytes: Count = setting(2_000_000, "Larger documents and pages are left out.")
    include: Globs = setting((), "Only files that match one of these are documents; empty: all that are documentation.")
    exclude: Globs = setting((), "Files that match one of these are no documents.")
    max_pages_per_site: Count = setting(2_000, "How many sources one line of kb.links_file_path brings at most.")
    source_base_url: Addresses = setting(
        "", "Where the files of kb.sources_dir are published, so that answers link to them; or one URL a folder."
    )
    site_generator: Literal["auto", "mkdocs", "sphinx", "vitepress", "docusaurus", "mdbook"] = setting(
        "auto",
        "What makes the site at kb.source_base_url: the form of links; auto: by its configuration beside the files.",
    )
    summarization_prompt: Annotated[NonEmpty, TaskOf("summarise")] = setting(
        SUMMARIZATION, "The task of describing a document."
    )
    team_raw_dir: LearnedPath = setting(LEARNED / "raw", "The archive of captured conversations.")
    team_topics_dir: LearnedPath = setting(LEARNED / "topics", "The topic files made from the archive.")
    team_index_path: LearnedPath = setting(LEARNED / "index-team.txt", "The index of topics.")
    team_index_cache_path: LearnedPath = setting(
        LEARNED / "index-team-cache.json", "What is known about each topic file."
    )
    team_state_path: LearnedPath = setting(LEARNED / "state.json", "How far the archive has been filed.")
    qa_raw_last_processed_id: QaIdOrEmpty = setting(
        "", "Where classification starts in an archive without decisions; empty: at its start."
    )
    settle_minutes: Annotated[float, Field(ge=0, strict=True), ValueHelp("a number of minutes of 0 or more")] = setting(
        10, "A captured conversation is filed when nothing was added for this long; 0: at once."
    )
    regeneration_concurrency: Count = setting(
        8, "How many calls of the LLM a rebuild (--regen) makes at once; 1 where it answers one at a time."
    )
    max_topic_chars: Count = setting(40_000, "A longer topic continues in a second file.")
    internal_topics: TopicNames = setting(
        frozenset(),
        "Topics for the team only, with all their files: used in private questions of team members, nowhere else.",
    )
    team_classification_prompt: Annotated[NonEmpty, TaskOf("classify")] = setting(
        TEAM_CLASSIFICATION, "The task of filing a conversation under a topic."
    )
    team_integration_prompt: Annotated[NonEmpty, TaskOf("integrate")] = setting(
        TEAM_INTEGRATION, "The task of integrating a conversation into its topic."
    )
    team_summarization_prompt: NonEmpty = setting(TEAM_SUMMARIZATION, "The task of describing a topic for the index.")
    team_image_summary_prompt: Annotated[NonEmpty, TaskOf("summarise_images")] = setting(
        TEAM_IMAGE_SUMMARY, "The task of summarising the images of a conversation."
    )

    @property
    def document_folders(self) -> tuple[Path, ...]:
        """The folders of documents, each whole."""
        return tuple(self.sources_dir / each for each in self.source_folders) or (self.sources_dir,)


class GuildKnowledgeSettings(SettingsSection):
    """What one server alone is answered from, beside the shared knowledge of `kb`."""

    sources_dir: PathOrNone = setting(
        None, "Its folder of documents; null: guilds/<id>/knowledge-base/sources below app.data_dir."
    )
    links_file_path: PathOrNone = setting(
        None, "Its list of web pages; null: guilds/<id>/knowledge-base/links.txt below app.data_dir."
    )
    source_base_url: AddressesOrNone = setting(
        None, "Where the files of its own folder are published, as kb.source_base_url says of the shared ones."
    )
    internal_topics: TopicNames | None = setting(None, "Replaces kb.internal_topics for what its team has taught.")
