"""`--eval --from-votes`: a file of questions, made of those whose answers people voted on."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from assembly import Unusable
from assembly.redaction import redactor_of
from reporting import reading
from reporting.reading import TimeSpan, Voted
from services.conversations import OptOuts, read_posts
from services.search import Level
from services.storage import DataFolder, json_state
from services.team import REMOVED
from services.telemetry import number_of
from settings import Settings
from sinks.terminal import visible_lines

OPTION = "--from-votes"
_HEAD = """\
# {counts}, from what people voted. Look them through: some ask about what was said before.
# docs/evaluation.md tells what may stand here. Where it says `todo: true`, put what is right in its place:
# `source`, `words`, or `silence: true`.
"""
_ATTACHED = ("[image: ", "[file: ")


@dataclass(slots=True)
class QuestionWithVotes:
    """One question, with the votes on all answers to it.

    Attributes:
        good: sources of answers that were voted up more often than down; others: of other answers.
        pointed: an answer only said where to look.
    """

    text: str
    ups: int = 0
    downs: int = 0
    good: dict[str, None] = field(default_factory=dict[str, None])
    others: dict[str, None] = field(default_factory=dict[str, None])
    pointed: bool = False

    def add(self, vote: Voted, *, pointed: bool) -> None:
        liked = vote.ups > vote.downs and not pointed
        # Not a file that somebody attached, which is gone with its thread.
        lasting = (source for source in vote.sources if source.startswith(("kb:", "team:")))
        (self.good if liked else self.others).update(dict.fromkeys(lasting))
        self.ups, self.downs, self.pointed = self.ups + vote.ups, self.downs + vote.downs, self.pointed or pointed

    @property
    def entry(self) -> dict[str, object]:
        """Give the entry for a file of questions."""
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


def write_from_votes(settings: Settings, period: TimeSpan, out: Path | None) -> str:
    """Write the file, to stdout where `out` is None; gives a line that tells what is in it.

    Raises:
        Unusable: nothing can be written, or `out` exists.
        OSError: the data folder cannot be read, or `out` not be written.
    """
    root = settings.app.data_dir
    if not root.is_dir():
        raise Unusable(f"app.data_dir: {root} is no folder, so nothing is kept there; is it the right one?")
    if out is not None and (out.exists() or out.is_symlink()):
        raise Unusable(f"{OPTION}: {out} is there already; name another file, or remove it")
    folder = DataFolder(root)
    if json_state.ids_are_damaged(folder.opt_outs):
        raise Unusable(f"{folder.opt_outs} is damaged: it cannot be told who has opted out; mend it by hand")
    found = voted_questions(settings, period)
    if not found:
        remedy = "discord.feedback keeps votes"
        raise Unusable(f"{OPTION}: {folder.feedback} holds no vote on an answer whose asker is known; {remedy}")
    entries = [each.entry for each in found]
    open_ones = sum("todo" in entry for entry in entries)
    counts = f"{number_of(len(entries), 'question')}, {open_ones} of them to be decided"
    body = yaml.safe_dump({"questions": entries}, allow_unicode=True, sort_keys=False, width=120)
    text = _HEAD.format(counts=counts) + body
    if out is None:
        sys.stdout.write(text)
    else:
        with out.open("x", encoding="utf-8") as file:  # somebody may have made it meanwhile
            file.write(text)
    return counts


def voted_questions(settings: Settings, period: TimeSpan) -> list[QuestionWithVotes]:
    """Collect questions with votes, in the order of their first answer, without secrets. Blocking. Raises OSError.

    What a person asked who has opted out or was forgotten since is left out; so is what nobody is known to have asked.
    """
    folder, redact = DataFolder(settings.app.data_dir), redactor_of(settings).text
    posts, opted_out = {post.message_id: post for post in read_posts(folder.posts)}, OptOuts(folder.opt_outs)
    ends = reading.entries(folder.outcomes, TimeSpan(0, period.until))
    pointed = {entry.message_ids[-1] for entry in ends if entry.level == Level.POINT}
    marker = settings.discord.opt_out_marker.casefold()
    found: dict[str, QuestionWithVotes] = {}
    for vote in reading.voted(folder.feedback, period):
        post = posts.get(vote.message_id)
        if post is None or post.asker_id in opted_out or vote.question == REMOVED or marker in vote.question.casefold():
            continue
        text = "\n".join(visible_lines(redact(vote.question))).strip()
        if text:
            known = found.setdefault(" ".join(text.split()).casefold(), QuestionWithVotes(text))
            known.add(vote, pointed=post.last_asked_id in pointed)
    return list(found.values())
