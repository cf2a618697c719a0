"""Questions about logs in the forms of other programs, asked of the tool as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.documents.store import protocol
from services.documents.store.document_store import DocumentStore, embed_document
from services.documents.store.protocol import Collection
from services.documents.tools import libraries
from services.documents.tools.libraries import QAResult, Status
from tests.hashing import HashingEmbedder
from tests.services.documents import cases

pytestmark = pytest.mark.real_time

ACCESS = """\
10.0.0.7 - - [11/Feb/2032:06:00:01 +0000] "GET / HTTP/1.1" 200 77438 "-" "-"
10.0.0.8 - - [11/Feb/2032:06:00:05 +0000] "GET /orders/17 HTTP/1.1" 502 157 "-" "-"
10.0.0.7 - - [11/Feb/2032:06:00:09 +0000] "GET /cart HTTP/1.1" 200 9120 "-" "-"
10.0.0.9 - - [11/Feb/2032:06:00:12 +0000] "GET /orders/18 HTTP/1.1" 502 157 "-" "-"
10.0.0.9 - - [11/Feb/2032:06:00:19 +0000] "GET /img/a.png HTTP/1.1" 200 4711 "-" "-"
"""
ERRORS = """\
2032/02/11 06:00:00 [notice] 1180#1180: signal process started
2032/02/11 06:05:24 [warn] 1180#1180: *227 a response is buffered to a temporary file
2032/02/11 06:12:40.502 [error] 1180#1180: *250 connect() failed while connecting to upstream
2032/02/11 06:22:32 [crit] 1180#1180: *281 SSL_do_handshake() failed
2032/02/11 06:30:44 [emerg] 1180#1180: *307 bind() to 0.0.0.0:80 failed
2032/02/11 06:32:58 [error] 1180#1180: *314 open() "/srv/favicon.ico" failed
"""
EVENTS = """\
02/11/2032 06:00:00 AM  Information  Service Control Manager  7036  The Print Spooler service is running.
02/11/2032 06:21:18 AM  Error        Disk                     7     The device has a bad block.
02/11/2032 06:30:31 AM  Error        Service Control Manager  7034  The Invoice Bridge service terminated.
02/11/2032 06:46:27 AM  Critical     Kernel-Power             41    The system has rebooted.
"""
SERVICE = """\
11-02-2032 06:00:00.000 [main] INFO  o.e.Main - Started
11-02-2032 06:32:42.434 [http-2] ERROR o.e.Payments - Payment pay_d0d0cafe was booked twice
11-02-2032 06:34:50.070 [main] INFO  o.e.Main - Graceful shutdown requested
11-02-2032 06:34:51.070 [main] INFO  o.e.Main - Goodbye
"""
BUILD = """\
#1 [internal] load build definition from Dockerfile
#8 0.143 Collecting attrs==1.8.8
#8 0.286 Downloading attrs.whl (56 kB)
#11 5.902   ERROR: Failed building wheel for psycopg-c
#12 8.101 WARNING: The script isort is not on PATH.
#15 12.010 ERROR: Cannot install flask==3.0.2 and werkzeug==2.2.1
"""
FILES = {"access.log": ACCESS, "errors.log": ERRORS, "events.log": EVENTS, "service.log": SERVICE, "build.txt": BUILD}


async def ask(folder: Path, name: str, question: str) -> QAResult:
    store: DocumentStore = cases.new_store(folder)
    await cases.post(store, name, FILES[name])
    result = await cases.tools_over(store, embedder=HashingEmbedder())[libraries.CASE].ask(cases.context(), question)
    await store.close()
    return result


@pytest.mark.parametrize(
    ("name", "question", "line"),
    [
        ("access.log", "which request was the first to come back with 502?", 2),
        ("access.log", "When did we last see a 502?", 4),
        ("access.log", "who got status 502 last?", 4),
        ("errors.log", "show me the only emerg entry", 5),
        ("errors.log", "When did errors start?", 3),
        ("errors.log", "What was the second error?", 4),
        ("errors.log", "the second to last error?", 5),
        ("events.log", "event id 7034 - what is it about?", 3),
        ("events.log", "the last event of type Error", 3),
        ("service.log", "What occurred at 06:32:42.434?", 2),
        ("service.log", "what came after the shutdown was requested?", 4),
        ("service.log", "the last shutdown?", 3),
        ("build.txt", "the 1st ERROR?", 4),
        ("build.txt", "which version of werkzeug? Show every line with werkzeug==2.2.1", 6),
    ],
)
async def test_the_line_meant_is_cited_first(tmp_path: Path, name: str, question: str, line: int) -> None:
    result = await ask(tmp_path, name, question)
    assert result.status is Status.OK
    assert result.citations[0].line_start == line


@pytest.mark.parametrize(
    ("name", "question", "count"),
    [
        ("access.log", "How many 502 responses?", 2),
        ("errors.log", "how many crit entries are there", 1),
        ("errors.log", "how often does 502 appear?", 0),
        ("events.log", "How many events of type Error were recorded?", 2),
        ("service.log", "hw many ERROR lines did the service log?", 1),
        ("service.log", "how often does pay_ffff_x show up?", 0),
        ("build.txt", "the amount of ERROR lines?", 2),
    ],
)
async def test_entries_are_counted(tmp_path: Path, name: str, question: str, count: int) -> None:
    assert (await ask(tmp_path, name, question)).plan["count"] == count


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("service.log", "Please look up pay_ffffffff"),
        ("events.log", "Any event 9988?"),
        ("errors.log", "gone.example.net - did it answer?"),
        ("errors.log", "the fifth error?"),
    ],
)
async def test_what_is_not_there_is_not_made_up(tmp_path: Path, name: str, question: str) -> None:
    result = await ask(tmp_path, name, question)
    assert (result.status, result.citations) == (Status.NOT_FOUND, ())


async def test_the_closest_lines_are_shown_with_a_word_about_the_name_that_is_in_none(tmp_path: Path) -> None:
    result = await ask(tmp_path, "service.log", "Was PaymentQueue booked twice?")
    assert result.status is Status.OK
    assert "no entry mentions PaymentQueue" in result.answer


async def test_part_of_a_long_name_finds_it(tmp_path: Path) -> None:
    result = await ask(tmp_path, "errors.log", "Where is DoHandshake?")
    assert result.citations[0].line_start == 4


async def test_a_host_that_most_articles_hold_does_not_decide_their_order(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    texts = [f"# Part {n}\n\nSee www.example.net/docs for part {n} of the handbook.\n" for n in range(12)]
    texts.append("# Machines\n\nThe computers stand in a cellar in Vienna, in the second district of the town.\n")
    collection = Collection(protocol.user_collection(str(cases.FRAN)), "user", str(cases.FRAN))
    for number, text in enumerate(texts):
        (document,) = await store.add(collection, [cases.new(f"{number}.md", text, title=f"Article {number}")])
        await embed_document(store, HashingEmbedder(), collection.name, document.doc_id)
    box = cases.tools_over(store, embedder=HashingEmbedder())
    result = await box[libraries.USER].ask(
        cases.context(public=False), "In which town do the computers of www.example.net stand?"
    )
    assert result.sources[0] == "Article 12"
