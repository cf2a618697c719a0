"""The file of questions for `--eval`: read and checked, or made from what people voted (`--from-votes`)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

import yaml

from assembly import Unusable
from model.source_ids import document_id, has_namespace
from reporting import reading
from reporting.reading import TimeSpan, VotedQuestion
from services.conversations import OptOutFile, read_posts
from services.redaction import Redactor
from services.search import Level
from services.storage import DataFolder
from services.team import REMOVED
from services.telemetry import number_of
from settings import Settings, SettingsError, dotted, read_yaml
from sinks.terminal import visible_lines


class Share(StrEnum):
    """A figure from 0 to 1, for which a file may have a threshold."""

    PRECISION = "precision"
    RECALL = "recall"
    SHOWN = "shown"
    SILENCE = "silence"


_TOP = ("questions", "thresholds", "addressed")
_ENTRY = ("question", "source", "words", "silence", "addressed", "todo", "note")
_SWITCHES = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalQuestion:
    """A question, and the expected reply.

    Attributes:
        addressed: True if it addresses the bot, and not everybody in a channel.
        sources: ids or globs, with their namespaces; a right reply shows one of them. Empty: it may show any.
        words: a right reply contains one of these. Empty: it may contain any.
        silent: True if no answer is expected.
        todo: True if the expected reply has to be added yet.
        where: file and line.
    """

    text: str
    addressed: bool = False
    sources: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    silent: bool = False
    todo: bool = False
    where: str = ""

    @property
    def key(self) -> tuple[str, bool]:
        """Identify the question in its file, whatever is expected of it."""
        return self.text, self.addressed


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A file of questions. `questions`: in their order; `todo`: the questions that cannot be asked yet."""

    questions: tuple[EvalQuestion, ...]
    todo: tuple[EvalQuestion, ...]
    thresholds: Mapping[Share, float]


def read_questions(path: Path, redactor: Redactor | None = None, *, addressed: bool = False) -> QuestionFile:
    """Read the file of questions, without secrets. `addressed`: the default of `EvalQuestion.addressed`.

    Raises:
        SettingsError: the file cannot be read, or something in it is wrong.
    """
    return _Reader(path, redactor or Redactor()).read(addressed)


class _Reader:
    """Checks the values of a file, which are texts, lists and mappings."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._path = path
        self._redactor = redactor
        self._draft = read_yaml(path, option="--eval", top="questions", scalars_as_text=True)

    def read(self, addressed: bool) -> QuestionFile:
        values = self._draft.values
        self._check_names((), values, _TOP)
        addressed = self._switch(("addressed",), values, otherwise=addressed)
        thresholds = self._thresholds(values.get("thresholds") or {})
        given: object = values.get("questions") or []
        if not isinstance(given, list):
            raise self._wrong(("questions",), "questions must be a list, each beginning with `- question:`")
        entries = [
            self._entry(("questions", str(number)), each, addressed=addressed)
            for number, each in enumerate(cast("list[object]", given))
        ]
        self._check_repeated(entries)
        if not entries:
            raise SettingsError(f"{self._path}: there are no questions in it; write a list below `questions:`")
        if all(each.todo for each in entries):
            raise SettingsError(f"{self._path}: each question is still `todo`; say of one at least what is right")
        asked, todo = ([each for each in entries if each.todo is wanted] for wanted in (False, True))
        return QuestionFile(tuple(asked), tuple(todo), thresholds)

    def _thresholds(self, given: object) -> dict[Share, float]:
        if not isinstance(given, dict):
            raise self._wrong(("thresholds",), "thresholds must be a mapping, such as {precision: 0.9, recall: 0.6}")
        named = cast("dict[Any, object]", given)
        self._check_names(("thresholds",), named, tuple(Share))
        return {Share(name): self._share(("thresholds", name), value) for name, value in named.items()}

    def _share(self, path: Sequence[str], value: object) -> float:
        try:
            share = float(value) if isinstance(value, str) else -1.0
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:  # nor NaN
            raise self._wrong(path, f"{'.'.join(path)} must be a number from 0 to 1, such as 0.9")
        return share

    def _entry(self, path: tuple[str, ...], given: object, *, addressed: bool) -> EvalQuestion:
        if not isinstance(given, dict):
            raise self._wrong(
                path, "this must be a mapping: `question: …`, and below it what is right, such as `source: a.md`"
            )
        entry = cast("dict[Any, object]", given)
        self._check_names(path, entry, _ENTRY)
        text = entry.get("question")
        if not isinstance(text, str) or not text.strip():
            raise self._wrong((*path, "question"), "question must be what somebody asks, as text")
        if not isinstance(entry.get("note", ""), str):
            raise self._wrong((*path, "note"), "note must be text")
        question = EvalQuestion(
            text=self._redactor.text(_encodable(text.strip())),
            addressed=self._switch((*path, "addressed"), entry, otherwise=addressed),
            sources=tuple(map(_with_namespace, self._texts((*path, "source"), entry))),
            words=self._texts((*path, "words"), entry),
            silent=self._switch((*path, "silence"), entry, otherwise=False),
            todo=self._switch((*path, "todo"), entry, otherwise=False),
            where=self._draft.where(path),
        )
        if question.silent and (question.sources or question.words):
            raise self._wrong((*path, "silence"), "silence goes with neither source nor words; keep one of them")
        if not (question.silent or question.sources or question.words or question.todo):
            raise self._wrong(path, "it is not said what is right; add source, words or `silence: true`")
        return question

    def _texts(self, path: Sequence[str], entry: Mapping[Any, object]) -> tuple[str, ...]:
        """Return one text, or a list of texts, as a tuple."""
        if (name := path[-1]) not in entry:
            return ()
        given = entry[name]
        several = cast("list[object]", given) if isinstance(given, list) else [given]
        texts = [each.strip() for each in several if isinstance(each, str) and each.strip()]
        if not texts or len(texts) != len(several):
            raise self._wrong(path, f"{name} must be text, or a list of texts")
        # The texts are from the documentation.
        return tuple(self._redactor.documentation_text(_encodable(each)) for each in texts)

    def _switch(self, path: Sequence[str], entry: Mapping[Any, object], *, otherwise: bool) -> bool:
        if (name := path[-1]) not in entry:
            return otherwise
        given = entry[name]
        found = _SWITCHES.get(given.lower()) if isinstance(given, str) else None
        if found is None:
            raise self._wrong(path, f"{name} must be true or false")
        return found

    def _check_names(self, path: tuple[str, ...], named: Mapping[Any, object], known: Sequence[str]) -> None:
        for name in named:
            if name not in known:
                raise self._wrong((*path, name), f"{dotted([name])} is not known here; known are {', '.join(known)}")

    def _check_repeated(self, entries: Sequence[EvalQuestion]) -> None:
        first: dict[tuple[str, bool], EvalQuestion] = {}
        for each in entries:
            if (before := first.setdefault(each.key, each)) is not each:
                raise SettingsError(f"{each.where}: this is asked already in {before.where}; keep one of the two")

    def _wrong(self, path: Sequence[object], text: str) -> SettingsError:
        return SettingsError(f"{self._draft.where(path)}: {text}")


def _encodable(text: str) -> str:
    """Replace half surrogate pairs, which YAML can escape, but no output can encode."""
    return text.encode("utf-8", "replace").decode()


def _with_namespace(source: str) -> str:
    return source if has_namespace(source) else document_id(source)


FROM_VOTES_OPTION = "--from-votes"
_VOTES_HEADER = """\
# {counts}, from what people voted. Look them through: some ask about what was said before.
# docs/evaluation.md tells what may stand here. Where it says `todo: true`, put what is right in its place:
# `source`, `words`, or `silence: true`.
"""
_ATTACHED = ("[image: ", "[file: ")


@dataclass(slots=True)
class QuestionWithVotes:
    """A question, with the votes on all answers to it.

    Attributes:
        good: the sources of answers with more votes up than down.
        others: the sources of other answers.
        pointed: True if one of the answers was a pointer.
    """

    text: str
    ups: int = 0
    downs: int = 0
    good: dict[str, None] = field(default_factory=dict[str, None])
    others: dict[str, None] = field(default_factory=dict[str, None])
    pointed: bool = False

    def add(self, vote: VotedQuestion, *, pointed: bool) -> None:
        is_good = vote.ups > vote.downs and not pointed
        # An attached file is deleted with its thread.
        lasting = (source for source in vote.sources if has_namespace(source))
        (self.good if is_good else self.others).update(dict.fromkeys(lasting))
        self.ups, self.downs, self.pointed = self.ups + vote.ups, self.downs + vote.downs, self.pointed or pointed

    @property
    def entry(self) -> dict[str, object]:
        """The entry for a file of questions."""
        note, attached = f"{self.ups} for, {self.downs} against", any(mark in self.text for mark in _ATTACHED)
        if self.good and self.ups > self.downs and not attached:
            return {"question": self.text, "source": list(self.good), "note": note}
        notes = [
            note,
            "asked with a file" if attached else "",
            "a reply only said where to look" if self.pointed else "",
            f"answered from {', '.join(shown)}" if (shown := self.good | self.others) else "",
        ]
        return {"question": self.text, "todo": True, "note": "; ".join(filter(None, notes))}


def write_from_votes(settings: Settings, period: TimeSpan, out: Path | None, guild_id: int | None = None) -> str:
    """Write a file of questions from votes, to stdout if `out` is None. Returns a line with the number of questions.
    `guild_id`: only of this server.

    Raises:
        Unusable: nothing can be written, or `out` exists.
        DamagedIds: it cannot be told who has opted out.
        OSError: the data folder cannot be read, or `out` cannot be written.
    """
    if out is not None and (out.exists() or out.is_symlink()):
        raise Unusable(f"{FROM_VOTES_OPTION}: {out} is there already; name another file, or remove it")
    folder = DataFolder(settings.app.data_dir)
    found = voted_questions(settings, period, guild_id)
    if not found:
        answer = "an answer whose asker is known" + ("" if guild_id is None else f", from the server {guild_id}")
        remedy = "discord.feedback keeps votes"
        raise Unusable(f"{FROM_VOTES_OPTION}: {folder.feedback} holds no vote on {answer}; {remedy}")
    entries = [each.entry for each in found]
    open_ones = sum("todo" in entry for entry in entries)
    counts = f"{number_of(len(entries), 'question')}, {open_ones} of them to be decided"
    # Another encoding would be read as UTF-8 again, so that its letters are written as YAML escapes them.
    as_it_is = out is not None or sys.stdout.encoding.casefold().startswith("utf")
    body = yaml.safe_dump({"questions": entries}, allow_unicode=as_it_is, sort_keys=False, width=120)
    text = _VOTES_HEADER.format(counts=counts) + body
    if out is None:
        sys.stdout.write(text)
    else:
        with out.open("x", encoding="utf-8") as file:  # somebody may have made it meanwhile
            file.write(text)
    return counts


def voted_questions(settings: Settings, period: TimeSpan, guild_id: int | None = None) -> list[QuestionWithVotes]:
    """Collect questions with votes, in the order of their first answer, without secrets. `guild_id`: only those that
    were asked in this server. Blocking. Raises OSError.

    Questions of unknown people, and of people who have opted out or were forgotten since, are left out.
    """
    folder, redact = DataFolder(settings.app.data_dir), Redactor(settings.secrets).text
    posts, opted_out = {post.message_id: post for post in read_posts(folder.posts)}, OptOutFile(folder.opt_outs)
    ends = reading.read_outcomes(folder.outcomes, TimeSpan(0, period.until))
    pointed = {entry.message_ids[-1] for entry in ends if entry.level == Level.POINT}
    places = {entry.place_id for entry in ends if entry.guild_id == guild_id}
    marker = settings.discord.opt_out_marker.casefold()
    found: dict[str, QuestionWithVotes] = {}
    for vote in reading.read_voted(folder.feedback, period):
        post = posts.get(vote.message_id)
        if post is None or post.asker_id in opted_out or vote.question == REMOVED or marker in vote.question.casefold():
            continue
        text = "\n".join(visible_lines(redact(vote.question))).strip()
        if text and (guild_id is None or post.asked_in in places):
            known = found.setdefault(" ".join(text.split()).casefold(), QuestionWithVotes(text))
            known.add(vote, pointed=post.last_asked_id in pointed)
    return list(found.values())
