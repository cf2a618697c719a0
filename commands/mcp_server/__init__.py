"""`--mcp`: what the bot knows, for the assistants of its team, over the Model Context Protocol. Nothing is written.

serving     the command: what is opened, and which way it is served
stdio, http     the two ways
protocol    tools as the protocol has them: arguments checked, failures in words, secrets taken out
tools       what a tool is                  knowledge, files    the tools
access      whose files may be read

Only `protocol`, `stdio` and `http` import the extra `mcp`; `serving` imports them when the command is used.
"""

# pyright: reportUnusedImport=false
from commands.mcp_server.serving import run
