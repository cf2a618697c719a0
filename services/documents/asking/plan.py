"""What a question asks for, read without a model: file, line, time, level, names, how many (DOCUMENT_QA 5.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from services.documents.asking import mentions, spelling, times, wording
from services.documents.asking.mentions import Mention
from services.documents.asking.times import Period
from services.documents.asking.wording import Aggregate, Position, Severity
from services.documents.store.protocol import Document
from services.extractive.words import STOP_WORDS

EXTENSIONS = [
    "log",
    "txt",
    "out",
    "err",
    "json",
    "jsonl",
    "yaml",
    "yml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "env",
    "properties",
    "xml",
    "csv",
    "tsv",
    "md",
    "rst",
    "adoc",
    "py",
    "js",
    "ts",
    "jsx",
    "tsx",
    "java",
    "go",
    "rs",
    "c",
    "cpp",
    "h",
    "rb",
    "php",
    "swift",
    "kt",
    "scala",
    "sh",
    "bash",
    "sql",
]
_FILE_LIKE = re.compile(
    rf"(?<![\w./:@-])[\w~-][\w.~/-]*\.(?:{'|'.join(sorted(EXTENSIONS, key=len, reverse=True))})(?![\w/-]|\.\w)",
    re.IGNORECASE,
)
_WORDS_FOR_ALL = frozenset(
    "error errors warn warning info debug trace fatal critical log logs file config output text data message".split()  # noqa: SIM905 (a list of so many is twice as long)
)
_WORD = re.compile(r"[\w.:/@-]*\w")
_NAME_PARTS = re.compile(r"[^\W\d_]{3,}")
_AT_THAT_TIME = re.compile(r"(?<!and )\bthen\b", re.IGNORECASE)
_STEM_NOUN = r"(?:\s+(?:logs?|file|config(?:uration)?|yaml|json|document|doc|output)\b)"


@dataclass(frozen=True, slots=True)
class Plan:
    question: str
    doc_ids: tuple[str, ...] = ()
    """The documents that the question names."""
    file: str | None = None
    """The file as the question names it."""
    unknown_file: str | None = None
    """A file that the question names and that is not there."""
    lines: tuple[int, int] | None = None
    period: Period | None = None
    severity: Severity | None = None
    mentions: tuple[Mention, ...] = ()
    position: Position | None = None
    wanted: int = 1
    """Of "the last three errors": 3."""
    which: int | None = None
    """Of "the second error": 2, counted from the end where negative."""
    aggregate: Aggregate | None = None
    anchor: Position | None = None
    """Of "what came after the first error": from where `position` is to be taken."""
    writers: tuple[str, ...] = ()
    """Names that may be those of components."""
    counts_lines: bool = False
    words: tuple[str, ...] = ()
    """What else the question speaks of."""
    text: str = ""
    """The question without the file's name: what is searched for."""

    @property
    def identifiers(self) -> tuple[str, ...]:
        return tuple(mention.text for mention in self.mentions)

    def as_dict(self) -> dict[str, object]:
        """For logs and tests: what was understood, without empty parts."""
        facts: dict[str, object] = {
            "file": self.file,
            "unknown_file": self.unknown_file,
            "lines": list(self.lines) if self.lines else None,
            "time": self.period.text if self.period else None,
            "severity": list(self.severity.levels) if self.severity else None,
            "identifiers": list(self.identifiers),
            "position": self.position.value if self.position else None,
            "aggregate": self.aggregate.value if self.aggregate else None,
            "words": list(self.words),
        }
        return {name: value for name, value in facts.items() if value}


def plan(question: str, documents: Sequence[Document]) -> Plan:
    """`documents`: those in scope, for the names of files."""
    doc_ids, file, rest = _file(question, documents)
    unknown = None
    if not doc_ids:
        other = _FILE_LIKE.search(rest)
        if other and "." in other[0] and not _is_host(other[0]):
            unknown = other[0]
            rest = rest.replace(other[0], " ", 1)
    searched = " ".join(rest.split())
    rest = spelling.mended(rest)
    lines = wording.line_span(rest if doc_ids else question)
    rest = wording.without_line_span(rest) if lines else rest
    period = times.find(rest)
    if period is not None:
        # "10:15, what happened then": the time has been named; "and then" asks for what followed.
        rest = _AT_THAT_TIME.sub(" ", rest.replace(period.text, " ", 1))
    with_level = rest
    level = wording.severity(rest)
    if level is not None:
        rest = rest.replace(level.text, " ", 1)
    which = wording.which_of_them(with_level)
    found, rest = mentions.find(rest)
    return Plan(
        question=question,
        doc_ids=doc_ids,
        file=file,
        unknown_file=unknown,
        lines=lines,
        period=period,
        severity=level,
        mentions=found,
        position=wording.position(rest) or _counted_from(which),
        anchor=wording.first_or_last(rest),
        writers=wording.writers(question),
        counts_lines=wording.counts_lines(question),
        wanted=wording.how_many_wanted(rest),
        which=which,
        aggregate=wording.aggregate(rest),
        words=_content(rest, _stem_words(documents)),
        text=searched or question,
    )


def _counted_from(which: int | None) -> Position | None:
    if which is None:
        return None
    return Position.FIRST if which > 0 else Position.LAST


def _content(rest: str, names: frozenset[str]) -> tuple[str, ...]:
    """`names`: words that say which file is meant."""
    words = _WORD.findall(wording.content(rest))
    kept = [word for word in words if word.casefold() not in STOP_WORDS | names and len(word) > 1]
    return tuple(dict.fromkeys(kept))


def _stem_words(documents: Sequence[Document]) -> frozenset[str]:
    """Of one file `runner.log`: who asks what errors the runner had speaks of this file. Of several it is a guess."""
    if len(documents) != 1:
        return frozenset()
    stem = documents[0].filename.rsplit("/", 1)[-1].rsplit(".", 1)[0].casefold()
    return frozenset({stem, *_NAME_PARTS.findall(stem)}) - _WORDS_FOR_ALL


def _file(question: str, documents: Sequence[Document]) -> tuple[tuple[str, ...], str | None, str]:
    """The documents named, the name as written, and the question without it. The longest name wins."""
    names: dict[str, list[str]] = {}
    for doc in documents:
        for name in _names(doc):
            names.setdefault(name, []).append(doc.doc_id)
    for name in sorted(names, key=lambda name: (-len(name), name)):
        if "." in name or "/" in name:
            # `db/app.yaml` is not named by `mydb/app.yaml`, nor `app.log` by `app.log.1`.
            pattern = rf"(?<![\w./-]){re.escape(name)}(?![\w-]|\.\w|/\w)"
        else:
            pattern = rf"(?<![\w./-]){re.escape(name)}(?![\w./-]\w){_STEM_NOUN}"
        found = re.search(pattern, question, re.IGNORECASE)
        if found:
            ids = tuple(dict.fromkeys(names[name]))
            # An underscore keeps `app.log:42` and "in app.log?" readable for whoever looks for lines.
            return ids, found[0], f"{question[: found.start()]} {_kept_line(question[found.end() :])}"
    return (), None, question


def _kept_line(rest: str) -> str:
    """`:42` behind a file's name is a line."""
    return re.sub(r"^:(\d{1,7}(?:-\d{1,7})?)(?![\d:.])", r" line \1", rest)


def _names(doc: Document) -> list[str]:
    """How people call a file: by its whole name, its last part, or its stem."""
    whole = doc.filename.casefold()
    last = whole.rsplit("/", 1)[-1]
    stem = last.rsplit(".", 1)[0]
    titles = [doc.origin.extra[key].casefold() for key in ("title", "topic") if doc.origin.extra.get(key)]
    # "The ERROR log" speaks of a level, and "the log" of any file.
    stems = () if stem in _WORDS_FOR_ALL else (stem,)
    return [name for name in dict.fromkeys((whole, last, *stems, *titles)) if len(name) > 2]  # noqa: PLR2004 (shorter ones name nothing)


def _is_host(text: str) -> bool:
    """`example.py` is a file, `api.example.sh` rather a host; only what has one dot or a path is taken for a file."""
    return "/" not in text and text.count(".") > 2  # noqa: PLR2004 (dots)
