"""The fixed sentences that the bot itself says to people, in eight languages.

Each language is one file of `phrasebook`, read when it is first needed. A sentence with a number has its forms side by
side, divided by `|`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

ENGLISH = "en"
LANGUAGES = ("en", "de", "es", "fr", "pt", "ru", "zh", "ja")
"""ISO 639-1. Other languages get English."""

_FEW = 4
_BOOKS = Path(__file__).with_name("phrasebook")


class Fixed:
    """A sentence without placeholders."""

    def __set_name__(self, _: type, name: str) -> None:
        self.name = name

    def __get__(self, phrases: Phrases, _: type) -> str:
        return phrases.say(self.name)


class Filled:
    """A sentence with placeholders; called with their `values` in order. A `count` chooses the plural form."""

    def __init__(self, *values: str) -> None:
        self.values = values

    def __set_name__(self, _: type, name: str) -> None:
        self.name = name

    def __get__(self, phrases: Phrases, _: type) -> Callable[..., str]:
        return lambda *given: phrases.say(self.name, **dict(zip(self.values, given, strict=True)))


class Phrases:
    """The sentences of one language."""

    quoted_from = Filled("title")
    from_the_team = Fixed()
    from_the_team_on = Filled("day")
    somebody_asked = Filled("question")
    answered_on = Filled("day")
    team_answer = Fixed()
    may_help = Fixed()
    found_nothing = Filled("page")
    found_nothing_at_all = Fixed()
    nearest_question = Filled("question")
    no_model_notice = Fixed()
    also = Fixed()

    nothing_to_say = Fixed()
    failed = Fixed()
    stopping = Fixed()
    rest_left_out = Fixed()
    server_only = Fixed()
    team_only = Fixed()
    command_changed = Fixed()
    no_answer = Fixed()
    not_answerable = Fixed()
    used_up = Fixed()
    not_read = Fixed()
    withdrawn = Fixed()

    opted_out = Fixed()
    stays_until_forgotten = Fixed()
    opted_in = Fixed()
    already_out = Fixed()
    already_in = Fixed()
    nothing_kept = Fixed()
    not_written = Fixed()
    not_forgotten = Fixed()
    forgotten_lately = Fixed()
    opted_in_lately = Fixed()
    out_of_reach = Fixed()
    may_see_again = Fixed()
    rest_follows = Fixed()
    removed = Fixed()
    removed_turns = Filled("count")
    removed_posts = Filled("count")
    removed_topics = Filled("count")
    removed_pending = Filled("count")
    removed_votes = Filled("count")
    removed_questions = Filled("count")
    removed_files = Filled("count")
    removed_runbooks = Filled("count")
    removed_exchanges = Filled("count")
    removed_ends = Filled("count")

    file_or_text = Fixed()
    text_needs_title = Fixed()
    kept = Filled("runbook")
    secrets_hidden = Filled("count")
    visibility_changes_that = Fixed()
    your_runbooks = Fixed()
    shown_in_threads = Fixed()
    runbooks_private = Fixed()
    removed_title = Filled("title")
    no_runbooks = Fixed()
    no_such_runbook = Fixed()
    too_many_runbooks = Filled("count", "most")
    runbooks_waiting = Fixed()

    thread_files = Fixed()
    no_files = Fixed()
    not_a_thread = Fixed()
    no_such_file = Fixed()
    not_yours = Fixed()
    forgotten = Filled("name")
    being_read = Filled("name")
    lines = Filled("count")
    replaced_by_newer = Fixed()
    unavailable = Fixed()
    not_downloaded = Fixed()
    post_again = Fixed()

    program = Filled("name")
    archive = Filled("name")
    picture = Filled("name")
    pages = Filled("name")
    data = Filled("name")
    ending = Filled("name", "ending")
    no_ending = Filled("name")
    empty = Filled("name")
    too_large = Filled("name", "size", "most")
    too_many_lines = Filled("name", "count", "most")
    remedy = Fixed()
    too_many_files = Filled("name", "count", "most")
    too_large_together = Filled("name", "size", "most")
    your_part_is_full = Filled("name", "size", "most")
    guest_part_is_full = Filled("name", "most", "size")
    delete_one = Fixed()
    nul_bytes = Filled("name")
    undecodable = Filled("name", "share")
    not_stored = Filled("name")
    download_failed = Filled("name")
    fault = Filled("name")
    too_hard = Filled("name")

    searched = Filled("files", "question")
    files = Filled("count")
    indexing = Filled("pending", "count")
    nothing_so_far = Fixed()
    unreadable = Filled("name")

    def __init__(self, language: str, sentences: dict[str, str]) -> None:
        self.language = language
        self.sentences = sentences

    def say(self, sentence: str, **values: object) -> str:
        """Return a sentence by its name; `values` may have names that it does not use."""
        forms = self.sentences[sentence].split("|")
        count = values.get("count")
        form = forms[min(_form(self.language, count), len(forms) - 1)] if isinstance(count, int) else forms[0]
        return form.format_map(values) if values else form


def in_language(reply_language: str, heard: str) -> str:
    """Return the language to answer in: the question's (`heard`), unless `reply_language` fixes one, such as `en`."""
    return heard if reply_language == "question" else reply_language


def phrases(language: str) -> Phrases:
    """Return the sentences of a language, given its ISO 639-1 code or Discord's name for it (`pt-BR`); else English."""
    code = language.lower().partition("-")[0]
    return _read(code if code in LANGUAGES else ENGLISH)


@cache
def _read(language: str) -> Phrases:
    book = cast("dict[str, dict[str, Any]]", tomllib.loads((_BOOKS / f"{language}.toml").read_text(encoding="utf-8")))
    return Phrases(language, {name: str(text) for group in book.values() for name, text in group.items()})


def _form(language: str, count: int) -> int:
    """Return the index of the plural form for a number (Unicode CLDR, "Language Plural Rules", cardinals)."""
    match language:
        case "zh" | "ja":
            return 0
        case "fr" | "pt":
            return int(count > 1)
        case "ru":
            if count % 100 // 10 == 1 or not 1 <= count % 10 <= _FEW:
                return 2
            return int(count % 10 != 1)
        case _:
            return int(count != 1)
