"""Discord's wire objects (API v10), turned into our vocabulary.

wire      the Pydantic models of what Discord sends, as far as we read it
messages  one message
places    channels, threads and forum posts, and whether everyone can see them
decoder   gateway dispatches → events

Live gateway, REST history, recordings and exports all come in through here. Unknown fields are ignored, ids may be
strings or numbers, and whatever can be missing may be missing or null. A payload without what we need raises
`OddPayload`, whose text names the field and never shows what somebody wrote.
"""

# pyright: reportUnusedImport=false
from services.discord.wire.decoder import Decoder
from services.discord.wire.messages import message, quoted
from services.discord.wire.payloads import OddPayload
from services.discord.wire.places import place
