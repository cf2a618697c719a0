"""An invented product, Lanternfish: a photo server that people run at home. Its documentation, and how people ask."""

from __future__ import annotations

from collections.abc import Sequence

from services.assistant.extractive import ExtractiveAssistant
from services.knowledge import IndexEntry, Library, LibrarySearch, Source, SourceUnavailable
from services.search import PassageStore

INSTALL = """\
# Installing Lanternfish

Lanternfish runs on Linux, macOS and Windows. It needs 2 GB of memory and Docker 24 or newer.

## Linux

Download the compose file and start the containers:

```bash
curl -o compose.yaml https://lanternfish.example/compose.yaml
docker compose up -d
```

The first start takes about a minute, because the thumbnail model is unpacked.

## Windows

Install Docker Desktop with the WSL 2 backend first. Then run the same two commands in PowerShell.

- Drives other than C: must be shared with Docker under Settings, Resources, File sharing.
- Sleep must be switched off, or nightly imports are skipped.

## Upgrading

1. Make a backup of the database.
2. Pull the new image with `docker compose pull`.
3. Restart with `docker compose up -d`.

A downgrade is not supported: migrations only go forward.
"""

STORAGE = """\
# Storage

Originals are kept below `LF_MEDIA_ROOT`, one folder a month. Lanternfish never changes an original file.

## Moving the library to another disk

Stop the server, copy the media folder with `rsync -a`, set `LF_MEDIA_ROOT` to the new path and start it again.
Thumbnails are rebuilt when their folder is missing.

## Network shares

NFS works. SMB shares must be mounted with `nobrl`, otherwise the import stops with `E-1042: database is locked`.

## Disk full

When less than 5 % of the disk is free, uploads are refused with `E-2007`. Delete the trash with `lf trash empty`.
"""

SHARING = """\
# Sharing albums

Open an album, press Share and choose who may see it.

## Public links

A public link can have a password and an expiry date. Links expire after 30 days unless another date is chosen.

## Family accounts

An administrator invites family members by e-mail. Invitations are valid for a week. Each member has a quota of
50 GB, which can be changed in the user's settings.
"""

MOBILE = """\
# Mobile app

The app uploads new photos in the background.

## Background upload stops

Android stops background work of apps that are not exempt. Open Settings, Apps, Lanternfish, Battery and choose
Unrestricted.

On iOS, background refresh must be allowed and low power mode must be off.

## Connecting the app to the server

Scan the QR code that is shown under Settings, Devices. The app accepts self-signed certificates only after their
fingerprint was confirmed.
"""

FACES = """\
# Face recognition

Faces are grouped by a model that runs on the server. Nothing is sent elsewhere.

## Turning it off

Set `LF_FACES=off` and restart. Groups that exist already are kept until `lf faces purge` is run.

## Slow or wrong groups

Recognition uses the processor unless a GPU is configured. Merge two groups by dragging one onto the other.
"""

BACKUP = """\
# Backup and restore

`lf backup create` writes the database and the settings into one archive. Originals are not part of it: copy the media
folder separately.

To restore, install the same version, run `lf backup restore FILE` and start the server. Run `lf check` afterwards: it
compares the database with the files.
"""

PROXY = """\
# Reverse proxy and HTTPS

Lanternfish listens on port 2283. Put nginx, Caddy or Traefik in front of it for HTTPS.

With nginx, raise the limit for request bodies, or large videos fail with status 413:

```nginx
client_max_body_size 50000m;
```

WebSocket headers must be passed on, otherwise the timeline does not refresh by itself.
"""

ACCOUNTS = """\
# Accounts

## Forgotten password

An administrator can set a new password with `lf user passwd NAME`. There is no reset by e-mail unless SMTP is
configured.

## Two-factor authentication

Each user turns it on under Settings, Security. When the phone is lost, `lf user reset-2fa NAME` turns it off.

## Single sign-on

OpenID Connect is configured with `LF_OIDC_ISSUER`, `LF_OIDC_CLIENT_ID` and `LF_OIDC_SECRET`.
"""

TEAM_GPU = """\
--- QA ---
id: qa_20260301_101500.000000
timestamp: 2026-03-01T10:15:00.000000Z
User: My NVIDIA card is not used for transcoding, the CPU is at 100 %.
Team: The container needs the NVIDIA runtime. Add `runtime: nvidia` to the service and set `LF_HWACCEL=nvenc`.
  Then restart it.

--- QA ---
id: qa_20260302_080000.000000
timestamp: 2026-03-02T08:00:00.000000Z
User: Does hardware transcoding work on a Raspberry Pi 5?
User: I could not find a setting.
Team: No, the Pi 5 has no encoder that we support.

"""

SOURCES = (
    Source("team:gpu-transcoding.txt", TEAM_GPU),
    Source("kb:guides/accounts.md", ACCOUNTS),
    Source("kb:guides/backup.md", BACKUP),
    Source("kb:guides/faces.md", FACES),
    Source("kb:guides/install.md", INSTALL),
    Source("kb:guides/mobile.md", MOBILE),
    Source("kb:guides/sharing.md", SHARING),
    Source("kb:guides/storage.md", STORAGE),
    Source("kb:https://lanternfish.example/docs/proxy", PROXY),
)

INDEX = (
    IndexEntry(
        "team:gpu-transcoding.txt",
        "Hardware transcoding of video with NVIDIA cards and on small boards such as the Raspberry Pi.",
    ),
    IndexEntry(
        "kb:guides/accounts.md",
        "User accounts: forgotten passwords, two-factor authentication, single sign-on with OpenID Connect.",
    ),
    IndexEntry(
        "kb:guides/backup.md",
        "How to back up and restore the database and settings, and how to check the library afterwards.",
    ),
    IndexEntry("kb:guides/faces.md", "Face recognition: how faces are grouped, merging groups, turning it off."),
    IndexEntry(
        "kb:guides/install.md",
        "Installing Lanternfish with Docker on Linux, macOS and Windows, requirements, upgrading to a new version.",
    ),
    IndexEntry(
        "kb:guides/mobile.md",
        "The Android and iOS app: connecting it to the server, background upload of photos that stops.",
    ),
    IndexEntry(
        "kb:guides/sharing.md", "Sharing albums by public link, passwords and expiry, family members and quotas."
    ),
    IndexEntry(
        "kb:guides/storage.md",
        "Where originals are stored, moving the library to another disk, NFS and SMB shares, disk full, error E-1042.",
    ),
    IndexEntry(
        "kb:https://lanternfish.example/docs/proxy",
        "Running behind a reverse proxy such as nginx, HTTPS, upload size limits, status 413.",
    ),
)

ANSWERABLE = (
    "how do I install this on windows?",
    "Hi everyone, is there a way to move my library to a bigger disk",
    "import always stops with E-1042: database is locked, any idea?",
    "I forgot my password and there is no reset mail",  # a report without a question mark
    "can i turn off face recognition",
    "uploading large videos fails with status 413 behind nginx",
    "The Android app doesn't upload in the background anymore :(",
    "Does anyone know how to restore a backup on a new machine?",
    "I'm trying to connect the iOS app to my server but it can't find it",
    "what's the right way to upgrade to a new version?",
    "My public link has expired already, how long are they valid?",
    "nvidia transcoding isn't working, cpu stays at 100%",
)
NOT_ANSWERABLE = (
    "thanks, that fixed it!",
    "good morning all",
    "lol my cat just walked over the keyboard",
    "how was your weekend?",
    "Anyone here?",
    "You can restore the backup with lf backup restore, worked for me",
    "nice, the new version installs much faster than the old one",
    "what do you think of the new phone?",
    "never mind, I found the setting for the proxy",
    "have you tried to restart docker?",
    "brb dinner",
    "which pizza should I order tonight?",
)

QUESTIONS = (
    # Question, source that holds the answer, words of that answer.
    ("how do I install it on Windows?", "kb:guides/install.md", "Docker Desktop"),
    ("E-1042 database is locked when importing from SMB", "kb:guides/storage.md", "nobrl"),
    ("i lost my phone, how do I get past two-factor authentication", "kb:guides/accounts.md", "reset-2fa"),
    ("how long is a public link valid before it expires?", "kb:guides/sharing.md", "30 days"),
    ("nginx answers 413 when I upload videos", "kb:https://lanternfish.example/docs/proxy", "client_max_body_size"),
    ("background upload on Android stops", "kb:guides/mobile.md", "Unrestricted"),
    ("how to turn off face recognition?", "kb:guides/faces.md", "LF_FACES=off"),
    ("how can I restore a backup?", "kb:guides/backup.md", "lf backup restore"),
    ("does hardware transcoding work on a raspberry pi?", "team:gpu-transcoding.txt", "no encoder"),
    ("move media library to another disk", "kb:guides/storage.md", "rsync -a"),
)
UNANSWERED = (
    # On a subject of the documentation, but not in it.
    "how do I import my library from Google Photos?",
    "which price do you charge for hosting?",
    "is there a dark theme?",
    "can I edit the colours of raw files?",
)


class Bookcase:
    """A library in memory."""

    def __init__(self, index: Sequence[IndexEntry] = INDEX, sources: Sequence[Source] = SOURCES) -> None:
        self.entries = index
        self.sources = {source.id: source for source in sources}
        self.loads = 0

    async def index(self) -> Sequence[IndexEntry]:
        return self.entries

    async def load(self, source_id: str) -> Source:
        self.loads += 1
        if source_id not in self.sources:
            raise SourceUnavailable(source_id)
        return self.sources[source_id]


def search_over(books: Library) -> LibrarySearch:
    """By words only, in memory."""
    return LibrarySearch(books, PassageStore(None), PassageStore(None))


def assistant_over(books: Library) -> ExtractiveAssistant:
    return ExtractiveAssistant(search_over(books))
