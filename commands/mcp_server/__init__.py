"""`--mcp`: what the bot knows, for the assistants of its team, over the Model Context Protocol. Nothing is written.

serving     the command: what is opened, and which way it is served
protocol    tools as the protocol has them: arguments checked, failures in words, secrets taken out; over stdio
http        the same over HTTP
tools       the tools, and whose files they may read

Only `protocol` and `http` import the extra `mcp`; `serving` imports them when the command is used.
"""

# pyright: reportUnusedImport=false
from commands.mcp_server.serving import run
