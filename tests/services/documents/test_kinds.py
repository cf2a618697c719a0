from __future__ import annotations

import pytest

from services.documents.limits import FileLimits
from services.documents.prepared import DocumentKind
from services.documents.reading.preparing import classify, prepare

LOG = DocumentKind.LOG
REPORT = DocumentKind.ERROR_REPORT
METRICS = DocumentKind.METRICS
CONFIG = DocumentKind.CONFIG
CODE = DocumentKind.CODE
TEXT = DocumentKind.TEXT


def test_the_users_word_goes_before_the_name_and_the_name_before_the_content() -> None:
    text = "2026-02-01 10:00:00 INFO a\n" * 5
    assert prepare("a.md", text.encode(), limits=FileLimits(), kind=METRICS).kind is METRICS
    assert classify("a.md", text) is DocumentKind.MARKDOWN
    assert classify("a.txt", text) is LOG


@pytest.mark.parametrize(
    ("filename", "kind"),
    [
        ("A.LOG", LOG),
        ("app.log.1", LOG),
        ("app.log-20260201", LOG),
        ("compose.yml", CONFIG),
        (".env", CONFIG),
        (".env.production", CONFIG),
        ("x.tsv", METRICS),
        ("x.rst", DocumentKind.MARKDOWN),
        ("x.tsx", CODE),
    ],
)
def test_names_tell_the_kind(filename: str, kind: DocumentKind) -> None:
    assert classify(filename, "anything") is kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Traceback (most recent call last):\n  File 'a.py', line 1, in f\nValueError: no\n", REPORT),
        ('Exception in thread "main" java.lang.Oops: no\n\tat a.b.C.d(C.java:3)\n', REPORT),
        ("2026-02-01 10:00:00 start\n2026-02-01 10:00:01 Traceback (most recent call last):\n  x\nOops: y\n", LOG),
        ("Feb  1 10:00:00 box a: x\nFeb  1 10:00:01 box a: y\n", LOG),
        ("INFO one\nERROR two\n", LOG),
        ('{"level": "info", "msg": "a"}\n{"level": "warn", "msg": "b"}\n', LOG),
        ("time,cpu\na,1\nb,2\n", METRICS),
        ("name;size\nx;1.5\ny;2\n", METRICS),
        ('# HELP up x\n# TYPE up gauge\nup 1\nup{a="b"} 2 1700000000\n', METRICS),
        ("services:\n  web:\n    image: x\n", CONFIG),
        ('{"a": {"b": 1}}', CONFIG),
        ('{"a": [' + '{"b": 1},' * 2000, CONFIG),
        ("[main]\nkey = value\n", CONFIG),
        ("A=1\n# why\nB=2\n", CONFIG),
        ('title = "x"\n[owner]\nname = "y"\n', CONFIG),
        ("import os\n\ndef f():\n    return 1\n\nclass A:\n    pass\n", CODE),
        ("#include <stdio.h>\nint main() {\n  if (x > 1) {\n  }\n}\n", CODE),
        ("Dear team,\nthe node does not start. See note: restart it.\nThanks\n", TEXT),
        ("Just one line", TEXT),
        (" \n\t\n", TEXT),
        ("What I did on 2026-02-01 10:00:00 and\n" + "then more prose about it\n" * 30 + "ERROR was shown\n", TEXT),
    ],
)  # fmt: skip
def test_content_tells_the_kind_of_what_has_a_name_for_anything(text: str, kind: DocumentKind) -> None:
    assert classify("message.txt", text) is kind


@pytest.mark.parametrize(
    ("filename", "text", "kind"),
    [
        ("build.txt", "#1 [internal] load build definition\n#8 0.143 Collecting attrs\n#11 5.902 fetched\n", LOG),
        (
            "make.txt",
            "make[1]: Entering directory 'a'\na.c:12:3: warning: unused\nmake[1]: Leaving directory 'a'\n",
            LOG,
        ),
        ("run.out", "checking out\nall is well so far\n", LOG),
        ("run.err", "nothing to be said\n", LOG),
        ("run.out", '{"port": 8080, "host": "a"}\n', CONFIG),
        ("note.txt", "We ran it twice.\nCollecting attrs took long.\nThen lunch.\nThen home.\n", TEXT),
    ],
)
def test_what_programs_print_is_a_log(filename: str, text: str, kind: DocumentKind) -> None:
    assert classify(filename, text) is kind
