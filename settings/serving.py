"""Whether what is served can be reached, and by whom: what concerns several keys at once."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Sequence

from settings.errors import Problem
from settings.sections import Settings


def dashboard_problems(settings: Settings, where: Callable[[Sequence[object]], str]) -> Iterator[Problem]:
    """Report a dashboard that nobody, or everybody, could open. `where`: gives the line of a key."""
    host = settings.metrics.host
    if not settings.dashboard.enabled:
        return
    if not settings.metrics.port:
        text = "dashboard.enabled is true, but metrics.port is 0: set metrics.port, such as 9090, which serves both"
        yield Problem(where(("dashboard", "enabled")), "dashboard.enabled", text)
    elif not is_loopback(host) and not settings.dashboard.token.get_secret_value():
        remedy = "set dashboard.token, or metrics.host to 127.0.0.1"
        text = f"metrics.host is {host}, where others reach the dashboard: {remedy}"
        yield Problem(where(("metrics", "host")), "dashboard.token", text)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
