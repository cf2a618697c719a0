"""The connection to Discord through discord.py: one session, REST calls with retries, permissions."""

# pyright: reportUnusedImport=false
from services.discord.live.calls import CrowdedChannels, ForbiddenPlaces, reason, refusal
from services.discord.live.identity import Identity, Server, access_to, identity, name_of, servers_of
from services.discord.live.permissions import (
    PERMISSION_EVENTS,
    LiveAccess,
    exposure_warnings,
    invitation,
    permission_warning,
    readable_channels,
)
from services.discord.live.rest import DiscordPoster, RestFetcher
from services.discord.live.reviews import DiscordReviews, Press, watch_presses
from services.discord.live.session import Client, keep_session, pause
