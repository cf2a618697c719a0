"""Conversations on Discord: history and people, which conversation a message belongs to, routing, what is in flight,
what the bot has posted, and the bot's own fixed sentences.
"""

# pyright: reportUnusedImport=false
from services.conversations.context import Context, ContextRules
from services.conversations.history import History, edited
from services.conversations.in_flight import CalledOff, InFlight
from services.conversations.people import (
    TYPING_SECONDS,
    LeftAlone,
    OptOuts,
    People,
    TeamActivity,
    TeamIds,
    Typists,
    Viewing,
)
from services.conversations.phrases import Phrases, in_language, phrases
from services.conversations.posts import (
    Mark,
    Outbox,
    Post,
    Posts,
    Seen,
    StartedReply,
    forget_started,
    read_marks,
    read_posts,
    read_started,
    render_marks,
)
from services.conversations.routing import Router, RouteRules, Routing
from services.conversations.tracking import Follower, FollowRules, NewestIds
