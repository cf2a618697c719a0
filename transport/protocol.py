"""Words of the server that nats-py has no names for: headers of messages, and numbers of errors."""

from __future__ import annotations

MESSAGE_ID = "Nats-Msg-Id"
ROLLUP, TTL = "Nats-Rollup", "Nats-TTL"
LAST, LAST_OF = "Nats-Expected-Last-Subject-Sequence", "Nats-Expected-Last-Subject-Sequence-Subject"
# Of a bucket: what became of a key, and why the server says so where nobody did it.
OPERATION, PURGE, REASON = "KV-Operation", "PURGE", "Nats-Marker-Reason"

NO_MESSAGE = 10037
"""None is kept of that subject."""
NO_STREAM = 10059
NOT_DELETED = 10057
"""The message is not in its stream, or no longer."""
NOT_UNIQUE = 10100
"""A work queue has a consumer for these subjects."""
WRONG_LAST = (10071, 10164)
"""Somebody else has written since."""
BEING_STORED, FULL = 10158, 10077
