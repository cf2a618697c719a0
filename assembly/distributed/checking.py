"""What `--check` asks the servers of NATS."""

from __future__ import annotations

from assembly import Unusable
from assembly.distributed.process import address_of, layout_of, named
from settings import Settings
from transport import checking
from transport.checking import ProbeResult
from transport.errors import ServersUnusable


async def look(settings: Settings) -> ProbeResult:
    """Raises Unusable: nobody can be asked with these credentials."""
    try:
        return await checking.look(address_of(settings), layout_of(settings.nats), named())
    except ServersUnusable as error:
        raise Unusable(str(error)) from None
