"""The addresses of the NATS servers, the credentials that they ask for, and the error if these cannot be used."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

CREDENTIALS = re.compile(
    rb"-----BEGIN NATS USER JWT-----\r?\n[^\n]+\n.*-----BEGIN USER NKEY SEED-----\nSU[A-D][A-Z2-7]{55}\n", re.DOTALL
)
"""The form of a credentials file. With another form, the client loops without end or fails without a message."""


NO_CREDENTIALS_WARNING = (
    "is shown no credentials: if it asks for none, everybody who reaches it reads and writes all that people say; have "
    "it ask, and set the variable that nats.credentials_env names (docs/scaling.md)"
)
"""The warning about a server without credentials, put behind its address: the risk, and the remedy."""


class ServersUnusable(Exception):
    """The servers cannot be used as configured. The message is one line: what is wrong, and what to do."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the servers are. `credentials_env`: names the variable that holds the path of a file of credentials."""

    servers: tuple[str, ...]
    credentials_env: str = "NATS_CREDS"

    @property
    def unprotected_server(self) -> str | None:
        """A server on another machine to which this process connects without credentials; None: there is none."""
        if os.environ.get(self.credentials_env):
            return None
        return next((each for each in self.servers if not _is_local(each) and not _parse_url(each).username), None)

    @property
    def credentials(self) -> str | None:
        """The path of the file; None: the variable is not set. Raises ServersUnusable: the file cannot be used."""
        path, variable = os.environ.get(self.credentials_env, ""), f"nats.credentials_env: {self.credentials_env}"
        if not path:
            return None
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise ServersUnusable(f"{variable}: {path} cannot be read ({why}); correct or unset the variable") from None
        if not CREDENTIALS.search(content):
            raise ServersUnusable(
                f"{variable}: {path} is no file of NATS credentials, as `nsc generate creds` writes it; correct or "
                "unset the variable"
            )
        if find_spec("nkeys") is None:
            raise ServersUnusable(f"{variable}: files of credentials need the package nkeys; run `make extra-nats`")
        return path


def _parse_url(server: str) -> SplitResult:
    return urlsplit(server if "://" in server else f"nats://{server}")


def _is_local(server: str) -> bool:
    host = (_parse_url(server).hostname or "").lower()
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"  # any other name may lead anywhere
