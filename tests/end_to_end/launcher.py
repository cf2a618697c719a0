"""`python app.py …` in a process of its own, with discord.py pointed at a loopback Discord.

`python -m tests.end_to_end.launcher REST_BASE GATEWAY_URL [arguments of app.py]`
"""

from __future__ import annotations

import sys

import discord.http
import yarl
from discord.gateway import DiscordWebSocket

import app


def main() -> int:
    base, gateway, *arguments = sys.argv[1:]
    discord.http.Route.BASE = base
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway)
    return app.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
