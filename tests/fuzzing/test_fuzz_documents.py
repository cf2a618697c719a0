"""Files that people attach, of every kind that is taken."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from services.documents.limits import KINDS, FileLimits, FileRefused, lines_of
from services.documents.prepared import DocumentKind, Prepared
from services.documents.reading.configs import outline_of
from services.documents.reading.preparing import decode, prepare
from services.documents.reading.redacting import DocumentRedactors
from tests.fuzzing.mutations import THOROUGHLY, damaged, one_line
from tests.fuzzing.samples import DOCUMENTS, INI, JSON, KNOWN, SECRET, TOML, TOPIC, XML, YAML

LIMITS = FileLimits(max_file_bytes=200_000, max_lines=5_000, max_line_chars=400)
ENDINGS = sorted(KINDS)


def prepared(filename: str, data: bytes, kind: DocumentKind | None = None) -> Prepared | None:
    """None: it was refused, in one line."""
    redactors = DocumentRedactors([KNOWN])
    try:
        return prepare(filename, data, limits=LIMITS, kind=kind, redactors=redactors)
    except FileRefused as refused:
        one_line(refused)
        return None


def sound(found: Prepared) -> None:
    """What every reader promises: places are in the file, in order, and hold what the file holds."""
    lines = found.text.split("\n")
    assert found.n_lines in (len(lines), len(lines) - 1)
    assert max(map(len, lines)) <= LIMITS.max_line_chars
    assert [chunk.index for chunk in found.chunks] == list(range(len(found.chunks)))
    for chunk in found.chunks:
        assert 1 <= chunk.line_start <= chunk.line_end <= found.n_lines
        assert all(1 <= line <= found.n_lines for line in chunk.lines)
        assert chunk.section_index is None or 0 <= chunk.section_index < len(found.chunks)
        "\n".join([chunk.text, chunk.heading or "", chunk.key_path or "", chunk.symbol or ""]).encode()
    for record in found.lines:
        assert lines[record.line_no - 1] == found.text[record.text_offset :].split("\n", 1)[0]
    covered = {line for chunk in found.chunks for line in range(chunk.line_start, chunk.line_end + 1)}
    missing = {at for at, line in enumerate(lines, start=1) if line.strip()} - covered
    # Front matter and the header of a table are with the other chunks.
    most = {DocumentKind.MARKDOWN: 200, DocumentKind.METRICS: 50}.get(found.kind, 0)
    assert not missing or (found.chunks and max(missing) <= most and max(missing) < min(covered))


@THOROUGHLY
@given(
    st.sampled_from(sorted(DOCUMENTS)).flatmap(lambda name: st.tuples(st.just(name), damaged(DOCUMENTS[name].encode())))
)
@example(("a.csv", b"name,value\n"))
@example(("a.csv", b'name,"value\na,1\nb,2\n'))
@example(("a.csv", b"name,value\n" + b'a,"1\n' + b"b,2\n" * 99))
@example(("a.ini", b"\xef\xbb\xbf"))
@example(
    ("a.jsonl", b'{"ts": NaN, "level": "ERROR", "msg": "x"}\n{"ts": 1e400, "msg": "y"}\n{"ts": 1' + b"0" * 400 + b"}\n")
)
def test_a_file_is_refused_or_read_with_every_line_in_its_place(file: tuple[str, bytes]) -> None:
    name, data = file
    found = prepared(name, data)
    if found is not None:
        sound(found)


@THOROUGHLY
@given(
    st.sampled_from(ENDINGS),
    st.none() | st.sampled_from(DocumentKind),
    damaged(*map(str.encode, [*DOCUMENTS.values(), TOPIC])),
)
def test_so_is_one_that_is_called_something_else(ending: str, kind: DocumentKind | None, data: bytes) -> None:
    found = prepared(f"x{ending}", data, kind)
    if found is not None:
        sound(found)


@THOROUGHLY
@given(
    st.sampled_from(["a.json", "a.yaml", "a.toml", "a.ini", "a.xml", "a.conf"]),
    damaged(*map(str.encode, (JSON, YAML, TOML, INI, XML))),
)
@example("a.yaml", b"a: 1\n---\n")
@example("a.yaml", b"a: 1\n---\n- &a\n")
@example("a.ini", b"a = b \\\n")
def test_an_outline_points_at_the_lines_that_hold_what_it_says(name: str, data: bytes) -> None:
    try:
        text, _ = decode(name, data)
    except FileRefused:
        return
    outline, lines = outline_of(name, text), lines_of(text)
    for key in outline.keys:
        assert 1 <= key.line <= len(lines)
    assert [key.line for key in outline.keys] == sorted({key.line for key in outline.keys})
    for leaf in outline.leaves:
        assert 1 <= leaf.line_start <= leaf.line_end <= max(1, len(lines))
        if leaf.start < leaf.end:
            assert leaf.end <= len(text)
            assert text.count("\n", 0, leaf.start) + 1 >= leaf.line_start


@THOROUGHLY
@given(
    st.sampled_from(sorted(DOCUMENTS)).flatmap(
        lambda name: st.tuples(st.just(name), damaged(DOCUMENTS[name].encode()))
    ),
    st.booleans(),
)
def test_a_secret_that_is_whole_in_a_file_is_nowhere_in_what_is_kept(file: tuple[str, bytes], as_is: bool) -> None:
    name, data = file
    found = prepared(name if as_is else "x.txt", data)
    if found is None:
        return
    kept = "\n".join(
        [
            found.text,
            *(text for chunk in found.chunks for text in (chunk.text, chunk.key_path or "", chunk.heading or "")),
        ]
    )
    for secret in (SECRET, KNOWN):
        assert not re.search(rf"(?<![\w-]){secret}(?![\w-])", kept)
