"""Discord: its payloads, its recordings, and the interfaces for reading and posting.

This package needs no connection: `Fetcher` and `Poster` are interfaces, `wire` decodes payloads, `text` renders and
splits. `live` implements both with discord.py, `slash` the commands; import `live` and `slash` only where a bot runs.
"""

# pyright: reportUnusedImport=false
from typing import TYPE_CHECKING

from services import lazy_exports

if TYPE_CHECKING:
    from services.discord import recordings
    from services.discord.attachments import (
        AttachmentFailed,
        Attachments,
        AttachmentUnreachable,
        CDNAttachments,
        RecordedAttachments,
    )
    from services.discord.dispatches import BadLine, Dispatch, parse_line, read_frame, render_line
    from services.discord.protocols import (
        PAGE_SIZE,
        Access,
        DryRunPoster,
        Fetcher,
        GatewayHealth,
        GatewayRefused,
        LookupFailed,
        Poster,
        PostFailed,
        TakenBack,
        Undelivered,
    )
    from services.discord.recordings import BadRecording, RecordingFilter
    from services.discord.review_cards import ReviewCard, Reviews, button_in, version_of
    from services.discord.text import escape_markup, render, split, thread_name
    from services.discord.wire import THREAD_TYPES, USED_TYPES, Decoder, OddPayload, read_message

__getattr__ = lazy_exports(__name__)
