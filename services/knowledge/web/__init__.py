"""Fetches what sources need from the web, safely.

Pitfall 17: a page may redirect to, or its name may resolve to, what only this machine can reach. Every address of
every hop is checked, and the checked one is dialled. Pitfall 21: size, type and time are bounded.
"""

# pyright: reportUnusedImport=false
from services.knowledge.web.fetcher import RendererMissing, open_web
