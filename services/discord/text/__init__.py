"""Text as Discord takes it and as people read it.

splitting  an answer → pieces that Discord accepts
rendering  a message → plain text for a prompt or an archive; a question → the name of its thread
"""

# pyright: reportUnusedImport=false
from services.discord.text.rendering import inert, render, thread_name
from services.discord.text.splitting import split
