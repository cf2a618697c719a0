"""Who may use a server: an operator, an account and its users, as `nsc` makes them, with files of credentials."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SEED, OPERATOR, ACCOUNT, USER = 18 << 3, 14 << 3, 0, 20 << 3
"""What a key begins with, once it is written in base32: S, O, A or U (NATS, "NKeys")."""
UNBOUNDED = dict.fromkeys(
    (
        "subs",
        "data",
        "payload",
        "imports",
        "exports",
        "conn",
        "leaf",
        "mem_storage",
        "disk_storage",
        "streams",
        "consumer",
    ),
    -1,
)
NO_STREAMS = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), 0)


@dataclass(frozen=True)
class Key:
    """`kind`: OPERATOR, ACCOUNT or USER."""

    kind: int
    private: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def public(self) -> str:
        return _written(bytes([self.kind]) + self.private.public_key().public_bytes_raw())

    @property
    def seed(self) -> str:
        head = bytes([SEED | self.kind >> 5, (self.kind & 31) << 3])
        return _written(head + self.private.private_bytes_raw())

    def says(self, of: Key, kind: str, claims: Mapping[str, Any]) -> str:
        """A JWT about another key."""
        about = {"jti": "x", "iat": 1, "iss": self.public, "name": kind, "sub": of.public}
        body = {**about, "nats": {**claims, "type": kind, "version": 2}}
        signed = f"{_encoded({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{_encoded(body)}"
        return f"{signed}.{_url(self.private.sign(signed.encode()))}"


@dataclass(frozen=True)
class Operator:
    """One operator with one account that may use streams."""

    key: Key = field(default_factory=lambda: Key(OPERATOR))
    account: Key = field(default_factory=lambda: Key(ACCOUNT))
    system: Key = field(default_factory=lambda: Key(ACCOUNT))

    def configuration(self, *, streams: bool = True) -> str:
        """Lines for the server. `streams`: whether the account may have any."""
        bounds = UNBOUNDED if streams else {**UNBOUNDED, **NO_STREAMS}
        accounts = {each.public: self.key.says(each, "account", {"limits": bounds}) for each in (self.account,)}
        accounts[self.system.public] = self.key.says(self.system, "account", {"limits": {**UNBOUNDED, **NO_STREAMS}})
        preloaded = "\n".join(f'  {public}: "{jwt}"' for public, jwt in accounts.items())
        operator = self.key.says(self.key, "operator", {"system_account": self.system.public})
        return (
            f'operator: "{operator}"\nsystem_account: {self.system.public}\nresolver: MEMORY\n'
            f"resolver_preload: {{\n{preloaded}\n}}\n"
        )

    def credentials(self, path: Path, **claims: object) -> Path:
        """A file for a new user of the account."""
        user = Key(USER)
        jwt = self.account.says(user, "user", {**dict.fromkeys(("subs", "data", "payload"), -1), **claims})
        path.write_text(
            f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
        )
        return path


def _written(raw: bytes) -> str:
    return base64.b32encode(raw + _crc16(raw).to_bytes(2, "little")).decode().rstrip("=")


def _crc16(data: bytes) -> int:
    """CRC-16/XMODEM."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def _encoded(value: Mapping[str, Any]) -> str:
    return _url(json.dumps(value).encode())


def _url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
