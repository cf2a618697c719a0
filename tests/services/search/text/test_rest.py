from __future__ import annotations

import contextlib
import io
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from docutils.parsers.rst import states
from docutils.statemachine import StringList
from hypothesis import given
from hypothesis import strategies as st

from services.search.text.article import BlockKind
from services.search.text.reading import read_rest
from services.search.text.rest_parser import parse_rest

DOCUMENT = """\
:orphan:

.. Licensed to somebody,
   on ten lines of comment.

.. highlight:: bash

.. _Top Page:

==========
The *tool*
==========

See `the site`_, :ref:`other-place`, :ref:`settings`, :ref:`a title <x>`, :doc:`/usage/how-to`, :doc:`/serving/index`
and :class:`~a.b.Thing`.
|name| runs ``tool --all`` [#]_. FOO_ is bar_, :issue:`12`, :pep:`8`, :unknown:`thing`.

.. |name| replace:: The **tool**
.. _the site: https://example.com/x_(y)
.. _bar: `the site`_
.. [#] On Linux.

.. _settings:
.. index:: settings

Settings
--------

.. confval:: cache_dir

   Where the cache is.

   .. versionadded:: 1.0
   .. versionchanged:: 2.0
      It may be relative.

.. option:: -f <file>, --file <file>

   - Reads a file.

.. py:function:: run(name, *, check=True)
   :module: tool

   Runs it.

   :param str name: its name
   :returns: a code

Settings
--------

.. note:: Mind this.

   ::

     tool run

.. tabs::

   .. group-tab:: Linux

      .. code-block:: console
         :caption: Shell

         $ tool

   .. tab:: Windows

      Use ``tool.exe``.

.. list-table:: Codes
   :header-rows: 1

   * - Code
     - Meaning
   * - 0
     - fine
"""


def shown(text: str) -> str:
    return "\n\n".join(section.text for section in read_rest(text).sections)


def test_a_page_has_its_title_headings_and_anchors() -> None:
    article = read_rest(DOCUMENT)
    assert article.title == "The tool"
    assert [(section.headings, section.anchor) for section in article.sections] == [
        (("The tool",), ""),
        (("The tool", "Settings"), "settings"),
        (("The tool", "Settings"), "id4"),
    ]


def test_inline_markup_is_what_a_reader_sees() -> None:
    first = read_rest(DOCUMENT).sections[0]
    assert first.blocks[0].text == (
        "See [the site](https://example.com/x_%28y%29), other place, Settings, a title, how to, serving and `Thing`. "
        "The **tool** runs `tool --all` [1]. FOO_ is [bar](https://example.com/x_%28y%29), #12, "
        "[PEP 8](https://peps.python.org/pep-0008/), `thing`."
    )
    assert first.blocks[1].text == "[1] On Linux."


def test_an_option_stands_with_what_is_said_about_it() -> None:
    texts = [block.text for block in read_rest(DOCUMENT).sections[1].blocks]
    assert texts == [
        "**`cache_dir`**\nWhere the cache is.",
        "**Changed in 2.0:** It may be relative.",
        "**`-f <file>, --file <file>`**\n- Reads a file.",
        "**`run(name, *, check=True)`**\nRuns it.",
        "- `name` (`str`) – its name\n- **Returns:** a code",
    ]


def test_notes_tabs_and_tables() -> None:
    blocks = read_rest(DOCUMENT).sections[2].blocks
    assert [(block.kind, block.text) for block in blocks] == [
        (BlockKind.PROSE, "**Note:** Mind this."),
        (BlockKind.CODE, "```bash\ntool run\n```"),
        (BlockKind.PROSE, "**Linux**\n**Shell**"),
        (BlockKind.CODE, "```console\n$ tool\n```"),
        (BlockKind.PROSE, "**Windows**\nUse `tool.exe`."),
        (BlockKind.PROSE, "**Codes**"),
        (BlockKind.TABLE, "```\nCode | Meaning\n-----+--------\n0    | fine\n```"),
    ]


@pytest.mark.parametrize("sign", "=-~^\"'`#*+.:_")
def test_every_adornment_makes_a_heading(sign: str) -> None:
    article = read_rest(f"Title\n{sign * 5}\n\nText.\n")
    assert article.title == "Title"
    assert article.sections[0].text == "Text."


def test_overlines_and_levels() -> None:
    article = read_rest("####\nTop\n####\n\nTwo\n****\n\nThree\n!!!!!\n\nText.\n\nOther\n*****\n")
    assert [section.headings for section in article.sections] == [("Top", "Two", "Three"), ("Top", "Other")]


def test_a_heading_of_a_level_that_does_not_fit_is_one() -> None:
    article = read_rest("A\n=\n\nB\n-\n\nC\n~\n\nD\n=\n\nE\n~\n\nText of E.\n")
    assert article.sections[-1].headings == ("D", "E")
    assert article.sections[-1].text == "Text of E."


def test_a_section_goes_on_behind_one_that_a_directive_holds() -> None:
    article = read_rest("A\n=\n\n.. only:: html\n\n   B\n   -\n\n   In B.\n\nIn A.\n")
    assert [(section.headings, section.text) for section in article.sections] == [
        (("A", "B"), "In B."),
        (("A",), "In A."),
    ]


def test_what_is_for_other_builders_is_left_out() -> None:
    text = ".. only:: latex\n\n   Paper.\n\n.. only:: html and not draft\n\n   Screen.\n"
    assert shown(text) == "Screen."


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("internal", ""),
        ("not internal", "Text."),
        ("(html or latex) and not draft", "Text."),
        ("latex or man", ""),
        ("not html", ""),
        ("not (html and internal)", "Text."),
        ("((", ""),
        ("(" * 1_000, "Text."),
    ],
)
def test_what_is_for_a_tag_of_the_project_is_not_on_the_page(tags: str, expected: str) -> None:
    assert shown(f".. only:: {tags}\n\n   Text.\n") == expected


def test_exponents_are_not_the_digits_before_them() -> None:
    assert shown("10\\ :sup:`6` cells, H\\ :sub:`2`\\ O, 2\\ :superscript:`k`") == "10⁶ cells, H₂O, 2^k"


def test_titles_within_a_tab_are_bold_lines() -> None:
    assert shown(".. tab:: Linux\n\n   Install\n   -------\n\n   Text.\n") == "**Linux**\n**Install**\n\nText."


def test_markers_pictures_and_bare_versions_vanish() -> None:
    text = """
.. toctree::
   :maxdepth: 2

   one
   two

.. versionadded:: 1.0
.. currentmodule:: x
.. setting:: FOO
.. automodule:: x
   :members:
.. image:: x.png
.. contents:: Contents
   :local:
.. |logo| image:: y.png
.. raw:: html

   <p>raw</p>

.. _label:

Here |logo| it is :octicon:`x`.
"""
    assert shown(text) == "- [one](one.rst)\n- [two](two.rst)\n\nHere it is ."


def test_an_unknown_directive_keeps_its_text() -> None:
    assert shown(".. strange:: Some title\n   :opt: 1\n\n   Its *content*.\n") == "**Some title**\nIts *content*."
    assert shown(".. strange::\n   :opt: 1\n\n   Its content.\n") == "Its content."
    assert shown(".. autofunction:: a.b\n\n   More about it.\n") == "**`a.b`**\nMore about it."


def test_figures_keep_their_caption_and_admonitions_their_title() -> None:
    assert shown(".. figure:: x.png\n   :alt: no\n\n   A *caption*.\n") == "A *caption*."
    assert shown(".. admonition:: Why?\n\n   Because.\n") == "**Why?** Because."
    assert shown(".. deprecated:: 2.3 Use another.\n") == "**Deprecated since 2.3:** Use another."
    assert shown(".. epigraph::\n\n   Words.\n\n   -- Somebody\n") == "Words.\n\n— Somebody"


def test_lists_keep_their_nesting_and_listings_stand_at_the_margin() -> None:
    text = "3. one\n\n   - a\n   - b\n\n4. two::\n\n     code\n\n   after\n\n5. three\n"
    assert shown(text) == "3. one\n  - a\n  - b\n4. two:\n\n```\ncode\n```\n\nafter\n\n5. three"


def test_definitions_options_lines_and_doctests() -> None:
    assert shown("term : kind\n   What it is.\n") == "**term** : kind\nWhat it is."
    options = "-f FILE, --file=FILE  Reads it.\n-v  More.\n"
    assert shown(options) == "- `-f FILE`, `--file=FILE` – Reads it.\n- `-v` – More."
    assert shown("| one\n| two\n") == "one\ntwo"
    assert shown(">>> 1 + 1\n2\n") == "```python\n>>> 1 + 1\n2\n```"
    assert shown("::\n\n  >>> 1 + 1\n  2\n") == "```python\n>>> 1 + 1\n2\n```"


def test_a_wide_table_becomes_a_list() -> None:
    text = f".. csv-table::\n   :header: Name, Meaning, Default\n\n   ``a``, {'word ' * 20}, 1\n"
    assert shown(text) == f"- **`a`** – Meaning: {('word ' * 20).strip()}; Default: 1"


def test_a_first_cell_with_a_gap_behind_it_is_a_lead_all_the_same() -> None:
    text = f".. csv-table::\n   :header: Name, Meaning, Default\n\n   a,, {'word ' * 20}\n"
    assert shown(text) == f"- **a** – Default: {('word ' * 20).strip()}"


def test_a_wide_header_without_rows_keeps_its_words() -> None:
    text = f"===== =====\nA     {'B' * 100}\n===== =====\n===== =====\n"
    assert "B" * 100 in shown(text)


def test_spanning_cells_do_not_shift_the_others() -> None:
    text = "+---+---+\n| a | b |\n+===+===+\n| c | d |\n|   +---+\n|   | e |\n+---+---+\n"
    assert shown(text) == "```\na | b\n--+--\nc | d\n  | e\n```"


def test_a_cell_that_spans_rows_in_the_last_column_adds_no_column() -> None:
    text = "+---+---+\n| a | b |\n+===+===+\n| c | d |\n+---+   |\n| e |   |\n+---+---+\n| f | g |\n+---+---+\n"
    assert shown(text) == "```\na | b\n--+--\nc | d\ne |\nf | g\n```"


def test_a_table_that_is_not_well_formed_keeps_its_words() -> None:
    text = "===== =====\nA     B\n===== =====\n``tool`` :setting:`other`\n===== =====\n"
    assert shown(text) == "```\nA     B\ntool other\n```"


def test_text_is_not_taken_for_markdown() -> None:
    assert shown(r"\*args, __init__ and snake_case") == r"\*args, \_\_init\_\_ and snake_case"
    assert shown("# no heading") == r"\# no heading"
    assert "```\n" in shown("::\n\n  a\n  ```\n  b\n")
    assert shown("::\n\n  ```\n").count("```") == 2


def test_footnotes_without_numbers_get_them() -> None:
    notes = ".. [1] One.\n.. [#] Two.\n.. [#x] Three.\n.. [*] Sign.\n.. [Cit] Book.\n"
    text = f"a [1]_ b [#]_ c [#x]_ d [*]_ e [Cit]_\n\n{notes}"
    assert shown(text).split("\n\n") == [
        "a [1] b [2] c [3] d [*] e [Cit]",
        "[1] One.",
        "[2] Two.",
        "[3] Three.",
        "[*] Sign.",
        "[Cit] Book.",
    ]


def test_anonymous_links_and_roles_of_the_text() -> None:
    text = "`One`__ and `two`__.\n\n__ https://one.example\n__ https://two.example\n"
    assert shown(text) == "[One](https://one.example) and [two](https://two.example)."
    assert shown(".. role:: py(code)\n   :language: python\n\n:py:`x = 1`\n") == "`x = 1`"
    assert shown(".. role:: html(raw)\n   :format: html\n\nA\\ :html:`<br>`\\ B\n") == "AB"


def test_substitutions_that_hold_each_other_end() -> None:
    text = "".join(f".. |a{i}| replace:: |a{i + 1}| |a{i + 1}|\n" for i in range(60))
    assert len(shown(f"{text}.. |b| replace:: |b|\n\nx |a0| |b|\n")) < 5_000


def test_a_document_that_docutils_cannot_take_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(text: str) -> None:
        raise RecursionError

    monkeypatch.setattr("services.search.text.rest_article.parse_rest", fails)
    article = read_rest("Before.\n\nTitle\n=====\nText\nmore.\n\nNext.\n")
    assert article.title == "Title"
    assert [(section.headings, section.text) for section in article.sections] == [
        ((), "Before."),
        (("Title",), "Text\nmore.\n\nNext."),
    ]


def test_deep_nesting_ends() -> None:
    assert "x" in shown("- " * 5_000 + "x")
    assert "x" in shown("\n\n".join(" " * depth + "x" for depth in range(500)))


def test_plain_words_in_a_table_need_no_parser_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each took a third of a millisecond: a megabyte of a table did not end in time."""
    cells = ["a b", "A, b", "x-y", "7", "1. a", "- a", "*a*", "a_", "a::", "i", "a,b", "``c``", "x- y"]
    border = " ".join("=" * 8 for _ in cells)
    text = f"{border}\n{' '.join(cell.ljust(8) for cell in cells)}\n{border}\n"
    parsed: list[str] = []
    nested = states.RSTState.nested_parse

    def noted(self: states.RSTState, block: StringList, *args: Any, **kwargs: Any) -> int:
        parsed.append("".join(block))
        return nested(self, block, *args, **kwargs)

    monkeypatch.setattr(states.RSTState, "nested_parse", noted)
    quickly = parse_rest(text).pformat()
    assert [cell for cell in cells if cell in parsed] == ["1. a", "- a", "*a*", "a_", "a::", "a,b", "``c``", "x- y"]
    monkeypatch.setattr("services.search.text.rest_parser._WORDS", re.compile(r"(?!)"))
    assert parse_rest(text).pformat() == quickly


def test_the_reading_of_a_text_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.search.text.rest_parser._FREE_SECONDS", -1_000.0)
    assert shown("Title\n=====\n\nText :ref:`x`.\n") == "Text :ref:`x`."


@pytest.mark.parametrize(
    "directive",
    [
        ".. include:: {path}",
        ".. include:: {path}\n   :literal:",
        ".. literalinclude:: {path}",
        ".. csv-table:: x\n   :file: {path}",
        ".. csv-table:: x\n   :url: file://{path}",
        ".. csv-table:: x\n   :url: http://127.0.0.1:9/x",
        ".. raw:: html\n   :file: {path}",
        ".. raw:: html\n   :url: file://{path}",
        ".. raw:: html\n   :url: http://127.0.0.1:9/x",
        ".. figure:: {path}\n   :scale: 50",
        ".. image:: {path}\n   :scale: 50",
        ".. code-block:: python\n   :file: {path}",
        ".. |x| include:: {path}\n\n|x|",
        ".. math:: {path}",
    ],
)
def test_no_directive_opens_anything(directive: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "private.txt"
    path.write_text("the secret")
    read_rest("x")  # what is imported late is imported
    opened: list[object] = []

    def note(*args: object, **options: object) -> None:
        opened.append((args, options))

    monkeypatch.setattr("builtins.open", note)
    monkeypatch.setattr("io.open", note)
    monkeypatch.setattr(socket, "socket", note)
    text = shown(f"{directive.format(path=path)}\n\nText.\n")
    assert opened == []
    assert "secret" not in text
    assert text.endswith("Text.")


def test_docutils_is_loaded_with_the_first_document() -> None:
    script = "import sys, services.search.text.reading; print('docutils' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_threads_read_at_the_same_time() -> None:
    texts = [DOCUMENT.replace("Thing", f"Thing{number}") + f"\n.. role:: r{number}(code)\n" for number in range(16)]
    alone = [read_rest(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read_rest, texts)) == alone


PIECES = st.sampled_from(
    [
        *DOCUMENT.splitlines(keepends=True),
        *"=-~*`|_:.<>[]{}\\\n\t ",
        ".. ",
        "::\n\n  ",
        "`a <b>`_ ",
        "|a|_ ",
        "[#a]_ ",
        ".. |a| replace:: |a|\n",
        ".. table::\n\n",
        "=== ===\n",
        "+--+--+\n",
        "   * - ",
        ".. csv-table::\n   :delim: ab\n\n",
        ".. role:: x(y)\n",
        ".. unicode:: 0xFFFFFFFF\n",
        ".. |u| unicode:: 0xD800 x\n",
        "\x00",
        "\x85",
        "\ud800",
    ]
)


def check(text: str) -> None:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        article = read_rest(text)
    assert said.getvalue() == ""
    blocks = [block for section in article.sections for block in section.blocks]
    assert all(block.text.strip() for block in blocks)
    assert all(block.text.count("```") == 2 for block in blocks if block.kind is BlockKind.CODE)


@given(text=st.text(st.characters(), max_size=300))
def test_any_text_is_read(text: str) -> None:
    check(text)


@given(pieces=st.lists(PIECES, max_size=40))
def test_any_mixture_of_markup_is_read(pieces: list[str]) -> None:
    check("".join(pieces))


@given(data=st.data())
def test_a_damaged_document_is_read(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(DOCUMENT)))
    end = data.draw(st.integers(start, min(len(DOCUMENT), start + 200)))
    check(DOCUMENT[:start] + "".join(data.draw(st.lists(PIECES, max_size=5))) + DOCUMENT[end:])


@pytest.mark.parametrize("form", ["*a ", "```\n", "word " * 3 + "\n"])
def test_a_text_with_an_endless_paragraph_is_not_given_to_docutils(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docutils needs for a paragraph grows with its square, and no other thread runs meanwhile."""
    monkeypatch.setattr("services.search.text.rest_article.read_article", Mock(side_effect=AssertionError("it was")))
    article = read_rest("Title\n=====\n\n" + form * (20_000 // len(form)) + "\n\nThe end.\n")
    assert article.title == "Title"
    assert article.sections[-1].text.endswith("The end.")


def test_long_lists_and_long_texts_are_no_endless_paragraphs() -> None:
    items = "\n".join(f"- item {n} of *many* that belong together" for n in range(1_000))
    article = read_rest(f"Title\n=====\n\n{items}\n\n" + "\n\n".join(["Some *words*. " * 50] * 40))
    assert "*words*" in article.sections[-1].text
    assert "- item 999 of *many*" in article.sections[-1].text
