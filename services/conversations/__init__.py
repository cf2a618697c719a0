"""Conversations on Discord: history and people, which conversation a message belongs to, routing, what is in flight,
what the bot has posted, and the bot's own fixed sentences.
"""

# pyright: reportUnusedImport=false
from services.conversations.context import Context, ContextRules
from services.conversations.follow_rules import FollowRules
from services.conversations.following import Follower
from services.conversations.history import History, edited
from services.conversations.in_flight import CalledOff, InFlight
from services.conversations.newest import NewestIds
from services.conversations.outbox import Outbox, StartedReply, forget_started, read_started
from services.conversations.people import LeftAlone, OptOuts, People, TeamActivity, TeamIds, Viewing
from services.conversations.phrases import Phrases, in_language, phrases
from services.conversations.records import Mark, Post, Posts, Seen, read_marks, read_posts, render_marks
from services.conversations.routing import Router, RouteRules, Routing
from services.conversations.typists import TYPING_SECONDS, Typists
