"""A file of each kind that people attach, with a working token and a configured secret in it."""

from __future__ import annotations

SECRET = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
KNOWN = "kn0wn-Pa55phrase-of-the-b0t"

LOG = f"""\
2026-02-01 10:00:00,978 INFO [main] org.apache.Client: started {SECRET}
2026-02-01T10:00:01.5+02:00 ERROR [worker-1] a.Store: failed
java.lang.IllegalStateException: no
    at a.b.C.d(C.java:5)
    at a.b.C.e(C.java:6)
Caused by: java.io.IOException: {KNOWN}
Jun 14 15:16:01 host sshd[24200]: Failed password for root
[Sun Dec 04 04:47:44 2005] [error] mod_jk child 6725
10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200
Traceback (most recent call last):
  File "a.py", line 5, in f
ValueError: bad
12/31/2025 11:59:59 PM WARN late
31.12.2025 23:59:59 WARN late
0.5 1767225599.123 x
23:59:59 a
00:00:01 b
"""
JSON_LOG = f"""\
{{"ts": 1767225599.5, "level": "error", "logger": "a.b", "msg": "failed", "token": "{SECRET}"}}
{{"timestamp": "2026-02-01T10:00:00Z", "severity": 50, "message": "ERROR inside", "component": "c"}}
{{"time": 1767225599123, "level": "warn", "msg": "2026-02-01 10:00:00 WARN x"}}
not json
"""
JSON = f"""\
{{
  // a comment
  "server": {{"host": "a.example", "ports": [80, 443], "token": "{SECRET}", "nested": [{{"name": "x", "value": 1}}]}},
  /* another */ "list": [1, [2, 3], {{"a": null}}],
  "password": "{KNOWN}", "unicode": "\\u00e9\\ud83d\\ude00"
}}
"""
YAML = f"""\
# comment
services:
  db: &base
    image: "postgres:16"
    environment:
      - POSTGRES_PASSWORD={SECRET}
      - name: DB_TOKEN
        value: {KNOWN}
    ports: [5432, 5433]
  web:
    <<: *base
    command: |
      run
        it
    folded: >-
      a
      b
---
kind: Secret
data: {{key: dmFsdWU=}}
? [a, b]
: c
"""
TOML = f"""\
title = "x" # comment
[a.b."c.d"]
token = "{SECRET}"
list = [1, 2, {{x = 1, y = [3]}}]
text = \"\"\"
many
lines\"\"\"
when = 2026-02-01T10:00:00Z
[[servers]]
name = 'n'
[[servers]]
password = '{KNOWN}'
[servers.inner]
z.y = true
"""
INI = f"""\
; comment
[section one]
key = value
password={SECRET}
export TOKEN={KNOWN}
multi = a \\
  b
server {{
  listen 80;
}}
"""
XML = f"""\
<?xml version="1.0"?>
<!-- comment -->
<root a="1" b='2'>
  <add key="DbPassword" value="{SECRET}"/>
  <property><name>token</name><value>{KNOWN}</value></property>
  <![CDATA[ text <b> ]]>
  <empty/>text<i>x</i>tail &amp; &#65;
</root>
"""
CSV = f"""\
time,host,value,note
2026-02-01 10:00:00,a,1.5,"quoted, cell"
2026-02-01 10:00:01,b,2%,"two
lines"
2026-02-01 10:00:02,c,1e300,{SECRET}
x;y|z,,,{KNOWN}
"""
PROMETHEUS = """\
# HELP up Whether it is up
# TYPE up gauge
up{job="a",instance="b:1"} 1
latency_seconds_bucket{le="0.5"} 12 1767225599
latency_seconds_sum 3.5e2
"""
MARKDOWN = f"""\
---
title: A page
tags: [a, b]
---
# One

Text with `code` and {SECRET}.

Two
===

~~~python
def f(): pass
~~~

- item
  ```
  fence in a list
  ```

| a | b |
|---|---|
| 1 | {KNOWN} |
"""
REST = f"""\
=====
Title
=====

Text ``code`` {SECRET}::

    literal {KNOWN}

Sub
---

.. note:: a note

   more

+---+---+
| a | b |
+---+---+
"""
PYTHON = f"""\
#!/usr/bin/env python
\"\"\"Doc.\"\"\"
import os

TOKEN = "{SECRET}"

# comment
@decorator
class A(B):
    async def f(self, x: int = 5) -> None:
        return f"{{x}}"

    def g(self): pass

def h():
    password = '{KNOWN}'; return 1
"""
OTHER_CODE = f"""\
package main

import "fmt"

const token = "{SECRET}"

func (a *A) Run(x int) error {{
\tif (x > 1) {{
\t\treturn nil;
\t}}
}}

CREATE TABLE x (a int); -- {KNOWN}
"""
PROSE = f"The server {SECRET} stopped at noon. Mail me: ada@example.org\n\nIt has {KNOWN} and\tmore.\n" * 3
TOPIC = """\
--- QA ---
id: qa_20260201_031057.000000
timestamp: 2026-02-01T03:10:57.000000Z
said_at: 2026-02-01T03:09:41.120000Z
superseded: 2026-03-01T12:00:00.000000Z the drivers
User: My node
Team: Run this:
  nvidia-smi

"""
DOCUMENTS: dict[str, str] = {
    "a.log": LOG,
    "b.jsonl": JSON_LOG,
    "a.json": JSON,
    "a.yaml": YAML,
    "a.toml": TOML,
    "a.ini": INI,
    "a.xml": XML,
    "a.csv": CSV,
    "a.tsv": CSV.replace(",", "\t"),
    "m.txt": PROMETHEUS,
    "a.md": MARKDOWN,
    "a.rst": REST,
    "a.adoc": MARKDOWN.replace("#", "="),
    "a.py": PYTHON,
    "a.go": OTHER_CODE,
    "a.txt": PROSE,
}
