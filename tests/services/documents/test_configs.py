from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.documents.limits import lines_of
from services.documents.prepared import Chunk, ChunkType
from services.documents.reading.configs import config_chunks, outline_of
from services.documents.reading.redacting import Redacted
from services.redaction import Redactor

COMPOSE = """\
# The whole shop.
services:
  web:
    image: acme/web:1.2
    ports:
      - "80:80"
      - 443:443
    environment:
      - MODE=production
      - EMPTY=
    test: ["CMD", "true"]
  # The store.
  db:
    image: &image postgres:17
    restart: always
    command: >
      postgres
      -c max_connections=20

    backup: *image
volumes:
  data:
"""


def chunks(filename: str, text: str) -> list[Chunk]:
    outline = outline_of(filename, text)
    return config_chunks(lines_of(text), outline, Redacted(text, outline, Redactor()))


def leaves(filename: str, text: str) -> dict[str, int]:
    return {chunk.text: chunk.line_start for chunk in chunks(filename, text) if chunk.type is ChunkType.LEAF}


def test_values_of_yaml_stand_with_their_path_and_line() -> None:
    assert leaves("compose.yaml", COMPOSE) == {
        "services web image = acme/web:1.2": 4,
        "services web ports = 80:80": 6,
        "services web ports = 443:443": 7,
        "services web environment MODE = production": 9,
        "services web environment EMPTY =": 10,
        'services web test = ["CMD", "true"]': 11,
        "services db image = postgres:17": 14,
        "services db restart = always": 15,
        "services db command = postgres -c max_connections=20": 16,
        "services db backup = *image": 20,
        "volumes data =": 22,
    }


def test_values_of_json_stand_with_their_path_and_line() -> None:
    text = '{\n "a": {"b": [1, 2],\n  "c": [{"d": "x\\ny"}, null]},\n // why\n "e": true\n}\n'
    assert leaves("a.json", text) == {"a b = [1, 2]": 2, "a c 0 d = x y": 3, "a c = null": 3, "e = true": 5}


def test_json_records_one_a_line_are_read_as_a_list() -> None:
    assert leaves("a.json", '{"a": 1}\n{"a": 2}\n') == {"a = 1": 1, "a = 2": 2}


def test_values_of_toml_stand_with_their_path_and_line() -> None:
    text = (
        'top = "x"  # why\n[a."b.c"]\nlong = """\nfirst\nsecond"""\nlist = [\n  1, # one\n  2,\n]\n'
        "inline = { k = 1, l.m = [3] }\nwhen = 2026-02-01 10:00:00\n"
        "[[rows]]\nn = 1\n[[rows]]\nn = 2\n[rows.sub]\nz = 1.5\n"
    )
    assert leaves("a.toml", text) == {
        "top = x": 1,
        "a b.c long = first second": 3,
        "a b.c list = 1": 7,
        "a b.c list = 2": 8,
        "a b.c inline k = 1": 10,
        "a b.c inline l m = 3": 10,
        "a b.c when = 2026-02-01 10:00:00": 11,
        "rows 0 n = 1": 13,
        "rows 1 n = 2": 15,
        "rows 1 sub z = 1.5": 17,
    }


@pytest.mark.parametrize(
    ("filename", "text", "expected"),
    [
        (
            "a.ini",
            "; c\n[main]\nkey = v ; why\nb: 2\n[other x]\nkey=\n",
            {"main key = v": 3, "main b = 2": 4, "other x key =": 6},
        ),
        (".env", "# c\nexport A=1\nB='two words' # no\n", {"A = 1": 2, "B = two words": 3}),
        ("a.properties", "a.b.c=1\nlong = x \\\n  y\n", {"a.b.c = 1": 1, "long = x y": 2}),
        (
            "nginx.conf",
            "http {\n  server {\n    listen 80;\n    location /a {\n      root /srv;\n    }\n  }\n}\n",
            {"http server listen = 80": 3, "http server location /a root = /srv": 5},
        ),
        (
            "httpd.conf",
            "<VirtualHost *:80>\n  ServerName a.example\n</VirtualHost>\n",
            {"VirtualHost *:80 ServerName = a.example": 2},
        ),
        ("sshd.conf", "Port 22\n#Port 23\nPermitRootLogin no\n", {"Port = 22": 1, "PermitRootLogin = no": 3}),
        (
            "a.xml",
            '<c>\n <bean id="x">\n  <port>80</port>\n </bean>\n</c>',
            {"c bean(x) id = x": 2, "c bean(x) port = 80": 3},
        ),
        ("broken.yaml", "a:\n  b: 1\n\tc: {{ d }}\n", {"a b = 1": 2, "a c = {{ d }}": 3}),
    ],
)
def test_values_of_other_formats_are_found(filename: str, text: str, expected: dict[str, int]) -> None:
    assert leaves(filename, text) == expected


def test_sections_follow_the_keys_and_name_what_they_are_part_of() -> None:
    text = COMPOSE.replace("postgres\n", "postgres " + "x" * 600 + "\n")
    found = [chunk for chunk in chunks("compose.yaml", text) if chunk.type is ChunkType.SECTION]
    assert [(chunk.key_path, chunk.line_start, chunk.line_end) for chunk in found] == [
        ("services", 1, 11),
        ("services", 12, 20),
        (None, 21, 22),
    ]
    assert found[1].text.startswith("services\n  # The store.\n  db:\n")
    assert found[2].text == "volumes:\n  data:"


def test_each_value_is_shown_by_the_section_that_holds_it() -> None:
    found = chunks("compose.yaml", COMPOSE.replace("true", "x" * 700))
    for chunk in found:
        if chunk.type is ChunkType.LEAF:
            assert chunk.section_index is not None
            section = found[chunk.section_index]
            assert section.type is ChunkType.SECTION
            assert section.line_start <= chunk.line_start <= section.line_end


def test_entities_of_xml_are_not_expanded() -> None:
    text = '<!DOCTYPE a [<!ENTITY x "boom">]>\n<a>&x;</a>\n'
    assert "boom" not in "".join(leaves("a.xml", text))


def test_aliases_of_yaml_do_not_grow() -> None:
    text = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert len(leaves("a.yaml", text)) == 60


documents = st.recursive(
    st.one_of(st.integers(), st.text("ab: #\n", max_size=8), st.booleans(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abc", max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(
    st.sampled_from(["a.yaml", "a.json", "a.toml", "a.ini", "a.xml"]), st.text("ab=:[]{}\"'<>/#- \n&*,", max_size=80)
)
def test_any_text_is_cut_into_all_of_its_lines(filename: str, text: str) -> None:
    lines = lines_of(text)
    found = chunks(filename, text)
    sections = [chunk for chunk in found if chunk.type is ChunkType.SECTION]
    covered = [number for chunk in sections for number in range(chunk.line_start, chunk.line_end + 1)]
    assert covered == list(range(1, len(lines) + 1))
    for chunk in sections:
        header = f"{chunk.heading}\n" if chunk.heading else ""
        assert chunk.text == header + "\n".join(lines[chunk.line_start - 1 : chunk.line_end])
