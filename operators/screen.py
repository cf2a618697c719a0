"""From Discord's dispatches to events, from events to people's messages: decode, name the conversation of each
message, let each message through once, and turn typing, edits and deletions into changes of the messages that wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reactivex import Observable
from reactivex import operators as ops

from dataflow.basics import concat_map_iterable
from dataflow.quiet_window import Amend, Keep
from model.events import Deleted, Edited, Event, Posted, Typing
from model.messages import Author, AuthorType, Key, Message
from model.outcomes import Ignored, Reason, Removed
from model.servers import Servers
from services.conversations import (
    TYPING_SECONDS,
    ConversationTracker,
    History,
    InFlight,
    People,
    RecentIds,
    TeamActivity,
    apply_edit,
)
from services.discord import Decoder, Dispatch


def follow(
    tracker: ConversationTracker, people: People, history: History, withheld: Callable[[Message], bool]
) -> Callable[[Observable[Event]], Observable[Event]]:
    """Pass every event on after the `tracker` has assigned its message to a conversation. Cutting, routing, gathering
    and capturing ask the tracker for it.

        --m1---m2→m1---m3---edit--|
        [ follow                  ]
        --m1---m2→m1---m3---edit--|      m1 and m2 are one conversation now, m3 begins another

    Of a person who has opted out, the tracker learns only that they spoke, and to whom. A reply to a message that is
    deleted already counts as a reply to nothing.
    """

    def follow_event(event: Event) -> None:
        if isinstance(event, Deleted):
            tracker.delete(event.message_ids)
        elif isinstance(event, Posted) and not event.message.is_system:
            message, reply = event.message, event.message.reply_to
            if reply is not None and history.is_gone(reply.message_id):
                message = replace(message, reply_to=replace(reply, gone=True))
            author_type = people.type_of(message.author, history.guild_of(message))
            place = history.place(message.channel_id)
            tracker.follow(without_content(message) if withheld(message) else message, author_type, place)

    return ops.do_action(follow_event)


def without_content(message: Message) -> Message:
    """Return the message without its text and its author's name."""
    return replace(message, text="", author=Author(message.author.id, "", message.author.is_bot))


def decode(decoder: Decoder | None = None) -> Callable[[Observable[Dispatch]], Observable[Event]]:
    """Emit the events of each dispatch; none for types that are not used.

        --GUILD_CREATE----VOICE_STATE_UPDATE--MESSAGE_CREATE--|
        [ decode                                              ]
        --(PlaceSeen …)-----------------------Posted----------|

    An unusable payload is logged and left out.
    """
    return concat_map_iterable((decoder or Decoder()).decode)


IDS_KEPT = 50_000
"""Message ids that are remembered, to drop a second delivery."""


ScreenedItem = Posted | Amend[Key, Posted] | Keep[Key] | Ignored | Removed


class ChannelLists(NamedTuple):
    """The ids of channels that are read (empty: all), and of channels that are not."""

    allowed: frozenset[int] = frozenset()
    denied: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ScreenRules:
    """The rules by which messages are let through: opted-out authors, allowed and denied channels, duplicates.

    Attributes:
        withheld: whether the author of a message has opted out, or has marked this one.
        has_outcome: whether a message (ids of place and message) had its outcome before this process began.
    """

    withheld: Callable[[Message], bool]
    channels: Servers[ChannelLists] = field(default_factory=lambda: Servers({None: ChannelLists()}))
    has_outcome: Callable[[int, int], bool] | None = None

    def may_read(self, place_id: int, channel_id: int | None, guild_id: int | None) -> bool:
        """Return True if a place is allowed, by its own id or by that of its channel; None: that is unknown, and so it
        may be denied.
        """
        allowed, denied = self.channels[guild_id]
        if channel_id is None:
            return not (allowed or denied)
        places = {place_id, channel_id}
        return places.isdisjoint(denied) and (not allowed or not places.isdisjoint(allowed))


def screen(
    people: People,
    history: History,
    tracker: ConversationTracker,
    team: TeamActivity,
    in_flight: InFlight,
    rules: ScreenRules,
) -> Callable[[Observable[Event]], Observable[ScreenedItem]]:
    """Let people's messages through, each once; the others become `Ignored` with a reason.

        --m1--m1--bot--t--(m1→edit)--(m1→delete)--|
        [ screen                                  ]
        --m1--i---i----k--~----------(~ r)--------|   i = Ignored, k = Keep, ~ = Amend, r = Removed

    Typing keeps open the window of the person who types. Edits and deletions amend messages that still wait in a
    window; later, a deletion cancels the answer, and so does an edit that adds the opt-out marker; any other edit of
    the question has no effect. An answer to somebody else that is made with the message begins again. A team member's
    message cancels the answers it makes unnecessary.
    """
    return concat_map_iterable(_Screen(people, history, tracker, team, in_flight, rules).on_event)


class _Screen:
    """Screens events, as `screen` says."""

    def __init__(
        self,
        people: People,
        history: History,
        tracker: ConversationTracker,
        team: TeamActivity,
        in_flight: InFlight,
        rules: ScreenRules,
    ) -> None:
        self._people = people
        self._history = history
        self._tracker = tracker
        self._team = team
        self._in_flight = in_flight
        self._rules = rules
        self._seen = RecentIds(IDS_KEPT)

    def on_event(self, event: Event) -> Iterable[ScreenedItem]:
        match event:
            case Posted():
                return (self._posted(event),)
            case Edited():
                return self._change(event)
            case Deleted():
                return self._delete(event)
            case Typing():
                return (Keep(Key(event.channel_id, event.author.id), event.at, TYPING_SECONDS),)
            case _:
                return ()

    def _posted(self, event: Posted) -> ScreenedItem:
        message, has_outcome = event.message, self._rules.has_outcome
        if message.id in self._seen or (has_outcome is not None and has_outcome(message.channel_id, message.id)):
            return ignored(message, Reason.DUPLICATE)
        self._seen.add(message.id)
        if self._history.is_gone(message.id):  # the deletion came first
            return Removed(message.channel_id, message.id)
        message = self._history.latest(message)  # an edit may have come first as well
        author_type = self._people.type_of(message.author, self._history.guild_of(message))
        unwanted = self._reason_to_ignore(message, author_type)
        # People who have opted out still take part in the conversation.
        answers = author_type is AuthorType.TEAM_MEMBER and self._tracker.kind_of(message.id).needs_question
        if answers and unwanted in {None, Reason.OPTED_OUT}:
            self._team.observe(message)
            self._in_flight.cancel_answered(message, self._answered_by(message))
        if unwanted is not None:
            return ignored(message, unwanted)
        self._in_flight.hold(message, author_type, in_thread=self._history.place(message.channel_id).is_thread)
        return event if message is event.message else replace(event, message=message)

    def _answered_by(self, message: Message) -> Sequence[int]:
        """Return the messages of the conversation that the team goes on with; none if unsure ("good morning")."""
        tracker = self._tracker
        return () if tracker.is_tentative(message) else tracker.messages_of(tracker.conversation_of(message.id))

    def _reason_to_ignore(self, message: Message, author_type: AuthorType) -> Reason | None:
        if author_type is AuthorType.BOT:
            return Reason.BOT
        if message.is_system:
            return Reason.SYSTEM
        if self._rules.withheld(message):
            return Reason.OPTED_OUT
        if message.is_empty:
            return Reason.EMPTY
        known = not self._history.is_unlisted(message.channel_id)
        channel_id = self._history.place(message.channel_id).channel_id if known else None
        if not self._rules.may_read(message.channel_id, channel_id, self._history.guild_of(message)):
            return Reason.NOT_ADDRESSED
        return None

    def _change(self, edit: Edited) -> Iterable[ScreenedItem]:
        key = self._in_flight.waiting_key(edit.message_id)
        message = self._history.in_memory(edit.channel_id, edit.message_id)
        withheld = message is not None and self._rules.withheld(message)
        if withheld:
            self._in_flight.cancel_deleted(Deleted(edit.at, edit.channel_id, (edit.message_id,)))
        elif message is not None and message.edited_at == edit.at:  # not a preview that Discord adds
            self._in_flight.work.withdraw_messages((edit.message_id,))
        if key is None:
            return ()
        if message is not None and (withheld or message.is_empty):
            reason = Reason.OPTED_OUT if withheld else Reason.EMPTY
            return amend(key, edit.message_id, None), ignored(message, reason)
        return (amend(key, edit.message_id, edit),)

    def _delete(self, event: Deleted) -> Iterable[ScreenedItem]:
        gone: list[ScreenedItem] = []
        for message_id in event.message_ids:
            key = self._in_flight.waiting_key(message_id)
            if key is not None:
                gone += amend(key, message_id, None), Removed(event.channel_id, message_id)
        self._in_flight.cancel_deleted(event)
        return gone


def amend(key: Key, message_id: int, edit: Edited | None) -> Amend[Key, Posted]:
    """Replace one waiting message by its edited form, or drop it."""

    def changed(waiting: Posted) -> Posted | None:
        if waiting.message.id != message_id:
            return waiting
        return None if edit is None else replace(waiting, message=apply_edit(waiting.message, edit))

    return Amend(key, changed)


def ignored(message: Message, reason: Reason) -> Ignored:
    return Ignored(reason, message.channel_id, (message.id,))
