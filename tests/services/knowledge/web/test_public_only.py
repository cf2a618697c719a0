"""Pitfall 17: no way leads to an address that is not public, unless its host is exempt."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiohttp.abc import ResolveResult
from yarl import URL

import clock
from services.knowledge.web import exchange
from services.knowledge.web.client import CheckedClient, next_url
from services.knowledge.web.exchange import Answer, HttpExchange
from services.knowledge.web_interface import FetchFailed
from tests.loopback.web_server import WebServer, drop, page, redirect, status
from tests.services.knowledge.web.fetching import LOOPBACK, Names, client, failure_of, fetching, page_of

HTML = "<html><body><article><p>The inside of the mill.</p></article></body></html>"
PUBLIC = "93.184.215.14"


@pytest.fixture
def inside(server: WebServer) -> WebServer:
    server.paths["/"] = page(HTML)
    return server


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1.", "2130706433", "0x7f.1", "localhost", "[::ffff:127.0.0.1]"])
async def test_a_page_of_this_machine_is_not_asked_for(inside: WebServer, host: str) -> None:
    async with fetching(client(private_hosts=())) as web:
        assert "not public" in await failure_of(web, f"http://{host}:{inside.port}/")
    assert inside.seen == []


@pytest.mark.parametrize(
    "to", ["http://127.0.0.2:{port}/", "http://169.254.169.254/latest/meta-data/", "//[::1]:{port}/", "http://0/"]
)
async def test_a_redirect_to_the_inside_is_not_followed(inside: WebServer, to: str) -> None:
    inside.paths["/away"] = redirect(to.format(port=inside.port))
    async with fetching() as web:
        failure = await failure_of(web, f"{inside.origin}/away")
    assert failure.startswith("it redirects to where nothing is fetched: its address is not public")
    assert len(inside.seen) == 1


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], [PUBLIC, "10.0.0.1"], ["::1", PUBLIC], ["fe80::1%lo"], ["nonsense"]]
)
async def test_a_name_with_any_address_of_the_inside_is_not_dialled(inside: WebServer, addresses: list[str]) -> None:
    async with fetching(client(names=Names(addresses))) as web:
        failure = await failure_of(web, f"http://mill.example:{inside.port}/")
    assert failure == (
        "its host name leads to an address that is not public; hosts of your own belong in kb.web_fetch_private_hosts"
    )
    assert inside.seen == []


async def test_a_name_is_looked_up_as_it_was_asked_for() -> None:
    """The check is in between, and changes nothing."""
    asked: list[tuple[str, int, socket.AddressFamily]] = []

    class Listening(Names):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            asked.append((host, port, family))
            return await super().resolve(host, port, family)

    found = await exchange.PublicOnly(Listening([PUBLIC])).resolve("mill.example", 81, socket.AF_INET)
    assert [(each["host"], each["port"]) for each in found] == [(PUBLIC, 81)]
    assert asked == [("mill.example", 81, socket.AF_INET)]


class Rerouted(socket.socket):
    """Ends on loopback where it is told to dial `PUBLIC`; keeps whatever it is told to dial."""

    dialled: ClassVar[list[str]] = []

    def connect(self, address: Any, /) -> None:
        self.dialled.append(address[0])
        super().connect(("127.0.0.1", *address[1:]) if address[0] == PUBLIC else address)


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    def rerouted(info: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
        return Rerouted(info[0], info[1], info[2])

    monkeypatch.setattr(exchange, "_socket", rerouted)
    Rerouted.dialled.clear()
    return Rerouted.dialled


async def test_the_address_that_was_checked_is_the_one_that_is_dialled(inside: WebServer, dialled: list[str]) -> None:
    """Whatever a second look-up would give: there is none."""
    names = Names([PUBLIC], ["127.0.0.1"])
    async with fetching(client(names=names, private_hosts=())) as web:
        assert (await page_of(web, f"http://mill.example:{inside.port}/")).text == "The inside of the mill."
    assert names.asked == ["mill.example"]
    assert dialled == [PUBLIC]


async def test_each_hop_is_looked_up_and_checked_anew(inside: WebServer, dialled: list[str]) -> None:
    """A name that was public a moment ago is not trusted for it."""
    inside.paths["/away"] = redirect("/")
    async with fetching(client(names=Names([PUBLIC], ["127.0.0.1"]), private_hosts=())) as web:
        failure = await failure_of(web, f"http://mill.example:{inside.port}/away")
    assert failure.startswith("its host name leads to an address that is not public")
    assert dialled == [PUBLIC]
    assert len(inside.seen) == 1


async def test_a_repeated_request_is_looked_up_and_checked_anew(inside: WebServer, dialled: list[str]) -> None:
    """The client itself repeats a request whose connection was cut."""
    inside.paths["/"] = drop
    async with fetching(client(names=Names([PUBLIC], ["127.0.0.1"]), private_hosts=())) as web:
        await failure_of(web, f"http://mill.example:{inside.port}/")
    assert set(dialled) == {PUBLIC}


async def test_the_last_gate_is_at_the_dialling_itself(inside: WebServer) -> None:
    """Should a URL ever get by its check."""
    exchange = HttpExchange(max_bytes=100, private_hosts=(), user_agent="mill", resolver=lambda: Names(LOOPBACK))
    with pytest.raises(FetchFailed, match="cannot be reached"):
        await clock.run_in_real_time(lambda: exchange.ask(URL(inside.origin), {}))
    assert inside.seen == []


async def test_exempt_hosts_may_lie_inside_and_their_neighbours_may_not(inside: WebServer) -> None:
    async with fetching(client(private_hosts=["Wiki.Intern."])) as web:
        assert (await page_of(web, f"http://wiki.intern:{inside.port}/")).text == "The inside of the mill."
        for host in ("a.wiki.intern", "intern", "wiki.intern.example", "127.0.0.1"):
            assert "not public" in await failure_of(web, f"http://{host}:{inside.port}/")
    assert len(inside.seen) == 1


@pytest.mark.parametrize("spelling", ["::1", "[::1]", " [::1] "])
def test_an_exempt_address_may_be_written_as_in_a_url(spelling: str) -> None:
    assert exchange.host_key(spelling) == exchange.host_key("::1") == "::1"


async def test_a_name_that_cannot_be_looked_up_is_an_error() -> None:
    class Nowhere(Names):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async with fetching(client(names=Nowhere([]))) as web:
        assert await failure_of(web, "http://mill.example/") == "its host name cannot be looked up"


async def test_names_are_looked_up_by_the_system(inside: WebServer) -> None:
    used = CheckedClient(private_hosts=["localhost"])
    async with fetching(used) as web:
        assert (await page_of(web, f"http://localhost:{inside.port}/")).text == "The inside of the mill."


def test_https_to_http_is_not_followed() -> None:
    answer = Answer(URL("https://mill.example/"), 302, {"Location": "http://mill.example/"}, b"")
    with pytest.raises(FetchFailed, match=r"^it redirects from https to http, which is not followed$"):
        next_url(answer, ())


async def test_no_proxy_password_or_cookie_is_used(
    inside: WebServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever lies around on the machine."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login miller password flour\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    inside.paths |= {"/": page(HTML, Set_Cookie="a=b"), "/away": status(302, Location="/", Set_Cookie="c=d; Path=/")}
    async with fetching() as web:
        for path in ("/", "/away"):
            await page_of(web, f"{inside.origin}{path}")
    assert len(inside.seen) == 3
    assert not any({"Cookie", "Authorization"} & headers.keys() for _, headers in inside.seen)
