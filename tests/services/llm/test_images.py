"""Pictures: their type, their limits, and where they may come from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

import clock
from model.conversations import Image
from model.messages import Attachment
from services.discord.attachments import AttachmentFailed, CDNAttachments, RecordedAttachments
from services.llm.images import (
    MAX_IMAGE_BYTES,
    AttachedImages,
    ImageFailed,
    ImageUnusable,
    choose_images,
    image_adapter,
    load_images,
    sniff,
)

Play = Callable[[web.Request], Awaitable[web.StreamResponse]]

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def attached(url: str = "https://cdn.discordapp.com/a.png", *, size: int = 100, name: str = "a.png") -> Attachment:
    return Attachment(id=77, filename=name, size=size, url=url)


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0abc", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\x10\0\0\0WAVEfmt ", None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
        (b"", None),
    ],
)
def test_the_type_is_told_from_the_bytes(data: bytes, media_type: str | None) -> None:
    assert sniff(data) == media_type


def test_an_unknown_adapter_is_told_which_there_are() -> None:
    with pytest.raises(ValueError, match="'Nope'; known: OpenAIImageAdapter"):
        image_adapter("Nope")
    assert image_adapter("OpenAIImageAdapter")


class CDN:
    """Serves what it is told, on loopback, where time is real."""

    def __init__(self) -> None:
        self.plays: list[Play] = []
        self.otherwise: Play = status(200)
        self.seen: list[str] = []
        self.origin = ""
        self.runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", self.handle)
        self.runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True, access_log=None)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.origin = f"http://127.0.0.1:{self.runner.addresses[0][1]}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request.path_qs)
        return await (self.plays.pop(0) if self.plays else self.otherwise)(request)

    def then(self, *plays: Play) -> None:
        self.plays.extend(plays)

    @property
    def attachments(self) -> CDNAttachments:
        return CDNAttachments(timeout_seconds=5, origins={self.origin}, first_pause_seconds=0.01)

    def images(self, *, timeout_seconds: float = 5) -> AttachedImages:
        return AttachedImages(
            CDNAttachments(timeout_seconds=timeout_seconds, origins={self.origin}, first_pause_seconds=0.01)
        )


@pytest.fixture
async def cdn() -> AsyncIterator[CDN]:
    cdn = CDN()
    await clock.run_in_real_time(cdn.start)
    assert cdn.runner is not None
    yield cdn
    await clock.run_in_real_time(cdn.runner.cleanup)


def status(code: int, **headers: str) -> Play:
    async def play(_: web.Request) -> web.StreamResponse:
        return web.Response(status=code, headers=headers, body=PNG)

    return play


def body(data: bytes) -> Play:
    async def play(_: web.Request) -> web.StreamResponse:
        return web.Response(body=data)

    return play


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(PNG)
    while True:
        await response.write(b"\0" * 1_000_000)


async def hang(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def drop(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def test_a_picture_is_downloaded_with_its_signature_and_takes_no_virtual_time(cdn: CDN) -> None:
    begun = clock.now()
    image = await cdn.images().load(attached(f"{cdn.origin}/attachments/1/2/a.png?ex=1&hm=2"))
    assert (image.name, image.media_type, image.data) == ("a.png", "image/png", PNG)
    assert cdn.seen == ["/attachments/1/2/a.png?ex=1&hm=2"]
    assert clock.now() == begun


@pytest.mark.real_time
@pytest.mark.parametrize("play", [status(500), status(429), drop], ids=["500", "429", "drop"])
async def test_what_may_pass_is_tried_again(cdn: CDN, play: Play) -> None:
    cdn.then(play, play)
    assert (await cdn.images().load(attached(f"{cdn.origin}/a"))).data == PNG
    assert len(cdn.seen) == 3
    cdn.otherwise = play
    with pytest.raises(ImageFailed, match="attachment 77 could not be downloaded") as caught:
        await cdn.images().load(attached(f"{cdn.origin}/a"))
    assert not isinstance(caught.value, ImageUnusable)
    # The client itself repeats a GET whose connection was dropped.
    assert len(cdn.seen) in {6, 9}


@pytest.mark.parametrize("code", [204, 302, 404])
async def test_what_will_not_pass_is_not_tried_again(cdn: CDN, code: int) -> None:
    cdn.then(status(code, Location="http://127.0.0.1:9/elsewhere"))
    with pytest.raises(ImageUnusable, match=f"HTTP {code}"):
        await cdn.images().load(attached(f"{cdn.origin}/a"))
    assert len(cdn.seen) == 1


@pytest.mark.real_time
async def test_a_download_that_hangs_ends(cdn: CDN) -> None:
    cdn.otherwise = hang
    with pytest.raises(ImageFailed, match=r"within 0\.1 s"):
        await cdn.images(timeout_seconds=0.1).load(attached(f"{cdn.origin}/a"))


@pytest.mark.parametrize(
    "url",
    [
        "http://cdn.discordapp.com/a.png",
        "https://cdn.discordapp.com.evil.example/a.png",
        "https://evil.example/cdn.discordapp.com/a.png",
        "https://cdn.discordapp.com@evil.example/a.png",
        "https://me@cdn.discordapp.com/a.png",
        "https://cdn.discordapp.com:8443/a.png",
        "https://cdn.discordapp.com:x/a.png",
        "https://cdn.discordapp.com\\@evil.example/a.png",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "https://[/a.png",
        "",
    ],
)
async def test_pitfall_21_only_discords_hosts_are_dialled(url: str) -> None:
    """21: images come over https from Discord's CDN, whatever the message says."""
    with pytest.raises(ImageFailed, match="attachment 77 is not on Discord's CDN"):
        await AttachedImages(CDNAttachments()).load(attached(url))


async def test_pitfall_21_size_is_limited_as_announced_and_as_sent(cdn: CDN) -> None:
    """21: by what Discord says, by what the server says, and by what arrives."""
    with pytest.raises(ImageUnusable, match="larger than 10 MB"):
        await cdn.images().load(attached(f"{cdn.origin}/a", size=MAX_IMAGE_BYTES + 1))
    assert cdn.seen == []
    for play in (body(PNG + b"\0" * MAX_IMAGE_BYTES), endless):
        cdn.then(play)
        with pytest.raises(ImageUnusable, match="larger than 10 MB"):
            await cdn.images().load(attached(f"{cdn.origin}/a"))


async def test_pitfall_21_the_type_counts_and_not_the_name(cdn: CDN) -> None:
    """21: a page that is called a.png is no picture."""
    cdn.then(body(b"<html>"))
    with pytest.raises(ImageUnusable, match="no png, jpeg, gif or webp"):
        await cdn.images().load(attached(f"{cdn.origin}/a.png"))


@pytest.mark.real_time
async def test_pitfall_22_a_signed_address_is_in_no_error(cdn: CDN) -> None:
    """22: whoever reads a log could fetch the file with it."""
    cdn.otherwise = drop
    with pytest.raises(ImageFailed) as caught:
        await cdn.images().load(attached(f"{cdn.origin}/a.png?hm=signature"))
    assert "signature" not in str(caught.value)


async def test_all_pictures_are_loaded_in_order_and_files_left_out(cdn: CDN) -> None:
    cdn.then(body(PNG + b"1"), body(PNG + b"2"))
    attachments = [attached(f"{cdn.origin}/1"), attached("x", name="log.txt"), attached(f"{cdn.origin}/2")]
    assert [image.data[-1:] for image in await load_images(cdn.images(), attachments)] == [b"1", b"2"]


async def test_what_is_no_image_is_left_out_and_what_cannot_be_loaded_now_where_it_is_not_required(cdn: CDN) -> None:
    attachments = [attached(f"{cdn.origin}/1"), attached(f"{cdn.origin}/2")]
    cdn.then(body(b"<html>"), body(PNG))
    assert [image.data for image in await load_images(cdn.images(), attachments)] == [PNG]
    far = [attached("http://127.0.0.1:9/x"), attached(f"{cdn.origin}/2")]
    assert len(await load_images(cdn.images(), far)) == 1


class Far:
    async def load(self, attachment: Attachment) -> Image:
        raise ImageFailed(f"attachment {attachment.id} could not be downloaded")


async def test_only_an_image_that_is_required_is_missed() -> None:
    assert await load_images(Far(), [attached()], required=False) == ()
    with pytest.raises(ImageFailed):
        await load_images(Far(), [attached()])


def test_an_image_that_is_too_large_takes_no_room_from_others() -> None:
    large, small = attached(size=MAX_IMAGE_BYTES + 1), Attachment(id=5, filename="b.png", size=9, url="")
    assert choose_images([large, small]) == {5}


async def test_any_attachment_can_be_had_whole_and_uncompressed(cdn: CDN) -> None:
    asked: list[str | None] = []

    async def log(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers.get("Accept-Encoding"))
        return web.Response(body=b"all is well\n" * 1000)

    cdn.then(log)
    file = attached(f"{cdn.origin}/a", name="server.log", size=12_000)
    assert await cdn.attachments.content(file, 12_000) == b"all is well\n" * 1000
    assert asked == ["identity"]


async def test_what_comes_compressed_all_the_same_is_not_taken(cdn: CDN) -> None:
    async def bomb(_: web.Request) -> web.StreamResponse:
        return web.Response(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})

    cdn.then(bomb)
    with pytest.raises(AttachmentFailed, match="came compressed"):
        await cdn.attachments.content(attached(f"{cdn.origin}/a"), 1000)


async def test_a_limit_reads_as_it_is_written() -> None:
    large = attached(size=20_000_000)
    for limit, says in ((10 * 1024 * 1024, "10 MiB"), (10_000_000, "10 MB"), (2_500_000, "2.5 MB")):
        with pytest.raises(AttachmentFailed, match=f"larger than {says}"):
            await CDNAttachments().content(large, limit)


def recorded(folder: Path | None) -> AttachedImages:
    return AttachedImages(RecordedAttachments(folder))


async def test_a_recorded_picture_is_read_by_its_id(tmp_path: Path) -> None:
    (tmp_path / "77").write_bytes(PNG)
    image = await recorded(tmp_path).load(attached())
    assert (image.media_type, image.data) == ("image/png", PNG)


async def test_a_recorded_picture_meets_the_same_limits(tmp_path: Path) -> None:
    (tmp_path / "77").write_bytes(PNG + b"\0" * MAX_IMAGE_BYTES)
    with pytest.raises(ImageUnusable, match="larger than 10 MB"):
        await recorded(tmp_path).load(attached())
    (tmp_path / "77").write_bytes(b"text")
    with pytest.raises(ImageUnusable, match="no png"):
        await recorded(tmp_path).load(attached())


async def test_what_is_not_in_the_folder_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "recorded.attachments"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(PNG)
    (folder / "77").symlink_to(tmp_path / "secret")
    (folder / "-1").write_bytes(PNG)
    odd = Attachment(id=-1, filename="a.png", size=1, url="")
    missing = Attachment(id=5, filename="a.png", size=1, url="")
    for source, attachment in [
        (recorded(folder), attached()),
        (recorded(folder), odd),
        (recorded(folder), missing),
        (recorded(tmp_path / "none"), attached()),
        (recorded(None), attached()),
    ]:
        with pytest.raises(ImageFailed, match="not among the recording's attachments"):
            await source.load(attachment)
