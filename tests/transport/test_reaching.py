"""Why a server cannot be used, told apart: at a start, and by `--check`."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments untyped.

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import ssl
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from nats.errors import Error, SecureConnWantedError
from nats.js import api

from tests.loopback.nats_credentials import Operator
from tests.loopback.nats_server import NatsServer, delete_all_streams, free_port
from transport import address, connection
from transport.address import Address, ServersUnusable
from transport.connection import ServerUnreachable, connect, explain_failure, find_out_why_unreachable, streams_of
from transport.server_probe import ProbeResult, probe_servers
from transport.streams import Layout, create_streams

pytestmark = pytest.mark.real_time

VARIABLE = "NATS_CREDS"
needs_nkeys = pytest.mark.skipif(find_spec("nkeys") is None, reason="nkeys is not here: it comes with the extra nats")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits here for a server that starts."""
    monkeypatch.setattr("transport.connection.CONNECT_SECONDS", 0.3)
    monkeypatch.delenv(VARIABLE, raising=False)


async def refused(*servers: str) -> str:
    with pytest.raises(ServersUnusable) as raised:
        await connect(Address(servers), "test")
    assert "\n" not in str(raised.value)
    return str(raised.value)


async def seen(*servers: str, layout: Layout = Layout()) -> ProbeResult:  # noqa: B008 (immutable)
    return await probe_servers(Address(servers), layout, "test")


def free() -> str:
    return f"nats://127.0.0.1:{free_port()}"


async def test_each_address_that_cannot_be_reached_says_why() -> None:
    nobody, unknown = free(), "nats://no.such.name.invalid:4222"
    said = await refused(nobody, unknown)
    assert f"{nobody} cannot be reached: nothing listens there (connection refused): check the port" in said
    assert f"{unknown} cannot be reached: its name is not known (DNS): check the name" in said
    assert said.startswith("transport: ")
    found = await seen(nobody, unknown)
    assert [each.silent for each in found.servers] == [True, True]
    assert found.streams is None


async def test_what_is_not_nats_is_told_from_who_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PROBE_SECONDS", 0.2)
    greeting = [b"SSH-2.0-OpenSSH\r\n"]

    async def greeted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for line in greeting:
            writer.write(line)
        try:
            await reader.read()
        finally:
            writer.close()

    server = await asyncio.start_server(greeted, "127.0.0.1", 0)
    async with server:
        url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert "what listens there does not speak as NATS does" in await refused(url)
        greeting.clear()
        assert "it does not answer: check the port, and the server's log" in await refused(url)


async def test_one_server_is_enough_to_start_and_the_silent_one_is_named(nats_server: NatsServer) -> None:
    nobody = free()
    client = await connect(Address((nobody, nats_server.url)), "test")
    await delete_all_streams(client)
    await client.close()
    found = await seen(nobody, nats_server.url)
    assert [each.silent for each in found.servers] == [True, False]
    assert (found.streams, found.wrong) == ((), ())


async def test_streams_are_compared_as_a_start_compares_them_and_none_is_made(nats_server: NatsServer) -> None:
    """Pitfall 70."""
    client = await connect(Address((nats_server.url,)), "test")
    try:
        await delete_all_streams(client)
        assert (await seen(nats_server.url)).streams == ()
        assert await streams_of(client).streams_info() == []
        await create_streams(client, Layout())
        found = await seen(nats_server.url)
        assert found.wrong == ()
        assert found.streams == ("MESSAGES", "CAPTURES", "ROLES", "PLACES", "LOG")

        await streams_of(client).update_stream(
            api.StreamConfig(
                name="CAPTURES", subjects=["captures.*", "more.*"], retention=api.RetentionPolicy.WORK_QUEUE
            )
        )
        other = Layout(partitions=8, lease_seconds=9.0)
        found = await seen(nats_server.url, layout=other)
        partitions, captures, *_, lease = found.wrong
        assert lease.startswith("nats.lease_seconds: the bucket members was made for 3 s")
        assert partitions.startswith("nats.partitions: the stream MESSAGES was made as messages.{{partition(32,1)}}")
        assert captures.startswith("nats: the stream CAPTURES: ")
        with pytest.raises(ServersUnusable) as raised:
            await create_streams(client, other)
        assert str(raised.value) == partitions
    finally:
        await delete_all_streams(client)
        await client.close()


async def test_a_stream_that_cannot_be_looked_at_is_no_missing_one(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> dict[str, object]:
        return {"error": {"err_code": 10008, "description": "JetStream system temporarily unavailable"}}

    monkeypatch.setattr("transport.streams._request", away)
    found = await seen(nats_server.url)
    [line] = found.wrong
    assert line == "nats: the stream MESSAGES cannot be looked at: JetStream system temporarily unavailable"


async def test_a_server_without_streams_says_so_at_once(tmp_path: Path, nats_server: NatsServer) -> None:
    with NatsServer(tmp_path, more="jetstream: disabled\n") as server:
        client = await connect(Address((server.url,)), "test")
        try:
            with pytest.raises(
                ServersUnusable, match="transport: the NATS server keeps no streams: start it with JetStream"
            ):
                await create_streams(client, Layout())
        finally:
            await client.close()
        [looked] = (await seen(server.url)).servers
        assert looked.trouble is not None
        assert "keeps no streams" in looked.trouble
        assert looked.version
        assert not looked.silent


async def test_an_old_server_is_refused_with_its_version(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "OLDEST_VERSION", (3, 1))
    said = await refused(nats_server.url)
    assert said.startswith("transport: 127.0.0.1:")
    assert said.endswith("; install 3.1 or newer")
    [looked] = (await seen(nats_server.url)).servers
    assert looked.trouble is not None
    assert looked.trouble.startswith(f"transport: {nats_server.url} is version 2.")
    assert not looked.silent


async def test_a_server_that_wants_credentials_names_the_variable(tmp_path: Path, nats_server: NatsServer) -> None:
    operator = Operator()
    with NatsServer(tmp_path, more=operator.configuration()) as server:
        said = await refused(free(), server.url)
        assert said == (
            f"nats.credentials_env: {server.url} lets nobody in without credentials (Authorization Violation); set "
            "NATS_CREDS to the path of a file of credentials"
        )
        [looked] = (await seen(server.url)).servers
        assert looked.trouble == said
        assert not looked.silent


@needs_nkeys
async def test_credentials_are_accepted_or_refused_by_the_account(
    tmp_path: Path, nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = Operator()
    with NatsServer(tmp_path, more=operator.configuration()) as server:
        monkeypatch.setenv(VARIABLE, str(operator.credentials(tmp_path / "bot.creds")))
        client = await connect(Address((server.url,)), "test")
        try:
            await create_streams(client, Layout())
        finally:
            await client.close()
        found = await seen(server.url)
        assert [each.trouble for each in found.servers] == [None]
        assert found.wrong == ()

        other = Operator().credentials(tmp_path / "other.creds")
        monkeypatch.setenv(VARIABLE, str(other))
        said = await refused(server.url)
        assert said.startswith(f"nats.credentials_env: {server.url} does not let in who has {other} (")
        assert said.endswith("have NATS_CREDS name a file of credentials for that server")

        narrow = operator.credentials(tmp_path / "narrow.creds", pub={"allow": ["nothing"]})
        monkeypatch.setenv(VARIABLE, str(narrow))
        monkeypatch.setattr("transport.connection.ANSWER_SECONDS", 0.3)
        [looked] = (await seen(server.url)).servers
        assert looked.trouble is not None
        assert "forbids what is needed (" in looked.trouble
        assert "js.api.info" in looked.trouble.lower()


@needs_nkeys
async def test_an_account_that_may_keep_no_streams_is_told(
    tmp_path: Path, nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = Operator()
    with NatsServer(tmp_path, more=operator.configuration(streams=False)) as server:
        monkeypatch.setenv(VARIABLE, str(operator.credentials(tmp_path / "bot.creds")))
        [looked] = (await seen(server.url)).servers
        assert looked.trouble is not None
        assert "keeps no streams" in looked.trouble


def test_a_variable_that_names_no_usable_file_is_told_before_anybody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Operator().credentials(tmp_path / "bot.creds")
    whole = path.read_text()
    asked = Address(("nats://127.0.0.1:9",))
    for content, says in (
        ("", "is no file of NATS credentials"),
        (whole.replace("BEGIN NATS USER JWT", "BEGIN"), "is no file of NATS credentials"),
        (whole.replace("SU", "SX"), "is no file of NATS credentials"),
        (None, "cannot be read (No such file or directory)"),
    ):
        path.unlink()
        if content is not None:
            path.write_text(content)
        else:
            path = tmp_path / "gone.creds"
        monkeypatch.setenv(VARIABLE, str(path))
        with pytest.raises(ServersUnusable) as raised:
            _ = asked.credentials
        assert str(raised.value).startswith(f"nats.credentials_env: NATS_CREDS: {path} {says}")
        assert str(raised.value).endswith("correct or unset the variable")
    assert replace(asked, credentials_env="ANOTHER").credentials is None


def test_credentials_need_what_signs_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(Operator().credentials(tmp_path / "bot.creds")))
    monkeypatch.setattr(address, "find_spec", dict[str, None]().get)
    with pytest.raises(ServersUnusable, match="need the package nkeys; run `make extra-nats`"):
        _ = Address(()).credentials


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate of 127.0.0.1, signed by itself, and its key."""
    folder, key = tmp_path_factory.mktemp("tls"), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    begin = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(begin + dt.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(made.public_bytes(encoding))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(encoding, *plain))
    return folder


def tls(folder: Path, more: str = "") -> str:
    return f'tls {{ cert_file: "{folder / "cert.pem"}", key_file: "{folder / "key.pem"}"{more} }}\n'


async def test_tls_is_as_the_address_says(
    tmp_path: Path, nats_server: NatsServer, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with NatsServer(tmp_path, more=tls(certificate)) as server:
        url = server.url.replace("nats:", "tls:")
        assert "its certificate is refused (TLS, " in await refused(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
        client = await connect(Address((url,)), "test")
        await client.close()
        [looked] = (await seen(url)).servers
        assert looked.trouble is None


async def test_what_is_to_be_secret_is_not_said_in_the_clear(nats_server: NatsServer) -> None:
    """The client of NATS would go on without TLS where the server offers none."""
    url = nats_server.url.replace("nats:", "tls:")
    said = await refused(url)
    assert said == (
        f"transport: {url} cannot be reached: it offers no TLS: write nats:// instead of tls://, or switch TLS on there"
    )


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (Error("nats: 'Authorization Violation'"), ServersUnusable, "nats.credentials_env: nats://a lets nobody in"),
        (
            Error("nats: 'User Authentication Expired'"),
            ServersUnusable,
            "nats.credentials_env: nats://a lets nobody in",
        ),
        (SecureConnWantedError(), ServerUnreachable, "transport: nats://a cannot be reached: it offers no TLS"),
        (
            ssl.SSLError(1, "[SSL] handshake failure"),
            ServerUnreachable,
            "transport: nats://a cannot be reached: TLS fails",
        ),
        (TimeoutError(), ServerUnreachable, "transport: nats://a cannot be reached: it does not answer"),
        (
            Error("nats: maximum connections exceeded"),
            ServerUnreachable,
            "(maximum connections exceeded): check the port",
        ),
    ],
)
def test_causes_are_told_apart(error: Exception, kind: type[ServersUnusable], says: str) -> None:
    found = explain_failure(Address(("nats://a",)), "nats://a", error)
    assert type(found) is kind
    assert says in str(found)


async def test_who_answers_late_is_not_said_to_be_silent(nats_server: NatsServer) -> None:
    found = await find_out_why_unreachable(Address((nats_server.url,)), "test")
    assert str(found).endswith("they answer late; start it again")


@pytest.mark.parametrize(
    ("server", "near"),
    [
        ("nats://127.0.0.1:4222", True),
        ("127.9.9.9:4222", True),
        ("nats://[::1]:4222", True),
        ("nats://LOCALHOST", True),
        ("nats://127.evil.com", False),
        ("nats://10.0.0.1", False),
        ("nats://nats.example.org", False),
    ],
)
def test_a_server_elsewhere_that_is_shown_no_credentials_is_told_of(
    server: str, near: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert Address((server,)).unprotected_server == (None if near else server)
    monkeypatch.setenv(VARIABLE, "/run/bot.creds")
    assert Address((server,)).unprotected_server is None
