"""Post a text to a webhook of Discord, or to one that takes `{"text": …}`, as those of Slack and Mattermost do."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from services.telemetry.connections import connection_problem

SECONDS = 10.0
DISCORD = "/api/webhooks/"
"""The beginning of the paths of Discord's webhooks (API reference, "Webhook")."""


class WebhookFailed(Exception):
    """The webhook did not take a text. The message says why, without its address.

    Attributes:
        retry_after: the seconds that it asks to wait before a retry.
    """

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Webhook:
    """Posts texts to an address, which is a secret: who knows it can post there."""

    address: str = field(repr=False)

    async def send(self, text: str) -> None:
        """Post a text that mentions nobody. Raises WebhookFailed."""
        import aiohttp  # noqa: PLC0415 (a tenth of a second that most commands do not need)

        payload: dict[str, object] = {"text": text.replace("**", "")}  # few others know this markup
        if DISCORD in self.address and not self.address.endswith("/slack"):
            payload = {"content": text, "allowed_mentions": {"parse": list[str]()}}
        posted = aiohttp.request("POST", self.address, json=payload, allow_redirects=False)
        try:
            async with asyncio.timeout(SECONDS), posted as response:
                status, wanted = response.status, response.headers.get("Retry-After", "")
        except TimeoutError:
            raise WebhookFailed(f"it did not answer within {SECONDS:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # Without the cause, whose message may hold the address.
            raise WebhookFailed(f"it cannot be reached: {connection_problem(error)}") from None
        if not 200 <= status < 300:  # noqa: PLR2004 (the class of success)
            seconds = float(wanted) if wanted.isdecimal() else 0.0
            raise WebhookFailed(f"it answered {status}", retry_after=seconds)
