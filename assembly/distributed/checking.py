"""What `--check` asks the servers of NATS."""

from __future__ import annotations

from assembly import Unusable
from assembly.distributed.process import address_of, layout_of, named
from settings import Settings
from transport import checking
from transport.checking import ServersFound
from transport.errors import Unfit


async def look(settings: Settings) -> ServersFound:
    """Raises Unusable: nobody can be asked with these credentials."""
    try:
        return await checking.look(address_of(settings), layout_of(settings.nats), named())
    except Unfit as error:
        raise Unusable(str(error)) from None
