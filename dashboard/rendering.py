"""Templates into responses, with the headers that every page has."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

POLICY = (
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # `no-referrer` would take the origin from our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
TYPES = {"app.js": "text/javascript", "style.css": "text/css", "icon.svg": "image/svg+xml"}


@cache
def static() -> Mapping[str, bytes]:
    folder = resources.files("dashboard") / "static"
    return {name: (folder / name).read_bytes() for name in TYPES}


@cache
def templates() -> Environment:
    return Environment(
        loader=PackageLoader("dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def version() -> str:
    """Hash the static files; their addresses contain it, so that browsers may cache them."""
    return hashlib.sha256(b"".join(static().values())).hexdigest()[:12]


def page(template: str, status: int = 200, **values: object) -> web.Response:
    text = templates().get_template(template).render(version=version(), **values)
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8", headers=HEADERS)


def file(name: str) -> web.Response:
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return web.Response(body=static()[name], content_type=TYPES[name], charset="utf-8", headers=headers)


def see(path: str) -> web.Response:
    """Redirect to another page."""
    return web.Response(status=303, headers={**HEADERS, "Location": path})
