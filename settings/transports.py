"""The types of what is set of the transport."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from settings.kinds import ValueHelp

LOCAL = "local"
NATS_ADDRESS = re.compile(r"(?:nats|tls|wss?)://[^\s,@]+")


def _transport(given: Any) -> str:
    """Check the addresses of NATS servers. Passwords in them are refused, since addresses are shown; use
    `nats.credentials_env`.
    """
    if not isinstance(given, str):
        raise ValueError("not text")  # noqa: TRY004 (as above)
    addresses = [each.strip() for each in given.split(",")]
    if given != LOCAL and not all(map(NATS_ADDRESS.fullmatch, addresses)):
        raise ValueError("no address")
    return ",".join(addresses)


Transport = Annotated[
    str,
    BeforeValidator(_transport),
    ValueHelp("`local`, or addresses of NATS servers such as nats://10.0.0.1:4222,nats://10.0.0.2:4222", as_text=True),
]
Partitions = Annotated[int, Field(ge=1, le=99, strict=True), ValueHelp("a whole number from 1 to 99")]
Replicas = Annotated[Literal[1, 3, 5], ValueHelp("1, 3 or 5")]
