"""Fetches pages, lists and repositories from the web, safely.

Pitfall 17: the redirects or the name of a page may lead to hosts that only this machine can reach. Every address of
every hop is checked, and the checked one is dialled. Pitfall 21: size, type and time are bounded.
"""

# pyright: reportUnusedImport=false
from typing import TYPE_CHECKING

from services import lazy_exports

if TYPE_CHECKING:
    from services.knowledge.web.exchange import why_not_public
    from services.knowledge.web.fetcher import RendererMissing, open_web

__getattr__ = lazy_exports(__name__)
