"""Answers of the team that somebody doubts or corrects afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reactivex import Observable

from clock import DAY, HOUR
from dataflow.basics import concat_map_iterable
from model.bounded import RateLimit
from model.messages import Author, AuthorType, Message, Part
from services.conversations import ConversationTracker, History, People, Post, Posts
from services.discord import render
from services.search import (
    corrects,
    is_question,
    may_ask,
    may_correct,
    may_doubt,
    reply_may_doubt,
    says_it_worked,
    statements,
    takes_back,
)

HEARD_SECONDS = 600.0
"""A message without a Discord reply may be about an answer given so long before, as in conversations (`answer_gap`)."""
ASKER_SECONDS = HOUR
"""An asker may come back for so long after the answer. Their question is looked for as long before the answer."""
MAX_BY_STRANGER = 5
"""At most so many doubts of a user in a day count that are about answers to others: else one account could have every
answer of the team quoted no more.
"""
MAX_READ = 200
"""At most so many earlier messages of the place are read."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Somebody doubts a message of the team."""

    channel_id: int
    message_id: int


@dataclass(frozen=True, slots=True)
class DoubtedPair:
    """Somebody doubts what the bot has posted about a conversation of the team. The fields are as in `ShownPair`."""

    guild_id: int | None
    pair_id: str


def doubts(
    history: History,
    tracker: ConversationTracker,
    people: People,
    posts: Posts,
    withheld: Callable[[Message], bool],
) -> Callable[[Observable[Part]], Observable[Doubt | DoubtedPair]]:
    """Emit the team's messages that a part may doubt, by its words (`services/search/replies.py`) and by whom it is to;
    and the conversations that the bot has quoted or pointed to in a post that the part may doubt.

        --[A: how?]--[T: so]--[A: still broken]--[B: thanks]--[U→T: no, use …]--|
        [ doubts                                                                ]
        ----------------------d--------------------------------d----------------|

    It is about an answer if it is a Discord reply to it (all that is stated but agreement and additions);
    or if it addresses nobody else, and

    - its author asked what was answered in the hour before, and goes on with the conversation; or has said nothing
      since the answer, and doubts it clearly;
    - or it mentions a member of the team who has answered in the ten minutes before, and doubts that clearly;
    - or it is by another member of the team, states anything but agreement and additions, and nothing else was said
      since the answer; or by whoever answered, states anything, and comes too late to be kept with the answer;
    - or it is by whoever answered, or a colleague, and takes the answer back, if nothing was said since in other
      conversations, and nobody has asked anything.

    Of a user who is not of the team, and has not asked what was answered, `MAX_BY_STRANGER` doubts count in a day.

    A post of the bot is doubted by a Discord reply to any piece of it, of the team that corrects, or of a user who
    clearly doubts; or by what a member of the team says next, and takes it back or clearly doubts. So are the
    messages of the post, as it may have been kept as what the team taught.

    What is not in memory, such as what was said before the start, is not doubted, except by a reply with which Discord
    sent it. `posts` remember more.
    """
    return concat_map_iterable(_DoubtFinder(history, tracker, people, posts, withheld).find)


class _DoubtFinder:
    """Finds what parts doubt, as `doubts` says."""

    def __init__(
        self,
        history: History,
        tracker: ConversationTracker,
        people: People,
        posts: Posts,
        withheld: Callable[[Message], bool],
    ) -> None:
        self._history = history
        self._tracker = tracker
        self._people = people
        self._posts = posts
        self._withheld = withheld
        self._by_strangers = RateLimit(MAX_BY_STRANGER, DAY)

    def find(self, part: Part) -> Iterable[Doubt | DoubtedPair]:
        by_team = part.author_type is AuthorType.TEAM_MEMBER
        doubted = [(each, self._doubted_answer(each, part.guild_id, by_team=by_team)) for each in part.messages]
        ids = [found for each, found in doubted if found is not None and (by_team or self._counts(each, found))]
        posted = [(each, self._doubted_post(each, by_team=by_team)) for each in part.messages]
        wrong = [post for each, post in posted if post is not None and (by_team or self._strangers_doubt_counts(each))]
        ids += [piece_id for post in wrong for piece_id in post.piece_ids]
        pairs = dict.fromkeys(pair for post in wrong for pair in post.shown_pairs)
        return [*(Doubt(part.place.id, each) for each in dict.fromkeys(ids)), *(DoubtedPair(*each) for each in pairs)]

    def _doubted_post(self, message: Message, *, by_team: bool) -> Post | None:
        """Return the post of the bot that a message doubts."""
        post = self._post_before(message, by_team=by_team)
        if post is None:
            return None
        said = self._text_of(message)
        if message.reply_to is not None and by_team:
            return post if may_correct(said) else None
        return post if may_doubt(said, is_clear=True) or (by_team and takes_back(said)) else None

    def _post_before(self, message: Message, *, by_team: bool) -> Post | None:
        """Return the post that a message replies to; or, if it is by the team and no reply, the one that it follows."""
        if message.reply_to is not None:
            return self._posts.find(message.reply_to.message_id)
        last = next(iter(self._read_before(message, HEARD_SECONDS)), None) if by_team else None
        return None if last is None else self._posts.find(last.id)

    def _counts(self, message: Message, answer_id: int) -> bool:
        """Return True if a user's doubt counts; note it, if what was answered is another's question."""
        return self._answers_author(message, answer_id) or self._strangers_doubt_counts(message)

    def _strangers_doubt_counts(self, message: Message) -> bool:
        """Return True if the doubt of somebody who has not asked what was answered counts, and note it."""
        if self._by_strangers.is_reached(message.author.id, message.at):
            return False
        self._by_strangers.note(message.author.id, message.at)
        return True

    def _answers_author(self, message: Message, answer_id: int) -> bool:
        """Return True if an answer is a Discord reply to the author of a message, or the last one to them."""
        answer = self._history.in_memory(message.channel_id, answer_id)
        asked = None if answer is None or answer.reply_to is None else answer.reply_to.message_id
        question = None if asked is None else self._history.in_memory(message.channel_id, asked)
        if question is not None and question.author.id == message.author.id:
            return True
        last, _ = self._last_answer_to(message, set()) or (None, [])
        return last is not None and last.id == answer_id

    def _doubted_answer(self, message: Message, guild_id: int | None, *, by_team: bool) -> int | None:
        """Return the id of the team's answer that a message doubts."""
        said, reply = self._text_of(message), message.reply_to
        if reply is not None:
            target = None if reply.gone else self._history.in_memory(message.channel_id, reply.message_id)
            if target is None or not self._is_by_team(target):
                return None
            is_doubt = may_correct(said) if by_team else reply_may_doubt(said)
            return target.id if is_doubt else None
        members = {user_id for user_id, _ in message.mentions} - {message.author.id, self._people.bot_id}
        if not all(self._people.is_team(Author(user_id, ""), guild_id) for user_id in members):
            return None
        if by_team:
            answer_id = self._just_answered(message, said) if takes_back(said) else self._answer_before(message, said)
            answer = None if answer_id is None else self._history.in_memory(message.channel_id, answer_id)
            return answer_id if answer is not None and members <= {answer.author.id} else None
        return self._answer_to_asker(message, said, members) or self._answer_by(members, message, said)

    def _last_answer_to(self, message: Message, members: set[int]) -> tuple[Message, list[Message]] | None:
        """Return the last answer to the author of a message within `ASKER_SECONDS`, and what the author has said since.
        If the message mentions `members`, one of these must have given it.
        """
        earlier, conversation_of = self._read_before(message, 2 * ASKER_SECONDS), self._tracker.conversation_of
        own = [each for each in earlier if each.author.id == message.author.id]
        if not own:
            return None
        conversation = conversation_of(own[0].id)
        own = [each for each in own if conversation_of(each.id) == conversation]
        later = (each for each in earlier if each.id > own[-1].id and conversation_of(each.id) == conversation)
        answer = next(filter(self._answers, later), None)
        if answer is None or message.at - answer.at > ASKER_SECONDS or (members and answer.author.id not in members):
            return None
        return answer, [each for each in own if each.id > answer.id]

    def _answer_to_asker(self, message: Message, said: str, members: set[int]) -> int | None:
        """Return the last answer to the author of a message, if `said` doubts it."""
        answer, since = self._last_answer_to(message, members) or (None, [])
        if answer is None:
            return None
        is_next = self._tracker.conversation_of(message.id) == self._tracker.conversation_of(answer.id)
        if since and not is_next:
            return None
        # Thanks end a matter; so does a while in which nothing was said.
        has_thanked = any(says_it_worked(self._text_of(each)) for each in since)
        return answer.id if may_doubt(said, is_clear=not is_next or has_thanked) else None

    def _answer_by(self, members: set[int], message: Message, said: str) -> int | None:
        """Return the last answer of one of the `members` whom a message mentions, if `said` clearly doubts it."""
        if not members or not may_doubt(said, is_clear=True):
            return None
        near = (each for each in self._read_before(message, HEARD_SECONDS) if each.author.id in members)
        return next((each.id for each in near if self._answers(each) and self._tracker.helps_user(each.id)), None)

    def _just_answered(self, message: Message, said: str) -> int | None:
        """Return the team's last answer, or else the last one of a colleague, if `said` may take it back."""
        earlier = self._read_before(message, HEARD_SECONDS)
        by_others = [each for each in earlier if each.author.id != message.author.id]
        return self._last_answer(earlier, is_clear=False) or self._last_answer(by_others, is_clear=corrects(said))

    def _answer_before(self, message: Message, said: str) -> int | None:
        """Return the team's answer right before a message, if `said` may correct it and answers nobody else. It is a
        colleague's; or the author's own, and what is said now is no longer kept with it.
        """
        author_id = message.author.id
        earlier = self._read_before(message, HEARD_SECONDS)
        # What the author has said to nobody hides no answer.
        last = next(
            (each for each in earlier if each.author.id != author_id or self._tracker.helps_user(each.id)), None
        )
        if last is None or not self._answers(last) or not self._tracker.helps_user(last.id):
            return None
        is_same = self._tracker.conversation_of(message.id) == self._tracker.conversation_of(last.id)
        if self._tracker.helps_user(message.id) and not is_same:
            return None
        if last.author.id == author_id:
            return last.id if not is_same and statements(said) else None
        return last.id if may_correct(said) else None

    def _last_answer(self, earlier: list[Message], *, is_clear: bool) -> int | None:
        """Return the last answer of the team, if nothing was said since in other conversations, and, unless `is_clear`,
        nobody has asked since: what comes next may be an answer to that.
        """
        at = next((at for at, each in enumerate(earlier) if self._answers(each)), None)
        if at is None or not self._tracker.helps_user(earlier[at].id):
            return None
        if not is_clear and any(map(self._asks, earlier[:at])):
            return None
        conversations = {self._tracker.conversation_of(each.id) for each in earlier[: at + 1]}
        return earlier[at].id if len(conversations) == 1 else None

    def _read_before(self, message: Message, seconds: float) -> list[Message]:
        """Return the earlier messages of a place, the newest first."""
        found = (each for each in self._history.written_before(message, seconds) if not self._withheld(each))
        return [each for _, each in zip(range(MAX_READ), found, strict=False)]

    def _answers(self, message: Message) -> bool:
        return self._is_by_team(message) and bool(statements(self._text_of(message)))

    def _asks(self, message: Message) -> bool:
        if self._is_by_team(message):
            return False
        said = self._text_of(message)
        return is_question(said) or may_ask(said)

    def _text_of(self, message: Message) -> str:
        return render(message, self._history.names)

    def _is_by_team(self, message: Message) -> bool:
        return self._people.is_team(message.author, self._history.guild_of(message))
