"""Discord: what it sends, what is read from it, and what is posted there.

This package needs no connection: `Fetcher` and `Poster` are the seams, `wire` decodes payloads, `text` renders and
splits. `live` implements the seams with discord.py, `slash` the commands; import those two only where a bot runs.
"""

# pyright: reportUnusedImport=false
from services.discord import recordings
from services.discord.attachments import AttachmentFailed, Attachments, CDNAttachments, RecordedAttachments
from services.discord.dispatches import BadLine, Dispatch, parse_line, read_frame, render_line
from services.discord.protocols import (
    Access,
    DryRunPoster,
    Fetcher,
    GatewayRefused,
    Health,
    LookupFailed,
    Poster,
    PostFailed,
    TakenBack,
    Undelivered,
)
from services.discord.recordings import BadRecording, RecordingFilter
from services.discord.text import inert, render, split, thread_name
from services.discord.wire import THREAD_TYPES, USED_TYPES, Decoder, OddPayload, message
