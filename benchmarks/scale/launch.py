"""`python app.py …` with discord.py pointed at a scripted Discord, whose files may be downloaded as well.

`python -m benchmarks.scale.launch REST_BASE GATEWAY_URL [arguments of app.py]`
"""

from __future__ import annotations

import sys
from unittest.mock import patch

import discord.http
import yarl
from discord.gateway import DiscordWebSocket

import app
from services.discord import CDNAttachments


def main() -> int:
    base, gateway, *arguments = sys.argv[1:]
    discord.http.Route.BASE = base
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway)
    defaults: dict[str, object] = CDNAttachments.__init__.__kwdefaults__ or {}
    with patch.dict(defaults, origins={str(yarl.URL(base).origin())}):
        return app.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
