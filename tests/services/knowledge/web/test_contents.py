"""From bytes to text."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest

from clock import Processes, WorkStopped
from services.knowledge.web.contents import Extraction, decode, read
from services.knowledge.web_interface import FetchFailed, Page
from tests.loopback.web_server import WebServer, page
from tests.services.knowledge.web.fetching import failure_of, fetching, page_of

P = ParamSpec("P")
T = TypeVar("T")

GUIDE = """<?xml version="1.0" encoding="iso-8859-1"?>
<!DOCTYPE html><html><head><title> Setting
 up </title><meta charset="iso-8859-1"></head><body><nav><a href="/">Home</a> <a href="/all">All pages</a></nav>
<article><h1>Setting up the mill</h1>
<p>To set the wheel up, run the following command in a shell. It takes a few minutes and needs <code>water</code>.</p>
<pre><code class="language-sh">mill install --wheel
  --with &lt;stones&gt;</code></pre>
<h2>Ports</h2><table><tr><th>Name</th><th>Port</th></tr><tr><td>http</td><td>8080</td></tr></table>
<ul><li>first this</li><li>then that</li></ul><p>Straße, Überlauf, naïve. It is done when the wheel turns by itself.</p>
</article><footer>All rights reserved.</footer><script>alert("no")</script></body></html>"""
SHELL = "<html><head><title>App</title></head><body><div id='root'></div><script src='/app.js'></script></body></html>"
MAX = 2_000_000


def test_the_main_text_of_a_page_keeps_headings_code_tables_and_lists() -> None:
    found = read(GUIDE.encode(), "text/html", MAX)
    assert found.title == "Setting up"
    assert found.text.startswith("# Setting up the mill\n")
    for kept in ("mill install --wheel\n  --with <stones>\n", "| http | 8080 |", "- first this", "`water`", "Straße"):
        assert kept in found.text
    for dropped in ("All pages", "All rights", "alert"):
        assert dropped not in found.text


@pytest.mark.parametrize("kind", ["text/html", "application/xhtml+xml; charset=utf-8", "TEXT/HTML ;x", ""])
def test_pages_are_known_by_their_type_or_looks(kind: str) -> None:
    assert read(GUIDE.encode(), kind, MAX).title == "Setting up"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<html><body>Just this.</body></html>", Page("Just this.", "")),
        ("<html><h1>Name</h1><body><div>Menu</div></body></html>", Page("# Name Menu", "Name")),
        ("<html><body>One\0two</body></html>", Page("One\ufffdtwo", "")),
        ("Just this.", Page("Just this.", "")),
        ("<p>Just this.</p>", Page("Just this.", "")),
        ("<ul><li>One<li>Two</ul>", Page("One Two", "")),
        ("<h1>Name</h1>", Page("# Name", "Name")),
        ("<?xml version='1.0'?><div><p>Just this.</p></div>", Page("Just this.", "")),
    ],
)
def test_where_there_is_no_main_text_all_text_is_taken(body: str, text: Page) -> None:
    found = read(body.encode(), "text/html", MAX)
    assert (" ".join(found.text.split()), found.title) == (text.text, text.title)


@pytest.mark.parametrize(
    "body",
    ["", " \n", "<html></html>", "<html><body><script>x</script></body></html>", SHELL],
)
@pytest.mark.parametrize("kind", ["text/html", ""])
def test_an_empty_page_is_an_error(body: str, kind: str) -> None:
    with pytest.raises(FetchFailed, match="there is no text in it"):
        read(body.encode(), kind, MAX)


def test_of_a_page_of_very_many_elements_the_whole_text_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding its main text would take minutes."""
    monkeypatch.setattr("services.knowledge.web.contents.MAX_ELEMENTS", 20)
    rows = "".join(f"<tr><td>{number}<td>value" for number in range(20))
    found = read(f"<html><title>Big</title><body><table>{rows}".encode(), "text/html", MAX)
    assert found.title == "Big"
    assert found.text.split()[:4] == ["0", "value", "1", "value"]


def test_a_page_that_is_nested_very_deep_ends_as_text_or_error() -> None:
    body = "<html><body>" + "<div>" * 100_000 + "deep" + "</div>" * 100_000
    with pytest.raises(FetchFailed):
        read(body.encode(), "text/html", MAX)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain", "a < b\n\n<b>not bold</b>"),
        ("text/markdown; charset=utf-8", "# Title\n\ntext"),
        ("text/x-markdown", "# Title"),
        ("application/json", '{"a": "ä"}'),
        ("application/ld+json", "[1]"),
        ("", "no type, and no markup"),
    ],
)
def test_text_is_taken_as_it_is(kind: str, body: str) -> None:
    assert read(body.encode(), kind, MAX) == Page(body, "")


@pytest.mark.parametrize("kind", ["image/png", "application/octet-stream", "text/css", "video/mp4", "nonsense"])
def test_other_types_are_refused_by_name(kind: str) -> None:
    with pytest.raises(FetchFailed, match=rf"documents of its type are not read \('{kind}'\)"):
        read(b"text", f"{kind}; charset=utf-8", MAX)


@pytest.mark.parametrize(("kind", "called"), [("text/plain", "text/plain"), ("", "text/plain")])
def test_what_only_calls_itself_text_is_refused(kind: str, called: str) -> None:
    with pytest.raises(FetchFailed, match=f"it calls itself {called}, and is not text"):
        read(b"\x7fELF\0\0\0\1", kind, MAX)


@pytest.mark.parametrize(
    ("data", "declared", "text"),
    [
        ("Straße".encode(), None, "Straße"),
        ("Straße".encode(), "iso-8859-1", "Straße"),  # what many servers call everything
        ("Straße".encode("latin-1"), "iso-8859-1", "Straße"),
        ("„Straße“ für 5 €".encode("cp1252"), "ISO-8859-1", "„Straße“ für 5 €"),
        ("„x“".encode("cp1252") + b"\x81", "latin1", "„x“\ufffd"),
        ("мельница".encode("koi8-r"), "KOI8-R", "мельница"),
        ("мельница".encode("cp1251"), "windows-1251", "мельница"),
        ("水車".encode("shift-jis"), "Shift_JIS", "水車"),
        ("水車".encode("iso2022_jp"), "iso-2022-jp", "水車"),
        ("水车转动，石磨也转动。轉".encode("gb18030"), "gb2312", "水车转动，石磨也转动。轉"),
        ("Straße".encode("utf-16"), None, "Straße"),
        ("Straße".encode("utf-16-be"), "utf-16be", "Straße"),
        (codecs.BOM_UTF8 + "Straße".encode(), "koi8-r", "Straße"),
        (codecs.BOM_UTF32_LE + "水".encode("utf-32-le"), None, "水"),
        ("Straße".encode("latin-1"), None, "Stra\ufffde"),
        ("Straße".encode("latin-1"), "utf-8", "Stra\ufffde"),
        ("Straße".encode("latin-1"), "no-such-charset", "Stra\ufffde"),
        ("Straße".encode("latin-1"), "\0", "Stra\ufffde"),
        (b"\xff-1", "punycode", "\ufffd-1"),
        (b"\xff", "hex", "\ufffd"),
        (b"", "utf-8", ""),
    ],
)
def test_text_is_decoded_as_what_it_is(data: bytes, declared: str | None, text: str) -> None:
    assert decode(data, declared) == text


@pytest.mark.parametrize(
    ("markup", "charset"),
    [
        ('<meta charset="koi8-r">', "koi8-r"),
        ("<META http-equiv=Content-Type content='text/html; charset=KOI8-R'>", "koi8-r"),
        ("<?xml version='1.0' encoding='koi8-r'?>", "koi8-r"),
        ('<meta charset="utf-16">', "utf-8"),  # it was read as ASCII
        ('<meta charset="koi8-r">', "utf-8"),  # it is wrong
        ("<!-- charset=koi8-r -->", "utf-8"),
    ],
)
def test_a_page_may_say_itself_how_it_is_encoded(markup: str, charset: str) -> None:
    data = f"{markup}мельница".encode(charset)
    assert decode(data, None, html=True) == f"{markup}мельница"
    # A server that knows better comes first.
    assert decode(f"{markup}мельница".encode("cp1251"), "cp1251", html=True) == f"{markup}мельница"


@pytest.mark.parametrize(("bom", "odd"), [(codecs.BOM_UTF8, b"\xff"), (codecs.BOM_UTF16_BE, b"\xd8")])
def test_what_a_byte_order_mark_promises_may_be_damaged(bom: bytes, odd: bytes) -> None:
    charset = "utf-8" if bom == codecs.BOM_UTF8 else "utf-16-be"
    assert decode(bom + "Straße".encode(charset) + odd, "cp1252") == "Straße\ufffd"


def test_the_comments_of_readers_are_no_part_of_a_page() -> None:
    comment = "<p>I had the same trouble with my wheel last year, and it went away by itself.</p>"
    found = read(
        GUIDE.replace("</article>", f"</article><div id='comments'>{comment * 5}</div>").encode(), "text/html", MAX
    )
    assert "same trouble" not in found.text
    assert "mill install" in found.text


def test_the_charset_of_the_header_counts() -> None:
    for declared in ("charset=windows-1251", 'Charset = "windows-1251"; x=y'):
        assert read("мельница".encode("cp1251"), f"text/plain; {declared}", MAX).text == "мельница"


def test_a_meta_in_plain_text_says_nothing() -> None:
    data = '<meta charset="koi8-r">мельница'.encode("koi8-r")
    assert "мельница" not in decode(data, None)


async def test_a_wrong_charset_does_no_harm(server: WebServer) -> None:
    server.paths |= {
        "/wrong": page(GUIDE.encode(), "text/html; charset=iso-8859-1"),
        "/right": page(GUIDE.encode("latin-1"), "text/html"),
        "/nameless": page(GUIDE.encode(), None),
    }
    async with fetching() as web:
        for path in server.paths:
            assert "Straße, Überlauf, naïve" in (await page_of(web, f"{server.origin}{path}")).text


async def test_an_empty_page_is_an_error_over_the_wire_too(server: WebServer) -> None:
    server.paths["/"] = page("")
    async with fetching() as web:
        assert await failure_of(web, server.origin) == "there is no text in it"


def pdf(*texts: str, title: str = "", extra: bytes = b"") -> bytes:
    """A PDF of one page for each text."""
    pages = len(texts)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(pages))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(texts):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        look = "/MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
        objects += [
            f"<< /Type /Page /Parent 2 0 R {look} /Contents {5 + 2 * number} 0 R >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    objects.append(f"<< /Title ({title}) >>")
    out, offsets = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R ".encode() + extra
    return bytes(out + f">>\nstartxref\n{start}\n%%EOF\n".encode())


@pytest.mark.parametrize("kind", ["application/pdf", ""])
def test_a_pdf_is_read_page_by_page(kind: str) -> None:
    pytest.importorskip("pypdf", reason="needs the extra `pdf`")
    body = pdf("The wheel turns.", "", "The stones turn.", title="The  Mill")
    assert read(body, kind, MAX) == Page("The wheel turns.\n\nThe stones turn.", "The Mill")


def test_a_pdf_without_text_is_an_error() -> None:
    pytest.importorskip("pypdf", reason="needs the extra `pdf`")
    with pytest.raises(FetchFailed, match="there is no text in it"):
        read(pdf(""), "application/pdf", MAX)


def test_a_damaged_pdf_is_an_error() -> None:
    pytest.importorskip("pypdf", reason="needs the extra `pdf`")
    for body in (b"", b"%PDF-1.7\nnot really", pdf("x")[:200]):
        with pytest.raises(
            FetchFailed, match=r"no text can be read from it \(application/pdf, [A-Z][A-Za-z]+(Error|Exception)\)$"
        ):
            read(body, "application/pdf", MAX)


def test_a_pdf_with_more_text_than_is_wanted_is_an_error() -> None:
    pytest.importorskip("pypdf", reason="needs the extra `pdf`")
    with pytest.raises(FetchFailed, match=r"longer than 20 characters \(kb\.max_source_bytes\)"):
        read(pdf("The wheel turns.", "The stones turn."), "application/pdf", 20)


def test_a_pdf_with_a_password_is_an_error() -> None:
    pypdf = pytest.importorskip("pypdf", reason="needs the extra `pdf`")
    import io  # noqa: PLC0415 (for this test alone)

    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("Secret.")))
    for password, outcome in (("flour", "asks for a password"), ("", None)):
        writer.encrypt(password, "miller", algorithm="RC4-128")
        packed = io.BytesIO()
        writer.write(packed)
        if outcome is None:
            assert read(packed.getvalue(), "application/pdf", MAX).text == "Secret."
        else:
            with pytest.raises(FetchFailed, match=outcome):
                read(packed.getvalue(), "application/pdf", MAX)


def test_without_the_extra_a_pdf_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(FetchFailed, match="with the extra `pdf` only"):
        read(pdf("x"), "application/pdf", MAX)


async def test_pitfall_38_text_that_is_read_for_ever_ends_the_wait() -> None:
    async def cut_off(_work: Callable[P, T], /, *_args: P.args, **_kwargs: P.kwargs) -> T:
        raise WorkStopped("it takes longer than 30 s")

    with pytest.raises(FetchFailed, match=r"its text cannot be read: it takes longer than 30 s"):
        await Extraction(cut_off, max_bytes=MAX).text(b"", "text/plain")


async def test_pitfall_64_a_page_that_takes_minutes_to_parse_is_given_up() -> None:
    """For each attribute of an element the parser looks at all those before it."""
    attributes = " ".join(f"a{number}=1" for number in range(200_000))
    processes = Processes(seconds=1)
    try:
        with pytest.raises(FetchFailed, match=r"its text cannot be read: it takes longer than 1 s"):
            await Extraction(processes.run, max_bytes=MAX).text(f"<p><a {attributes}>x</a>".encode(), "text/html")
    finally:
        await processes.close()
