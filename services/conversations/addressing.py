"""Decides whom the messages of the team in a captured conversation answer, and which messages of that user they answer.
This is decided once, when a conversation is captured, and is stored with it (`services.team.archive`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from model.conversations import READING_SECONDS, seconds_to_answer
from model.messages import AuthorType, Message, snowflake_at

WAITING_SECONDS, LONG_WAITING_SECONDS = 600.0, 3600.0
"""A message of the team may answer anybody who has written in its place so long before the question, or since; the
longer one if the question came when the answer had been begun.
"""

_MENTION = re.compile(r"<@!?([0-9]{1,20})>[\s,:]*")

_MENTIONS_MANY = re.compile(r"<@&[0-9]{1,20}>|@(?:here|everyone)\b")

Writers = Mapping[int, int]
"""The author of each message of a community user, by message; 0: it is not known."""
WritersOf = Callable[[int, int, int], Awaitable[Writers | None]]
"""Returns what community users wrote in a place from one id up to another, also if it is deleted or withheld; None:
that is not known.
"""


@dataclass(slots=True)
class _Asker:
    """A user of the conversation, with the ids of the messages that nobody is known to have answered, and of those that
    the last answer was to. `was_late`: they wrote something too late to be read for an answer, to which later ones may
    be.
    """

    waiting: set[int] = field(default_factory=set[int])
    answered: frozenset[int] = frozenset()
    was_late: bool = False


async def find_addressees(
    messages: Sequence[Message],
    types: Mapping[int, AuthorType],
    writers_of: WritersOf,
    title_above: Callable[[Message], str] = lambda _: "",
) -> dict[int, int]:
    """Return to whom each message of the team is, by message: the id of a user if that is certain, else the id of its
    own author. It has no entry if no user has written before it. A user's message has an entry, the id of that user, if
    it is no part of the question although its author was answered.

    The user is certain if the message replies to one of theirs, or begins with a mention of them, and all that they
    ask is there: not deleted, not withheld, and written before the answer was begun (`seconds_to_answer`). With neither
    reply nor mention, nobody else may have written in the place, and no colleague may have asked something since. A
    message that mentions anybody else is certain to nobody. The question must be one message with nothing but words,
    and no answer to it up to this one may have parts that are not read. Names that are typed decide nothing.

    `messages`: those that are captured with their words, in order of id; a user's as it read before the next one of the
    team, so that a later one is not certain to be to it if it was edited meanwhile. `types`: of all messages, by id.
    `title_above`: returns what people read above a message as the name of its thread, and is no part of its text.
    """
    found: dict[int, int] = {}
    askers: dict[int, _Asker] = {}
    captured = {message.id: message for message in messages}
    first_asked = min((each for each, kind in types.items() if kind is AuthorType.COMMUNITY_USER), default=None)
    new, changed = set[int](), set[int]()  # since the last message of the team; and edited after the next one
    shown = set[int]()  # messages of users that were answered with what nothing here reads
    asking_id = 0  # who of the team has asked something since the last message of a user
    for message in messages:
        if types[message.id] is AuthorType.COMMUNITY_USER:
            asking_id = 0
            askers.setdefault(message.author.id, _Asker()).waiting.add(message.id)
            new.add(message.id)
        if types[message.id] is not AuthorType.TEAM_MEMBER or first_asked is None or message.id < first_asked:
            continue
        found[message.id] = message.author.id
        read_until = begun = _begun(message)
        known, edits = captured.keys() - changed, {each: captured[each].edited_at for each in new}
        changed |= {each for each, at in edits.items() if at is not None and snowflake_at(at) >= begun}
        new.clear()
        replies_to_colleague = asking_id not in {0, message.author.id} and message.reply_to is None
        asking_id = message.author.id if "?" in message.text else asking_id
        user_id = _named_user(message, captured, types, askers)
        if user_id is None or askers[user_id].was_late or _is_for_others(message.text, user_id):
            continue
        if replies_to_colleague and not _opening_mentions(message.text):
            continue
        asker = askers[user_id]
        asked = await _asked(message, user_id, asker, captured, types, writers_of)
        if not any(each < begun for each in asked):  # a quick answer, to all that there was to read
            read_until = snowflake_at(message.at - READING_SECONDS)
        question = {each for each in asked if each < read_until}
        if question and question.issubset(known) and _asks_alone(question, captured, types, message, title_above):
            if message.has_unread_parts:
                shown |= question
            if not question.isdisjoint(shown):
                continue
            found[message.id] = user_id
            found |= dict.fromkeys(asker.waiting - question, user_id)
            asker.was_late = any(each >= read_until for each in asker.waiting)
            asker.waiting, asker.answered = set(), frozenset(question)
    return found


_WORD = re.compile(r"\w+")
_SHOWS_MORE = re.compile(r"(?<!<)https?://|https?://(?![^\s<>]*>)|~~", re.IGNORECASE)
"""An address of which Discord shows a preview, as it is not in angle brackets; or words that are struck out."""


def _asks_alone(
    question: Collection[int],
    captured: Mapping[int, Message],
    types: Mapping[int, AuthorType],
    answer: Message,
    title_above: Callable[[Message], str],
) -> bool:
    """Return True if what a message of the team answers stands in one message, and nowhere else: not in another one of
    the asker's, nor in what that replies to or stands below, nor in a file, a poll, a sticker or what Discord shows of
    an address, nor in the title of the thread, nor in a wording that was edited lately.
    """
    message = captured[next(iter(question))]
    edited_at = message.edited_at
    was_edited = edited_at is not None and edited_at > answer.at - WAITING_SECONDS
    shows_more = message.has_unread_parts or bool(message.attachments) or _SHOWS_MORE.search(message.text) is not None
    starter = captured.get(message.channel_id)
    is_of_others = starter is not None and starter.author.id != message.author.id
    stands_below = message.reply_to is not None or (
        is_of_others and types[message.channel_id] is AuthorType.COMMUNITY_USER
    )
    is_titled = not _words_in(title_above(message)) <= _words_in(message.text)
    return len(question) == 1 and not (shows_more or stands_below or is_titled or was_edited)


def _words_in(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _begun(answer: Message) -> int:
    """Return the id of the time at which an answer was begun, at the latest."""
    return snowflake_at(answer.at - seconds_to_answer(answer.text))


def _opening_mentions(text: str) -> set[int]:
    """Return the ids of the people whom a text mentions before it says anything."""
    user_ids, end = set[int](), 0
    while mention := _MENTION.match(text, end):
        user_ids.add(int(mention[1]))
        end = mention.end()
    return user_ids


def _is_for_others(text: str, user_id: int) -> bool:
    """Return True if a text mentions a role, everybody, or anybody besides a user."""
    return _MENTIONS_MANY.search(text) is not None or any(int(each) != user_id for each in _MENTION.findall(text))


def _named_user(
    message: Message, captured: Mapping[int, Message], types: Mapping[int, AuthorType], askers: Mapping[int, _Asker]
) -> int | None:
    """Return the user whom a message of the team names, by its reply or the mentions at its beginning (as Discord sent
    them); else the only asker. None: it names several, or nobody who asked, or replies to what is not captured.
    """
    named = _opening_mentions(message.text)
    if message.reply_to is not None:
        target_id = message.reply_to.message_id
        if target_id not in types or (types[target_id] is AuthorType.COMMUNITY_USER and target_id not in captured):
            return None
        if types[target_id] is AuthorType.COMMUNITY_USER:
            named.add(captured[target_id].author.id)
        elif not named:
            return None  # a reply to the bot, or to a colleague: what it says is about theirs
    user_ids = named or set(askers)
    return next(iter(user_ids)) if len(user_ids) == 1 and user_ids.issubset(askers) else None


async def _asked(
    message: Message,
    user_id: int,
    asker: _Asker,
    captured: Mapping[int, Message],
    types: Mapping[int, AuthorType],
    writers_of: WritersOf,
) -> Collection[int]:
    """Return the ids of the user's messages that a message of the team answers, also of messages that are not captured;
    none if that is not certain. A reply answers the message that it names and those directly around it. Any other
    message answers all that the user waits with, or goes on with the last answer.
    """
    target = None if message.reply_to is None else captured.get(message.reply_to.message_id)
    if target is not None and target.author.id != user_id:
        target = None
    if target is not None and target.id not in asker.waiting:
        return asker.answered if target.id in asker.answered and not asker.waiting else ()
    if target is not None and target.id >= snowflake_at(message.at - READING_SECONDS):
        return ()
    place_id = message.channel_id if target is None else target.channel_id
    first = captured[min(asker.waiting or asker.answered)]
    waiting_seconds = WAITING_SECONDS if first.id < _begun(message) else LONG_WAITING_SECONDS
    since = snowflake_at(first.at - waiting_seconds)
    written = await writers_of(place_id, since, message.id)
    if written is None and target is None:
        return ()
    here = {each: sent for each, sent in captured.items() if sent.channel_id == place_id and since <= each < message.id}
    users = {each: sent.author.id for each, sent in here.items() if types[each] is AuthorType.COMMUNITY_USER}
    # The author of one of the team may not have been known for that when it came.
    authors = {each: author for each, author in (written or {}).items() if each not in here} | users
    ordered = sorted(authors)

    def is_open(each: int) -> bool:
        return authors[each] in {user_id, 0} and (each not in captured or each in asker.waiting)

    if target is not None:
        at = ordered.index(target.id)
        return {*takewhile(is_open, reversed(ordered[:at])), *takewhile(is_open, ordered[at:])}
    if not _opening_mentions(message.text) and any(author != user_id for author in authors.values()):
        return ()
    open_ids = {each for each in ordered if is_open(each)}
    return open_ids | asker.waiting if asker.waiting else () if open_ids else asker.answered
