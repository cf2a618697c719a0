"""Discord's wire objects (API v10) → messages, places and events.

Live gateway, REST history, recordings and exports all come in through here. Unknown fields are ignored, ids may be
strings or numbers, and optional fields may be missing or null. An unusable payload raises `OddPayload`, whose text
names the field and never what somebody wrote.
"""

# pyright: reportUnusedImport=false
from services.discord.wire.decoder import USED_TYPES, Decoder, message, quoted
from services.discord.wire.payloads import OddPayload
