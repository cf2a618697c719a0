"""Where sources are published."""

from __future__ import annotations

import time

import pytest

from services.assistant import Addresses
from services.knowledge import TextFiles, kinds
from services.search import StoredPassage
from services.search.text import SiteGenerator

SITE = Addresses({"": "https://docs.example"})
BLOB = Addresses({"": "https://github.com/o/r/blob/main/docs"})
SPHINX = "guide/install.rst"


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("guide/install.md", "https://docs.example/guide/install/"),
        ("guide/index.md", "https://docs.example/guide/"),
        ("guide/README.md", "https://docs.example/guide/"),
        ("index.mdx", "https://docs.example/"),
        (SPHINX, "https://docs.example/guide/install.html"),
        ("guide/index.rst", "https://docs.example/guide/index.html"),
        ("old/page.html", "https://docs.example/old/page.html"),
    ],
)
def test_markdown_is_published_as_mkdocs_does_and_rest_as_sphinx_does(path: str, address: str) -> None:
    assert SITE.address_of(f"kb:{path}") == address
    assert Addresses({"": "https://docs.example/"}).address_of(f"kb:{path}") == address


def test_in_a_repository_a_file_keeps_its_name() -> None:
    for home in (
        "https://github.com/o/r/blob/main",
        "https://codeberg.org/o/r/src/branch/main",
        "https://x.example/tree/",
    ):
        assert Addresses({"": home}).address_of("kb:docs/README.md") == f"{home.rstrip('/')}/docs/README.md"


def test_a_base_may_say_how_with_the_path_or_the_page() -> None:
    assert Addresses({"": "https://x.example/{page}.php"}).address_of("kb:a/b.md") == "https://x.example/a/b.php"
    assert Addresses({"": "https://x.example/?file={path}"}).address_of("kb:a/b.md") == "https://x.example/?file=a/b.md"


def test_each_folder_may_have_its_own_and_the_longest_wins() -> None:
    some = Addresses({"api": "https://api.example", "api/v2": "https://v2.example/{page}"})
    assert some.address_of("kb:api/a.md") == "https://api.example/a/"
    assert some.address_of("kb:api/v2/a.md") == "https://v2.example/a"
    assert some.address_of("kb:apian/a.md") is None
    assert Addresses().address_of("kb:a.md") is None


def test_a_permalink_wins() -> None:
    assert SITE.address_of("kb:a.md", permalink="/start/") == "https://docs.example/start/"
    assert SITE.address_of("kb:a.md", permalink="https://other.example/x") == "https://other.example/x"
    assert (
        Addresses({"": "https://x.example/v1/{page}"}).address_of("kb:a.md", permalink="start")
        == "https://x.example/v1/start"
    )
    assert Addresses().address_of("kb:a.md", permalink="https://other.example/x") == "https://other.example/x"
    assert Addresses().address_of("kb:a.md", permalink="/start/") is None


@pytest.mark.parametrize("permalink", ["javascript:alert(1)", "data:text/html,x", "//other.example/x", "file:///etc"])
def test_a_permalink_that_leads_out_of_the_web_does_not(permalink: str) -> None:
    assert SITE.address_of("kb:a.md", permalink=permalink) == "https://docs.example/a/"


def test_an_anchor_follows() -> None:
    assert SITE.address_of("kb:a.md", anchor="ports") == "https://docs.example/a/#ports"
    assert SITE.address_of("kb:a.md", anchor="größe (2)>") == "https://docs.example/a/#gr%C3%B6%C3%9Fe%20(2)%3E"
    assert Addresses().address_of("kb:a.md", anchor="ports") is None


def test_a_web_page_is_where_it_was_fetched_without_anchors_of_ours() -> None:
    kept = StoredPassage("kb:https://x.example/a?b=1", "A", "", 0, (), "ports", "text")
    assert Addresses().section_address(kept) == "https://x.example/a?b=1"
    assert SITE.section_address(kept._replace(source_id="kb:a.md")) == "https://docs.example/a/#ports"


def test_topics_of_the_team_are_published_nowhere() -> None:
    for addresses in (SITE, Addresses({"team:a": "https://x.example"})):
        assert addresses.address_of("team:a.txt", permalink="https://x.example/", anchor="qa_1") is None


@pytest.mark.parametrize(
    "path", ["../../etc/passwd.md", "a b/<c>.md", "a#b?c.md", "ü/{page}.md", "a)b](c.md", "\n.md", "@everyone.md"]
)
def test_no_name_of_a_file_breaks_out_of_its_address(path: str) -> None:
    for base in ("https://docs.example", "https://docs.example/{page}/", "https://docs.example/blob/{path}"):
        address = Addresses({"": base}).address_of(f"kb:{path}", anchor="x")
        assert address is not None
        assert address.startswith("https://docs.example/")
        assert address.count("#") == 1
        assert not set(' <>"\n?') & set(address)


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("ports.md", "https://docs.example/guide/ports/"),
        ("./ports.md#open", "https://docs.example/guide/ports/#open"),
        ("../index.md", "https://docs.example/"),
        ("../../../../up.md", "https://docs.example/up/"),
        ("my%20page.md", "https://docs.example/guide/my%20page/"),
        ("#below", "https://docs.example/guide/install/#below"),
        ("/about/", "https://docs.example/about/"),
        ("api.rst", "https://docs.example/guide/api.html"),
        ("https://other.example/a.md", "https://other.example/a.md"),
        ("mailto:a@b.example", "mailto:a@b.example"),
        ("../wiki/A_(b)/", "https://docs.example/guide/wiki/A_(b)/"),
    ],
)
def test_relative_links_of_a_quote_become_absolute(target: str, address: str) -> None:
    shown = f"<{address}>" if address.startswith("https:") else address
    assert SITE.make_absolute(f"See [this]({target}).", "kb:guide/install.md") == f"See [this]({shown})."


def test_in_a_repository_relative_links_lead_to_files() -> None:
    base = "https://github.com/o/r/blob/main/docs"
    assert (
        BLOB.make_absolute("[a](ports.md) [b](../run.sh)", "kb:guide/x.md")
        == f"[a](<{base}/guide/ports.md>) [b](<{base}/run.sh>)"
    )


def test_relative_links_of_a_web_page_start_from_its_address() -> None:
    page = "kb:https://x.example/docs/a.html"
    assert (
        Addresses().make_absolute("[b](b.html) [c](/c)", page)
        == "[b](<https://x.example/docs/b.html>) [c](<https://x.example/c>)"
    )


def test_what_leads_nowhere_keeps_its_text_and_an_image_its_description() -> None:
    text = "See [this](ports.md), [that](#), ![the gate](gate.png) and [a][b]."
    assert Addresses().make_absolute(text, "kb:a.md") == "See this, that, the gate and [a][b]."
    assert Addresses().make_absolute("[this](ports.md)", "team:a.txt") == "this"
    brackets = r"See [`[tool.uv]`](ports.md) and [a \[b\]](c.md)."
    assert Addresses().make_absolute(brackets, "kb:a.md") == r"See `[tool.uv]` and a \[b\]."


@pytest.mark.parametrize("part", ["[", "[a](", "[a]((", "[a]((b)", "![", "[a](b"])
def test_no_text_takes_long(part: str) -> None:
    began = time.process_time()
    SITE.make_absolute(part * 3_000, "kb:a.md")
    assert time.process_time() - began < 1


def test_what_belongs_to_a_server_is_published_where_that_server_says() -> None:
    own = Addresses({"": "https://ferry.example"}, pair_address={"qa_1": "https://discord.com/channels/1/2/3"}.get)
    here = Addresses(SITE.bases, pair_address={"qa_1": "https://discord.com/channels/7/8/9"}.get, server_addresses=own)
    assert here.address_of("kb:a.md") == "https://docs.example/a/"
    assert here.address_of("kb:@311/a.md", anchor="top") == "https://ferry.example/a/#top"
    assert here.address_of("kb:@311/https://x.example/p") == "https://x.example/p"
    assert here.address_of("team:@311/t.txt", anchor="qa_1") == "https://discord.com/channels/1/2/3"
    assert here.address_of("team:t.txt", anchor="qa_1") == "https://discord.com/channels/7/8/9"
    assert here.make_absolute("[b](b.md)", "kb:@311/a.md") == "[b](<https://ferry.example/b/>)"
    assert SITE.address_of("kb:@311/a.md") is None
    assert SITE.make_absolute("[b](b.md)", "kb:@311/a.md") == "b"


@pytest.mark.parametrize(
    ("generator", "page", "section"),
    [
        (SiteGenerator.MKDOCS, "guide/ssr/", "serverws-2-options"),
        (SiteGenerator.SPHINX, "guide/ssr.html", "server-ws-2-options"),
        (SiteGenerator.VITEPRESS, "guide/ssr.html", "server-ws-2-options"),
        (SiteGenerator.DOCUSAURUS, "guide/ssr", "serverws-2--options"),
        (SiteGenerator.MDBOOK, "guide/ssr.html", "serverws-2--options"),
    ],
)
def test_a_generator_has_its_own_pages_and_anchors(generator: SiteGenerator, page: str, section: str) -> None:
    site = Addresses({"": "https://docs.example"}, {"": generator})
    kept = StoredPassage(
        "kb:guide/ssr.md", "SSR", "", 1, ("SSR", "server.ws 2 & options"), "serverws-2-options", "text"
    )
    assert site.section_address(kept) == f"https://docs.example/{page}#{section}"
    assert site.section_address(kept._replace(anchor="serverws-2-options_1")) in {
        f"https://docs.example/{page}#{section}{mark}1" for mark in "-_"
    }
    assert (
        site.section_address(kept._replace(anchor="chosen-by-the-author"))
        == f"https://docs.example/{page}#chosen-by-the-author"
    )
    assert site.address_of("kb:guide/index.md") == "https://docs.example/guide/" + (
        "index.html" if generator == "sphinx" else ""
    )


def test_rest_and_files_in_a_repository_keep_their_anchors() -> None:
    sphinx = Addresses({"": "https://docs.example"}, {"": SiteGenerator.SPHINX})
    kept = StoredPassage("kb:a.rst", "A", "", 1, ("A", "server.ws"), "serverws", "text")
    assert sphinx.section_address(kept) == "https://docs.example/a.html#serverws"
    twice = StoredPassage("kb:a.md", "A", "", 1, ("A", "Größe"), "große_1", "text")
    assert (
        BLOB.section_address(twice._replace(anchor="groe_1"))
        == "https://github.com/o/r/blob/main/docs/a.md#gr%C3%B6%C3%9Fe-1"
    )


def test_what_begins_with_a_digit_is_marked_by_vitepress() -> None:
    site = Addresses({"": "https://docs.example"}, {"": SiteGenerator.VITEPRESS})
    kept = StoredPassage("kb:a.md", "A", "", 1, ("A", "7.2.0 (2026-11-02)"), "720-2026-11-02", "text")
    assert site.section_address(kept) == "https://docs.example/a.html#_7-2-0-2026-11-02"


def test_another_kind_of_source_gets_no_address_of_the_documents() -> None:
    assert SITE.address_of("kb:faq:ports-and-firewalls") is None
    assert SITE.make_absolute("See [this](other.md).", "kb:faq:ports-and-firewalls") == "See this."


def test_a_kind_of_sources_says_where_its_own_are(monkeypatch: pytest.MonkeyPatch) -> None:
    class Feeds(TextFiles):
        @staticmethod
        def address(source_id: str) -> str | None:
            found = source_id.removeprefix("feed:")
            return None if found == source_id else f"https://news.example/{found}"

    monkeypatch.setattr(kinds, "KINDS", [Feeds])
    site = Addresses({"": "https://docs.example"})
    kept = StoredPassage("kb:feed:may/first", "A", "", 0, ("A",), "ports", "text")
    assert site.section_address(kept) == "https://news.example/may/first"  # its text has no anchors
    assert site.make_absolute("[b](b.md)", "kb:feed:may/first") == "[b](<https://news.example/may/b.md>)"
    assert site.address_of("kb:a.md") == "https://docs.example/a/"
    assert SITE.address_of("kb:git:git.example/p//a.md") is None
    assert SITE.address_of("kb:folder/notes: a.md") == "https://docs.example/folder/notes%3A%20a/"
