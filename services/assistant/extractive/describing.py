"""Descriptions without a model: a document's own headings, and the terms that distinguish it from others."""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import Final

from model.source_ids import TOPIC
from services.knowledge import answered_pairs
from services.search import STOP_WORDS, asking_sentences, stem
from services.search.text import BlockKind, read
from services.storage import in_thread

_MAX_READ_CHARS: Final = 100_000
"""The beginning says what a document is about; the rest would only cost time."""
_HEADINGS: Final = 8
_TERMS: Final = 12
_SENTENCE_CHARS: Final = 200
_HEADING_CHARS: Final = 80
_MIN_TERM_CHARS: Final = 4
_MIN_PROSE_WORDS: Final = 4
_SHARED_WORDS: Final = 3
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[._-][A-Za-z0-9]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_LONG_WORD = re.compile(r"[^\W\d_]\w{2,19}")
# An underscore within a word is no markup: `require_mount` keeps its.
_MARKUP = re.compile(r"!?\[([^\[\]]*+)\]\([^)\[]*+\)|[*`#>|]+|(?<![^\W_])_+|_+(?![^\W_])")
_ADDRESS = re.compile(r"\b\w+://\S+")
_KEY: Final = "extractive 3"
"""Raise the number when descriptions of the same text would change; that of topics stands in their describer."""
_SAYS_NOTHING = STOP_WORDS | frozenset(
    # How people ask, whatever it is about.
    """
    able already also another anybody anyone anything best better case correct correctly currently different easy
    else error exactly example existing find fine first get getting good got guess guys happen happens hello help
    hey hope idea ideas instead issue issues just kind know last like look looking looks make makes making maybe
    mean means need needed needs new okay one ones people please possible probably problem question questions quick
    really right safe saw say says see seem seems show simple some somebody someone something still sure tell thanks
    thing things think time tried try trying understand use used uses using wait want wanted wants way ways well
    wonder wondering work worked working works would wrong
    """.split()  # noqa: SIM905 (shorter so)
)


class ExtractiveDescriber:
    """Implements `Describer` for documents."""

    key = _KEY

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        _ = timeout_seconds  # it takes some milliseconds, which is still too much for the event loop
        return await in_thread(describe, source_id, text)


class ExtractiveTopicDescriber:
    """Implements `Describer` for topics of the team."""

    key = f"{_KEY}, topics 2"

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        _ = timeout_seconds  # as above
        return describe_topic(source_id, text)


def describe_topic(source_id: str, text: str) -> str:
    """One or two sentences about the text of a topic file: the words that its questions share, or else its name; the
    questions, newest last; its distinctive words. Where a pair has no question, its answer stands for it.
    """
    pairs = [(asked, answered) for _, asked, answered in answered_pairs(text[-_MAX_READ_CHARS:])]
    matters = [asked or answered for asked, answered in pairs]
    questions = [each for each in dict.fromkeys(map(_question, matters)) if each][-_HEADINGS:]
    name = _shared(matters) or _name(source_id.removeprefix(TOPIC))
    title = name[:1].upper() + name[1:]
    opening = f"{title}: {', '.join(questions)}" if questions else f"{title}."
    words = _ADDRESS.sub(" ", "\n".join(f"{asked}\n{answered}" for asked, answered in pairs))
    return _with_mentions(opening, plain(words))


def _shared(asked: list[str]) -> str:
    """Return the most frequent words that most of several questions share, in the order of the first question."""
    words: dict[str, str] = {}  # as first written
    holders: Counter[str] = Counter()
    for question in asked:
        own = {stem(word): word for word in content_words(question)}
        words |= {each: word for each, word in own.items() if each not in words}
        holders.update(own.keys())
    often = [(each, count) for each, count in holders.most_common() if count > 1 and 2 * count > len(asked)]
    best = {each for each, _ in often[:_SHARED_WORDS]}
    return ", ".join(word for each, word in words.items() if each in best)


def content_words(sentence: str) -> tuple[str, ...]:
    """Return the words of a question in lower case, without stop words and phrases that every question has."""
    words = (word.lower() for word in _LONG_WORD.findall(sentence))
    return tuple(dict.fromkeys(sys.intern(word) for word in words if word not in _SAYS_NOTHING))


def describe(source_id: str, text: str) -> str:
    """Two or three sentences: the title and the first sentence, the headings, the most frequent distinctive words."""
    text = text[:_MAX_READ_CHARS]
    article = read(source_id, text)
    headings = list(dict.fromkeys(plain(title) for part in article.sections for title in part.headings if title))
    title = headings[0] if headings else _name(source_id)
    blocks = [block for part in article.sections for block in part.blocks if _is_prose(block.text)]
    blocks.sort(key=lambda block: block.kind is not BlockKind.PROSE)  # a list says what a page is about, if need be
    opening = _first_sentence(blocks[0].text) if blocks else ""
    said = f"{title}: {opening}" if opening else f"{title}."
    if headings[1:]:
        said += f" Covers {', '.join(heading[:_HEADING_CHARS] for heading in headings[1 : 1 + _HEADINGS])}."
    return _with_mentions(said, _ADDRESS.sub(" ", plain(text)))


def plain(text: str) -> str:
    """Put `text` into one line, without markup."""
    return " ".join(_MARKUP.sub(r"\1", text).split())


def _with_mentions(said: str, words: str) -> str:
    """Append to `said` the most frequent of `words` that it does not contain."""
    counted = Counter(
        word for word in _WORD.findall(words) if len(word) >= _MIN_TERM_CHARS and word.lower() not in STOP_WORDS
    )
    lower = said.lower()
    terms = [word for word, _ in counted.most_common(4 * _TERMS) if word.lower() not in lower][:_TERMS]
    return f"{said} Mentions {', '.join(terms)}." if terms else said


def _question(asked: str) -> str:
    """Return the sentence that asks, or else the first one."""
    asking, others = asking_sentences(asked)
    return _cut(plain(next(iter([*asking, *others]), "")), _HEADING_CHARS)


def _first_sentence(text: str) -> str:
    sentence = _cut(_SENTENCE_END.split(plain(text[: 4 * _SENTENCE_CHARS]), maxsplit=1)[0], _SENTENCE_CHARS)
    return sentence if sentence.endswith((".", "!", "?", "…")) else f"{sentence}."


def _cut(sentence: str, max_chars: int) -> str:
    return sentence if len(sentence) <= max_chars else sentence[:max_chars].rpartition(" ")[0] + " …"


def _name(source_id: str) -> str:
    path, _, last = source_id.partition("?")[0].rstrip("/").rpartition("/")
    named = last if path.endswith(":/") else last.rpartition(".")[0] or last  # a host has no file ending
    return plain(re.sub(r"[-_.]+", " ", named)) or source_id


def _is_prose(text: str) -> bool:
    return len(text.split()) >= _MIN_PROSE_WORDS and not text.lstrip().startswith(("```", "~~~", "|"))
