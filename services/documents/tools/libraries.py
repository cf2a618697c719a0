"""The settings of the document libraries, and the arguments and results of their tools, which share their code."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from clock import HOUR
from model.source_ids import bare_name, topic_in
from services.documents.askers_files import AskersFiles
from services.documents.asking.passages import Citation
from services.documents.asking.rewriting import ConversationContext
from services.documents.store import protocol
from services.documents.store.protocol import SearchMode, Weights
from services.knowledge import LibrarySearch, SourceUnavailable, address_in, pair_for_model
from services.search import StoredPassage

Metadata = Mapping[str, str]

CASE = "answer_from_case_evidence"
USER = "answer_from_user_kb"
TEAM = "answer_from_team_kb"
GLOBAL = "answer_from_global_kb"

DEFAULT_K = 5
MAX_K = 20
MAX_QUESTION_CHARS = 1000

MINILM_THRESHOLD = 0.25
"""For all-MiniLM-L6-v2: keeps 98 of 100 right passages, refuses every question about something else.

Derived by `python -m benchmarks.documents gate`; another embedder needs a figure of its own.
"""

KEYWORD_THRESHOLD = 0.35

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "question": {
            "type": "string",
            "maxLength": MAX_QUESTION_CHARS,
            "description": "One complete question, with every name, number and time that matters in it.",
        },
        "k": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_K,
            "description": f"How many passages to read; {DEFAULT_K} when left out, 3 to 10 is useful.",
        },
    },
    "required": ["question"],
    "additionalProperties": False,
}
"""The JSON schema of every tool's arguments. It has no asker or place, which a model must not choose."""


class Status(StrEnum):
    OK = "ok"
    NOT_FOUND = "not_found"
    NOT_INDEXED = "not_indexed"
    INDEXING = "indexing"
    REFUSED_IRRELEVANT = "refused_irrelevant"
    DENIED = "denied"
    RETRIEVAL_ERROR = "retrieval_error"
    SYNTHESIS_ERROR = "synthesis_error"
    INVALID = "invalid"


NO_RESULT: Mapping[Status, str] = {
    Status.NOT_INDEXED: "Nothing has been stored here yet.",
    Status.INDEXING: "The documents are still being indexed; ask again in a moment.",
    Status.NOT_FOUND: "No entry was found.",
    Status.REFUSED_IRRELEVANT: "The search returned nothing close enough to this question; another tool may know.",
    Status.DENIED: "This is not available here.",
    Status.RETRIEVAL_ERROR: "The search is temporarily unavailable; try again later.",
    Status.SYNTHESIS_ERROR: "The passages could not be condensed; the best of them follow as they are.",
    Status.INVALID: "This tool cannot be used here.",
    Status.OK: "",
}


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The asker of a question and its place. Set by the bot, never by the model."""

    guild_id: int | None
    thread_id: int | None
    asker_id: int
    team_id: str | None = None
    conversation: ConversationContext = field(default_factory=ConversationContext)
    execution_id: str = ""  # the id of the answer in log lines
    thread_is_public: bool = True
    asker_can_view: bool = False  # True if the asker can view the thread now; a private one only as its member
    files: AskersFiles | None = None  # chooses the files that may be used; None: all of the thread

    @property
    def is_read_by_others(self) -> bool:
        """Return True if people other than the asker can read the answer."""
        return self.thread_id is not None and self.thread_is_public


@dataclass(frozen=True, slots=True)
class QAResult:
    """An answer, or the reason why there is none."""

    answer: str
    status: Status
    sources: tuple[str, ...] = ()  # names, each once, the best first
    chunk_count: int = 0
    confidence: float = 0.0  # mean cosine of the passages used, between 0 and 1; 0 when nothing was found
    citations: tuple[Citation, ...] = ()
    query_used: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict[str, Any])
    cached: bool = False
    timings_ms: Mapping[str, float] = field(default_factory=dict[str, float])
    posters: Mapping[str, int] = field(default_factory=dict[str, int])
    """Who posted each file, by source, if that is neither the asker nor a team member."""
    unverified: int = 0  # the number of the model's citations and quotes that are in no passage


_TITLE_CHARS = 100
SECTION_CHARS = 3000
"""A longer section of documentation is cut down to the passage that was found."""
_CLOCK = re.compile(r"(?:^|[T ])(\d{2}:\d{2}:\d{2}(?:[.,]\d+)?Z?)")


@dataclass(frozen=True, slots=True)
class PublishedReader:
    """Functions that turn the passages of published text into text and metadata.

    Attributes:
        namespace: of its sources.
        unit: identifies the section or pair of a passage; `text`: its text for quotes and for a model.
        about: the metadata of a passage.
    """

    namespace: Literal["team", "kb"]
    text: Callable[[LibrarySearch, StoredPassage], Awaitable[str]]
    unit: Callable[[StoredPassage], Hashable]
    about: Callable[[StoredPassage], Metadata]


@dataclass(frozen=True, slots=True, kw_only=True)
class KBConfig:
    """The settings of one document library: its description for a model, its access rule, its collections, and the
    form of passages and answers.

    Attributes:
        system_prompt, citation_format: how a model is to condense and cite passages.
        admits: returns True if an asker may use it.
        published: reads the passages, for published text; None: the library is kept in collections of documents.
        keyword_threshold: like `relevance_threshold`, if only words are compared: the least share of the question's
            words in the best passage.
    """

    name: str  # of the tool, as the model calls it
    description: str  # purpose, sample questions, what comes back, and which tool to use instead
    system_prompt: str
    citation_format: str
    collection: Callable[[str], str]  # returns the name of the collection by scope id
    scope_noun: str = ""  # what a scope id stands for, such as `a thread`; empty: there is one collection for all
    scope_of: Callable[[ToolContext], str] = lambda _: ""  # returns the scope id of a call; empty: it has none
    admits: Callable[[ToolContext], bool] = lambda _: True
    published: PublishedReader | None = None
    cache_ttl: float  # how long answers are kept, in seconds
    header: Mapping[str, str]  # the labels in the header of a passage, and the metadata behind each
    cited: Mapping[str, str]  # the metadata in a citation, and the format of each
    named_by: Sequence[str]  # the metadata that name a source: the first with a value counts, else `unnamed`
    unnamed: str
    footer: str  # the words before the sources below an answer, of which `most_sources` are named
    most_sources: int = 5
    nothing_yet: str = NO_RESULT[Status.NOT_INDEXED]  # the answer if the collection is empty
    search_mode: SearchMode = SearchMode.HYBRID
    exact_paths: bool = False  # True to find lines, times and levels exactly instead of ranking
    spread: bool = True  # True to take two passages of a document at most before those of others
    relevance_threshold: float | None = None  # the least cosine of the best passage; valid for one embedder only
    keyword_threshold: float | None = None
    answer_char_allowance: int | None = None
    max_answer_tokens: int = 1200
    filterable_fields: frozenset[str] = frozenset()
    weights: Weights = field(default_factory=Weights)

    @property
    def requires_scope_id(self) -> bool:
        return bool(self.scope_noun)

    def get_collection_name(self, scope_id: str | None) -> str:
        """Return the collection's name for a scope. Raises ValueError: `scope_id` is missing or not valid."""
        if self.scope_noun and not scope_id:
            raise ValueError(f"{self.scope_noun} is needed")
        return self.collection(scope_id or "")

    def format_chunk_metadata(self, metadata: Metadata, score: float | None) -> str:
        """Return the header of a passage: `Score: 0.94, Source: app.log`. Parts without a value are left out."""
        shown = self._display_values(metadata) | {"score": "" if score is None else f"{score:.2f}"}
        labels = {"Score": "score", **self.header}
        return ", ".join(f"{label}: {shown[key]}" for label, key in labels.items() if shown.get(key))

    def extract_source_name(self, metadata: Metadata) -> str:
        return next((metadata[key] for key in self.named_by if metadata.get(key)), self.unnamed)

    def get_citation_format(self) -> str:
        return self.citation_format

    def cite(self, metadata: Metadata) -> str:
        """Return the citation of a passage, for sentences that the program and no model writes."""
        shown = self._display_values(metadata)
        return "".join(form.format(shown[key]) for key, form in self.cited.items() if shown.get(key))

    def format_response(self, answer: str, sources: Sequence[str], chunk_count: int, confidence: float) -> str:
        """Append `📎 Sources: a.log, b.yaml (+2 more) (5 chunks, 94% relevance)` to the answer, if there are sources.

        The wording is fixed, also for a single chunk: `(1 chunks, …)`.
        """
        relevance = round(min(max(confidence, 0.0), 1.0) * 100)
        return self.with_sources(answer, sources, f" ({chunk_count} chunks, {relevance}% relevance)")

    def with_sources(self, answer: str, sources: Sequence[str], figures: str = "") -> str:
        """Return the answer with the names of its sources, for people."""
        if not sources:
            return answer
        named, left = ", ".join(sources[: self.most_sources]), len(sources) - self.most_sources
        return f"{answer}\n\n{self.footer} {named}{f' (+{left} more)' if left > 0 else ''}{figures}"

    def no_result_message(self, reason: Status) -> str:
        """Return the sentence for a missing answer, without the details that the core adds."""
        return self.nothing_yet if reason is Status.NOT_INDEXED else NO_RESULT[reason]

    def _display_values(self, metadata: Metadata) -> dict[str, str]:
        """Return the metadata with derived values: source, lines, time of day, a title unlike the source, two tags."""
        source, title = self.extract_source_name(metadata), metadata.get("title", "")
        first = metadata.get("line_start", "")
        last = metadata.get("line_end", first)
        at = _CLOCK.search(metadata.get("timestamp", ""))
        tags = [tag.strip() for tag in metadata.get("tags", "").split(",") if tag.strip()]
        return {
            **metadata,
            "source": source,
            "line": first if first == last else "",
            "lines": f"{first}-{last}" if first and first != last else "",
            "clock": at[1] if at else "",
            "titled": "" if title == source else title,
            "tags": ", ".join(tags[:2]),
        }


async def _section(search: LibrarySearch, passage: StoredPassage) -> str:
    texts = [each.text for each in await search.section(passage)]
    text = "\n\n".join(texts) if 0 < sum(map(len, texts)) <= SECTION_CHARS else passage.text
    return "\n\n".join([*filter(None, [" › ".join(passage.headings)]), text])


def _about_article(passage: StoredPassage) -> Metadata:
    name = bare_name(passage.source_id)
    url = address_in(passage.source_id)
    category = name.rpartition("/")[0] if url is None else url.split("/")[2]  # the folder, or the site
    title = (passage.title or name.rsplit("/", 1)[-1])[:_TITLE_CHARS]
    return {"kb_article_id": name, "title": title, "category": category, "heading": " › ".join(passage.headings)}


async def _pair(search: LibrarySearch, passage: StoredPassage) -> str:
    """Return the whole conversation, with notes about superseded statements."""
    try:
        pair = pair_for_model((await search.load(passage.source_id)).text, passage.anchor)
    except SourceUnavailable:
        pair = ""
    return pair or "\n".join([*(f"User: {asked}" for asked in passage.headings), f"Team: {passage.text}"])


def _about_topic(passage: StoredPassage) -> Metadata:
    topic = topic_in(passage.source_id)
    return {"topic": topic, "date": passage.day}


ARTICLES = PublishedReader("kb", _section, lambda passage: (passage.source_id, passage.section), _about_article)
TOPICS = PublishedReader("team", _pair, lambda passage: (passage.source_id, passage.anchor), _about_topic)

CASE_EVIDENCE = KBConfig(
    name=CASE,
    description="""\
Answers from the files posted in this thread: logs, configurations, code, metrics, notes.
Use it for what is in those files: errors, values, one line, one moment, the first, the last, how many.
Ask such as: "What is on line 1045 of server.log?", "When did the first ERROR appear?", "How many timeouts are there?",
"What happened to req-7d3f?", "Which port does the db service expose in compose.yaml?"
Gives a short factual answer with file, line and time of each statement, and says so when there is no such entry.
Not for general knowledge: documentation is in answer_from_global_kb, the team's words in answer_from_team_kb.""",
    system_prompt="""\
You read evidence: logs, configuration and other files from one support case. Name the exact file, line and time of
everything you state. Quote error codes and messages letter by letter. Keep events in the order in which they happened,
and tell severities apart: a warning is not an error. Say which part of the question the evidence does not show.""",
    citation_format="server.log:1045 (14:32:15Z), with the line's own number and time",
    collection=protocol.case_collection,
    scope_noun="a thread",
    scope_of=lambda ctx: str(ctx.thread_id or ""),
    admits=lambda ctx: ctx.asker_can_view,
    cache_ttl=HOUR,
    header={"Source": "source", "Line": "line", "Lines": "lines", "Time": "timestamp"},
    named_by=("filename", "source_id"),
    unnamed="Unknown",
    cited={"source": "{}", "line": ":{}", "lines": ":{}", "clock": " ({})"},
    footer="📎 Sources:",
    most_sources=3,
    nothing_yet="No file has been posted in this thread yet; ask the user to post it here.",
    # No threshold: the closest content is always worth showing.
    exact_paths=True,
    spread=False,
    max_answer_tokens=500,
    filterable_fields=frozenset({"filename"}),
)

USER_KB = KBConfig(
    name=USER,
    description="""\
Answers from the personal runbooks of the person who asks.
Use it when they speak of their own procedure: "my runbook", "how do I usually do this", "the steps I wrote down".
Ask such as: "What are my steps for a database timeout?", "What does my deploy runbook say about rollback?",
"Which check comes before the restart in my procedure?", "Who do I call according to my notes?"
Gives the steps in order with the document's title and section.
Not for the team's answers (answer_from_team_kb) or product documentation (answer_from_global_kb).""",
    system_prompt="""\
You read a person's own runbooks. Give the procedure as numbered steps, in the document's order and in the words that
its author uses; leave no step out, keep every branch ("if it still fails, …") where it stands. Name the document.""",
    citation_format='"Database Timeout Runbook" section 3, with the title and section of the document',
    collection=protocol.user_collection,
    scope_noun="a user",
    scope_of=lambda ctx: str(ctx.asker_id),  # the owner: nobody can ask for another's
    admits=lambda ctx: not ctx.is_read_by_others,
    cache_ttl=24 * HOUR,
    header={"Doc": "source", "Section": "section", "Category": "category", "Tags": "tags"},
    named_by=("document_title",),
    unnamed="Unknown document",
    cited={"source": '"{}"', "section": " section {}"},
    footer="📚 From your runbooks:",
    nothing_yet="There are no runbooks yet.",
    relevance_threshold=MINILM_THRESHOLD,
    keyword_threshold=KEYWORD_THRESHOLD,
)

TEAM_KB = KBConfig(
    name=TEAM,
    description="""\
Answers from what this team told users before.
Use it for known problems, workarounds and house rules that team members have explained.
Ask such as: "How did we answer login errors after the update?", "What is our workaround for slow sync?",
"Do we support version 2 on Windows?", "What do we tell people whose tokens have expired?"
Gives what the team said, with topic and date.
Not for files of this thread: use answer_from_case_evidence; not for official documentation: answer_from_global_kb.""",
    system_prompt="""\
You read how this team answered before. Only what stands behind "Team:" is the team's word; what users wrote is their
question. Keep the team's terms and practices, and say when and under which topic they answered.""",
    citation_format='topic "login-errors" (2026-01-30), with the topic and the date',
    collection=lambda team_id: f"team_{team_id}_kb",
    scope_noun="a team",
    scope_of=lambda ctx: ctx.team_id or str(ctx.guild_id or ""),
    published=TOPICS,
    cache_ttl=12 * HOUR,
    header={"Team": "team_name", "Topic": "topic", "Date": "date"},
    named_by=("topic",),
    unnamed="Unknown topic",
    cited={"source": 'topic "{}"', "date": " ({})"},
    footer="👥 Team notes:",
    nothing_yet="The team has no notes yet.",
    relevance_threshold=MINILM_THRESHOLD,
    keyword_threshold=KEYWORD_THRESHOLD,
)

GLOBAL_KB = KBConfig(
    name=GLOBAL,
    description="""\
Answers from the product documentation and other published sources.
Use it for documented behaviour, settings, standards and known causes.
Ask such as: "What does the retry_limit setting do?", "Which causes does the documentation name for error E-1042?",
"How is single sign-on configured?", "What are the limits of the API?", "Which versions are supported?"
Gives an explanation with the articles it comes from.
Knows nothing about this user's files: use answer_from_case_evidence for anything in them.""",
    system_prompt="""\
You read product documentation and teach from it. Where it names several ways, give each with its trade-offs; name the
official source of each statement; mention the pitfalls and the reasons that it gives.""",
    citation_format='KB-1234 "API Performance Guide", with the id and title of the article',
    collection=lambda _: "global_kb",
    published=ARTICLES,
    cache_ttl=168 * HOUR,
    header={"Article": "kb_article_id", "Title": "title", "Category": "category"},
    named_by=("kb_article_id", "title"),
    unnamed="Unknown article",
    cited={"source": "{}", "titled": ' "{}"'},
    footer="📖 Knowledge Base:",
    nothing_yet="No documentation has been indexed yet.",
    relevance_threshold=MINILM_THRESHOLD,
    keyword_threshold=KEYWORD_THRESHOLD,
)

LIBRARIES = (CASE_EVIDENCE, USER_KB, TEAM_KB, GLOBAL_KB)
