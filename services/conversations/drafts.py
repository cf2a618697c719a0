"""Answers that wait for a person: the record of each, the store, and the requests that decide about them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from math import inf
from pathlib import Path

from pydantic import FiniteFloat, TypeAdapter, ValidationError
from reactivex.subject import Subject

from clock import DAY, now, run_blocking
from clock.cancellation import CancelToken
from model.messages import Part
from model.outcomes import Reason
from services.conversations.in_flight import InFlight, WorkCancelled
from services.conversations.posts import StartedReply
from services.discord import split, version_of
from services.storage import files
from services.telemetry import QUESTION_CHARS

log = logging.getLogger(__name__)

KEPT_SECONDS = 7 * DAY
"""An ended draft stays known for as long: whoever presses a button is told how it ended, and a message that catch-up
reads again is recognised."""

FORGOTTEN = -1
"""Stands for a forgotten person in `Draft.edited_by` and `Draft.decided_by`."""
MAX_REVIEW_QUESTION_CHARS = 800
"""The most of a question that the review channel shows."""


class DraftState(StrEnum):
    WAITING = "waiting"
    APPROVED = "approved"  # it is being posted
    ENDED = "ended"


class DraftEnd(StrEnum):
    POSTED = "posted"
    EDITED = "posted as edited"
    DISCARDED = "discarded"
    EXPIRED = "expired"
    DELETED = "deleted"
    WITHDRAWN = "withdrawn"
    TEAM_ANSWERED = "team answered"


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer that waits for a person. It has a field for each thing that a restart must know, hence so many.

    Attributes:
        reply: the reply that posts it; its `pieces` are empty, as they follow from `text`.
        channel_id: the channel of the question, or of its thread.
        thread_name: of the thread that is opened for the answer; empty: it goes to a thread that there is.
        text: the whole answer, as it would be posted; empty when the draft has ended.
        level: as in `Outcome`.
        confidence: of the search in its first pages, 0 to 1.
        held_at: when it was held, in seconds since 1970.
        until: when its time is up; of an ended draft: when its record may be removed.
        is_public: what is said in its place may become knowledge of the team.
        review_channel_id, review_id: where people decide, and the message there; 0: not posted yet.
        edited_by: the person who edited it last; None: nobody; 0: somebody at the dashboard.
        decided_by: the person who decided; 0: nobody yet, or somebody at the dashboard.
        editors: the ids of all people who have edited it.
        pairs: the conversations of the team that the answer is from, as in `Inquiry.cited_pairs`; none once a person
            has edited it.
        documents: the files and runbooks that the answer is from: the collection of each, and its id there.
        shown: the other messages that the model was shown: the place, the id, and a hash of the text of each; none once
            a person has edited it.
        is_reworded: the question was edited while the draft waited.
        end: how it ended, or ends while it is approved.
        keeps: the edited answer is kept as what the team taught.
        is_shown: the message in the review channel shows how it ended.
        is_recorded: the outcome that says how it ended is on the disk.
        asked_texts: the text of each of `reply.asked_ids`; none in a draft of an earlier version, which has them
            together, as the question of `reply`.
    """

    reply: StartedReply
    channel_id: int
    thread_name: str
    text: str
    level: str
    confidence: FiniteFloat
    held_at: FiniteFloat
    until: FiniteFloat
    is_public: bool
    review_channel_id: int
    review_id: int = 0
    edited_by: int | None = None
    decided_by: int = 0
    state: DraftState = DraftState.WAITING
    end: DraftEnd | None = None
    keeps: bool = False
    is_shown: bool = False
    is_recorded: bool = False
    asked_texts: tuple[str, ...] = ()
    editors: tuple[int, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    documents: tuple[tuple[str, str], ...] = ()
    shown: tuple[tuple[int, int, str], ...] = ()
    is_reworded: bool = False

    @property
    def id(self) -> int:
        return self.reply.id

    @property
    def started_reply(self) -> StartedReply:
        """The reply with its pieces."""
        return replace(self.reply, pieces=tuple(split(self.text)))

    @property
    def part(self) -> Part:
        """The answered part. It has the question as its text, and else ids only."""
        part = self.reply.part()
        last = replace(part.last, text=self.reply.post.question)
        place = replace(part.place, parent_id=self.channel_id) if part.place.is_thread else part.place
        return replace(part, messages=(*part.messages[:-1], last), place=place, closed_at=self.held_at)

    @property
    def ended_at(self) -> float:
        """Return the time of its end, if it has ended."""
        return self.until - KEPT_SECONDS

    @property
    def version(self) -> str:
        """A short text that changes with each edit of the question or the answer."""
        return version_of(f"{self.reply.post.question}\0{self.text}")

    @property
    def may_be_kept(self) -> bool:
        """Return True if the answer may be kept as what the team taught: a person has edited it, its place is public,
        the asker has not edited the question since, and the review channel has shown the whole of it.
        """
        is_shown_whole = len(self.reply.post.question) <= MAX_REVIEW_QUESTION_CHARS
        return self.edited_by is not None and self.is_public and is_shown_whole and not self.is_reworded

    def is_asked_by(self, texts: Sequence[str]) -> bool:
        """Return True if the messages of the question have these texts, as `asked_texts` has them."""
        if self.asked_texts:
            return self.asked_texts == tuple(texts)
        return self.reply.post.question == "\n".join(filter(None, texts))

    def with_question(self, texts: Sequence[str], thread_name: str) -> Draft:
        """Return the draft with the question as it reads now: the text of each of its messages. `thread_name`: of the
        thread that would be opened for the answer.
        """
        question = "\n".join(filter(None, texts))[:QUESTION_CHARS]
        reply = replace(self.reply, post=replace(self.reply.post, question=question))
        thread_name = self.thread_name and thread_name
        return replace(self, reply=reply, asked_texts=tuple(texts), thread_name=thread_name, is_reworded=True)

    def with_text(self, text: str, by: int) -> Draft:
        """Return the draft with another text. `by`: the person; 0: somebody at the dashboard."""
        editors = (*self.editors, by) if by and by not in self.editors else self.editors
        return replace(self, text=text, edited_by=by, editors=editors, pairs=(), shown=())

    def as_ended(self, end: DraftEnd, by: int, at: float) -> Draft:
        """Return what is kept of the draft when it has ended, at that time: ids, and nothing of the asker."""
        post = replace(self.reply.post, asker_id=0, question="", sources=(), shown_pairs=())
        return replace(
            self,
            reply=replace(self.reply, post=post, people=()),
            thread_name="",
            text="",
            asked_texts=(),
            editors=(),
            pairs=(),
            shown=(),
            documents=(),
            until=at + KEPT_SECONDS,
            decided_by=by,
            state=DraftState.ENDED,
            end=end,
        )

    def holds_words_of(self, user_id: int) -> bool:
        """Return True if words of a person may stand in it: they asked, wrote in the conversation or in a topic
        that was read, posted a file that could be read, or edited it.
        """
        return user_id in {self.reply.post.asker_id, self.edited_by, *self.reply.people, *self.editors}

    def without_person(self, user_id: int) -> Draft:
        """Return the draft without a person who has edited it or decided about it."""
        return replace(
            self,
            edited_by=FORGOTTEN if self.edited_by == user_id else self.edited_by,
            decided_by=FORGOTTEN if self.decided_by == user_id else self.decided_by,
        )


class DraftAction(StrEnum):
    """A request about a draft. The values of the first four are in the ids of buttons."""

    POST = "post"
    EDIT = "edit"
    DISCARD = "discard"
    KEEP = "keep"  # post, and keep as what the team taught
    RESUME = "resume"  # go on from its state: offer it, finish its post, or show how it ended
    SHOW = "show"  # change the message in the review channel to what is so now
    EXPIRE = "expire"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, eq=False)
class DraftRequest:
    """A request about one draft.

    Attributes:
        by: the person; 0: nobody, or somebody at the dashboard, whose name is `operator`.
        text: the new text of an edit.
        seen: the version of the answer that the person has seen; empty: it is not known.
        reason: why a draft is cancelled.
        told: gets one sentence for whoever asked.
        at: when it was made, in seconds since 1970, if a person made it.
    """

    draft_id: int
    action: DraftAction
    by: int = 0
    text: str = ""
    seen: str = ""
    reason: Reason = Reason.DELETED
    told: asyncio.Future[str] | None = None
    operator: str = ""
    at: float = inf

    def tell(self, sentence: str) -> None:
        if self.told is not None and not self.told.done():
            self.told.set_result(sentence)


UNKNOWN_DRAFT = "This draft is not known any more; nothing was done."
STOPPING = "The bot is stopping, and nothing was done. The draft is kept: decide again when the bot is back."


@dataclass(slots=True)
class Drafts:
    """The drafts of one data folder, a file each, and the `requests` about them, in order. Without a `folder` nobody
    decides: nothing is kept.
    """

    folder: Path | None = None
    requests: Subject[DraftRequest] = field(default_factory=Subject[DraftRequest], init=False)
    _by_id: dict[int, Draft] = field(default_factory=dict[int, Draft], init=False)
    _message_ids: set[int] = field(default_factory=set[int], init=False)
    _timers: dict[tuple[int, DraftAction], asyncio.TimerHandle] = field(
        default_factory=dict[tuple[int, DraftAction], asyncio.TimerHandle], init=False
    )
    _tokens: dict[int, CancelToken] = field(default_factory=dict[int, CancelToken], init=False)
    _told: set[asyncio.Future[str]] = field(default_factory=set[asyncio.Future[str]], init=False)
    _forgotten_at: dict[int, float] = field(default_factory=dict[int, float], init=False)
    _is_closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        for draft in () if self.folder is None else read_drafts(self.folder):
            self._note(draft)

    @property
    def waiting(self) -> list[Draft]:
        """Return the drafts that have not ended, oldest first."""
        return sorted((each for each in self._by_id.values() if each.state is not DraftState.ENDED), key=_age)

    def find(self, draft_id: int) -> Draft | None:
        """Return a draft by the id of the last message that it answers; an ended one for a week."""
        return self._by_id.get(draft_id)

    def has_held(self, message_id: int) -> bool:
        """Return True if there is or was a draft that answers a message."""
        return message_id in self._message_ids

    async def put(self, draft: Draft) -> None:
        """Store a new state of a draft. Raises OSError: it is as before."""
        if self.folder is not None:
            await run_blocking(files.replace, self._path(draft.id), render_draft(draft))
        self._note(draft)

    async def hold(self, draft: Draft, part: Part, in_flight: InFlight) -> None:
        """Store a new draft, whose answer is to `part`. What makes that unnecessary ends the draft from now on.

        Raises OSError: it cannot be stored; WorkCancelled: somebody whose words may stand in it was forgotten since the
        part was closed.
        """
        if self._may_hold_forgotten_words(draft, part.closed_at):
            raise WorkCancelled(Reason.DELETED)
        token = in_flight.hold_for_draft(part, draft.reply.place_id)
        try:
            await self.put(draft)
        except OSError:
            in_flight.end_hold_for_draft(part)
            raise
        self.watch(draft, token)
        self.cancel_if_forgotten(draft, part.closed_at)
        await self.drop_old(now())

    async def note_recorded(self, draft_ids: Iterable[int]) -> None:
        """Note that outcomes are on the disk, so that no start repeats those of ended drafts. Raises OSError."""
        for draft in filter(None, map(self.find, draft_ids)):
            if draft.state is DraftState.ENDED and not draft.is_recorded:
                await self.put(replace(draft, is_recorded=True))

    async def drop_old(self, at: float) -> None:
        """Remove what is kept of drafts that ended long ago, once that is shown. Raises OSError."""
        for draft in [each for each in self._by_id.values() if each.is_shown and each.until <= at]:
            await run_blocking(files.remove, self._path(draft.id))
            del self._by_id[draft.id]
            self._message_ids.difference_update(draft.reply.asked_ids)

    def watch(self, draft: Draft, token: CancelToken) -> None:
        """Ask for the end of a draft when its time is up, or when `token` is cancelled."""

        def cancel() -> None:
            error = token.error
            reason = error.reason if isinstance(error, WorkCancelled) else Reason.DELETED
            self.requests.on_next(DraftRequest(draft.id, DraftAction.CANCEL, reason=reason))

        self._tokens[draft.id] = token
        self.schedule(draft.until - now(), DraftRequest(draft.id, DraftAction.EXPIRE))
        try:
            token.attach(cancel)
        except WorkCancelled:
            cancel()

    def is_unneeded(self, draft_id: int) -> bool:
        """Return True if something has made the answer unnecessary, so that its draft is about to end."""
        token = self._tokens.get(draft_id)
        return token is not None and token.error is not None

    def resume(self, in_flight: InFlight) -> Iterator[DraftRequest]:
        """Take up the drafts of an earlier run: watch those that wait, and give a request for each that is not done."""
        for draft in sorted(self._by_id.values(), key=_age):
            if draft.state is DraftState.WAITING:
                self.watch(draft, in_flight.hold_for_draft(draft.part, draft.reply.place_id))
            if draft.state is DraftState.WAITING or not (draft.is_shown and draft.is_recorded):
                yield DraftRequest(draft.id, DraftAction.RESUME)

    def schedule(self, seconds: float, request: DraftRequest) -> None:
        """Make a request later; one at a time for each draft and action."""
        if not self._is_closed:
            key = (request.draft_id, request.action)
            if (earlier := self._timers.get(key)) is not None:
                earlier.cancel()
            loop = asyncio.get_running_loop()
            self._timers[key] = loop.call_later(max(0.0, seconds), self.requests.on_next, request)

    async def decide(
        self, draft_id: int, action: DraftAction, by: int = 0, text: str = "", *, seen: str = "", operator: str = ""
    ) -> str:
        """Carry out a person's decision. `by`, `operator`, `seen`: as in `DraftRequest`. Returns what they are told."""
        if self._is_closed:
            return STOPPING
        told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._told.add(told)
        try:
            self.requests.on_next(
                DraftRequest(draft_id, action, by, text, seen, told=told, operator=operator, at=now())
            )
            return await told
        finally:
            self._told.discard(told)

    def is_ended_by_forgetting(self, draft_id: int) -> bool:
        """Return True if `forget_drafts` has ended a draft, as it held the words of somebody who is forgotten."""
        if self.folder is None:
            return False
        path = self._path(draft_id)
        draft = parse_draft(path.read_bytes()) if path.exists() else None
        return draft is None or draft.state is DraftState.ENDED

    def forget(self, user_id: int) -> None:
        """Do in memory what `forget_drafts` has done to the files: cancel the drafts that it has ended, and drop the
        person from others.
        """
        self._forgotten_at[user_id] = now()
        for draft in [*self._by_id.values()]:
            self._by_id[draft.id] = draft.without_person(user_id)
            if draft.state is DraftState.ENDED:
                continue
            # A decision that ran at the same time may have written the file again: look at the draft as well.
            if draft.holds_words_of(user_id) or self.is_ended_by_forgetting(draft.id):
                self.requests.on_next(DraftRequest(draft.id, DraftAction.CANCEL, reason=Reason.OPTED_OUT))

    def cancel_if_forgotten(self, draft: Draft, since: float) -> None:
        """Ask for the end of a stored draft if words of somebody who was forgotten `since` then may stand in it."""
        if self._may_hold_forgotten_words(draft, since):
            self.requests.on_next(DraftRequest(draft.id, DraftAction.CANCEL, reason=Reason.OPTED_OUT))

    def rename_sources(self, ids: Mapping[str, str]) -> None:
        """Do in memory what `privacy.rename_sources` does to the files; the new names are shown. `ids`: new by old."""
        for draft in self.waiting:
            post = draft.reply.post
            if not ids.keys().isdisjoint(post.sources):
                post = replace(post, sources=tuple(ids.get(each, each) for each in post.sources))
                pairs = tuple((ids.get(source_id, source_id), pair_id) for source_id, pair_id in draft.pairs)
                self._by_id[draft.id] = replace(draft, reply=replace(draft.reply, post=post), pairs=pairs)
                self.requests.on_next(DraftRequest(draft.id, DraftAction.SHOW))

    def close(self) -> None:
        """Take no more requests; the drafts are kept."""
        self._is_closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.requests.on_completed()

    def abandon(self) -> None:
        """Tell everybody whose decision was not carried out that it will not be."""
        for told in self._told:
            if not told.done():
                told.set_result(STOPPING)

    def _may_hold_forgotten_words(self, draft: Draft, since: float) -> bool:
        return any(at >= since and draft.holds_words_of(user_id) for user_id, at in self._forgotten_at.items())

    def _note(self, draft: Draft) -> None:
        self._by_id[draft.id] = draft
        self._message_ids.update(draft.reply.asked_ids)
        if draft.state is DraftState.ENDED:
            self._tokens.pop(draft.id, None)
            timer = self._timers.pop((draft.id, DraftAction.EXPIRE), None)
            if timer is not None:
                timer.cancel()

    def _path(self, draft_id: int) -> Path:
        assert self.folder is not None, "nothing is kept"  # noqa: S101 (for the type checker)
        return self.folder / f"{draft_id}.json"


def _age(draft: Draft) -> tuple[float, int]:
    return draft.held_at, draft.id


_DRAFT = TypeAdapter(Draft)


def read_drafts(folder: Path) -> Iterator[Draft]:
    """Yield the drafts in a folder. Damaged ones are reported and left out. Blocking."""
    for path in sorted(folder.glob("*.json")):
        draft = parse_draft(path.read_bytes())
        if draft is not None:
            yield draft
        else:
            log.warning("%s: damaged, left out; an answer that waited for approval is lost", path)


def parse_draft(line: bytes) -> Draft | None:
    """Read what `render_draft` has written; None: it is damaged."""
    try:
        return _DRAFT.validate_json(line)
    except ValidationError:
        return None


def render_draft(draft: Draft) -> bytes:
    return json.dumps(asdict(draft), ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def forget_drafts(folder: Path, user_id: int, has_their_words: Callable[[str], bool]) -> int:
    """End the drafts in which words of a person may stand, and remove damaged files; drop the person from those that
    they decided about. Returns how many drafts were changed or removed. Blocking. Raises OSError.
    """

    def forgotten(draft: Draft) -> Draft:
        texts = "\n".join((draft.reply.post.question, *draft.asked_texts, draft.text))
        is_over = draft.state is DraftState.ENDED
        if not is_over and (draft.holds_words_of(user_id) or has_their_words(texts)):
            # No loop runs here that has the time: the earliest end that is possible.
            draft = draft.as_ended(DraftEnd.WITHDRAWN, 0, draft.held_at)
        return draft.without_person(user_id)

    drafts = {folder / f"{draft.id}.json": draft for draft in read_drafts(folder)}
    changed = {path: new for path, old in drafts.items() if (new := forgotten(old)) != old}
    for path, draft in changed.items():
        files.replace(path, render_draft(draft))
    damaged = [path for path in folder.glob("*.json") if path not in drafts]
    for path in damaged:
        files.remove(path)
    return len(damaged) + len(changed)
