"""Who has said what, and where: history and people, what is in flight, what was posted, who opted out."""

# pyright: reportUnusedImport=false
from services.conversations import state
from services.conversations.context import Context, ContextRules
from services.conversations.history import History, edited
from services.conversations.in_flight import CalledOff, InFlight
from services.conversations.opt_outs import OptOuts
from services.conversations.people import People
from services.conversations.posts import Post, Posts
from services.conversations.routing import Decision, Router, RouteRules
from services.conversations.seen import Seen
from services.conversations.team_activity import TeamActivity
from services.conversations.viewing import Viewing
