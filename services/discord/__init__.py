"""Discord: what it sends, what it is asked, and what is posted there.

This package needs no connection: `Fetcher` and `Poster` are the seams, `wire` decodes payloads, `text` renders and
splits. `live` implements the seams with discord.py, `slash` the commands; import those two only where a bot runs.
"""

# pyright: reportUnusedImport=false
from services.discord import recordings
from services.discord.attachments import AttachmentFailed, Attachments, CDNAttachments, RecordedAttachments
from services.discord.clearing import Clearing
from services.discord.connection import GatewayRefused, Health
from services.discord.dispatches import Dispatch, render_line
from services.discord.frames import read_frame
from services.discord.protocols import Fetcher, LookupFailed, Poster, PostFailed
from services.discord.recordings import BadRecording
from services.discord.rehearsal import Rehearsal
