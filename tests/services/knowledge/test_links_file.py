"""The grammar of the links file."""

from __future__ import annotations

import pytest

from commands.setting_up.answers import KEYS
from services.knowledge.links_file import LINE_FORMS, RepositoryLine, SiteLine, begins_line, parse_links

SITE = "https://docs.example/sitemap.xml"
REPOSITORY = "https://github.com/mill/rye"
WORDS = ", ".join(f"`{form.word}`" for form in LINE_FORMS)


def test_links_are_trimmed_and_each_counts_once() -> None:
    links = parse_links(b"\xef\xbb\xbf# pages\n\n  https://a.example/x \r\nhttp://b.example\nhttps://a.example/x\n")
    assert (links.pages, links.left_out) == (["https://a.example/x", "http://b.example"], {})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"sitemap: {SITE}", SiteLine("", "sitemap", SITE)),
        (
            f"Sitemap:{SITE}  /guides/** !guides/old/** ",
            SiteLine("", "sitemap", SITE, ("guides/**",), ("guides/old/**",)),
        ),
        ("llms: https://docs.example/llms.txt", SiteLine("", "llms", "https://docs.example/llms.txt")),
    ],
)
def test_a_line_names_a_list_of_pages(line: str, expected: SiteLine) -> None:
    assert parse_links(line.encode()).of(SiteLine) == [expected]


@pytest.mark.parametrize(
    ("line", "expected", "prefix"),
    [
        (f"git: {REPOSITORY}", RepositoryLine("", REPOSITORY), "git:github.com/mill/rye//"),
        (f"git: {REPOSITORY}.git@v2/next /docs/en/", RepositoryLine("", f"{REPOSITORY}.git", "v2/next", "docs/en"),
         "git:github.com/mill/rye@v2/next//"),
        ("git: http://git.example:80/~m/rye/ docs", RepositoryLine("", "http://git.example:80/~m/rye", "", "docs"),
         "git:git.example:80/~m/rye//"),
    ],
)  # fmt: skip
def test_a_line_names_a_repository(line: str, expected: RepositoryLine, prefix: str) -> None:
    found = parse_links(line.encode()).of(RepositoryLine)
    assert [(each.url, each.branch, each.folder) for each in found] == [
        (expected.url, expected.branch, expected.folder)
    ]
    assert [each.prefix for each in found] == [prefix]


def test_a_line_that_is_there_twice_counts_once() -> None:
    links = parse_links(f"sitemap: {SITE} a/**\nsitemap: {SITE} a/**\nsitemap: {SITE}\n".encode(), "links.txt")
    assert [line.position for line in links.of(SiteLine)] == ["links.txt, line 1", "links.txt, line 3"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("ftp://a.example", "no http or https URL"),
        ("a.example", "no http or https URL"),
        ("https://", "no http or https URL"),
        ("https://u:p@a.example", "user name or password"),
        ("https://a.example/x y", "blanks"),
        ("https://[x", "no URL"),
        ("https://a:b", "no URL"),
        ("sitmap: https://a.example", f"begins with none of {WORDS}"),
        ("sitemap:", "no http or https URL"),
        ("sitemap: https://u:p@a.example/sitemap.xml", "user name or password"),
        ("sitemap: https://a.example/sitemap.xml !", "a glob is empty"),
        ("llms: https://a.example/llms.txt guides/**", "nothing follows"),
        ("git:", "no http or https URL"),
        ("git: https://a.example", "no address of a repository"),
        ("git: https://a.example/x?y=1", "no address of a repository"),
        ("git: https://u:p@a.example/x", "user name or password"),
        ("git: https://a.example/x@--upload-pack=evil", "no name of a branch"),
        ("git: https://a.example/x@a..b", "no name of a branch"),
        ("git: https://a.example/x docs more", "one folder may follow"),
        ("git: https://a.example/x ../docs", "no folder of a repository"),
        ("git: ssh://git@a.example/x", "over http and https only"),
        ("git: git@a.example:x/y.git", "over http and https only"),
        ("git: file:///etc", "over http and https only"),
        ("git: ext::sh -c true", "over http and https only"),
        ("git: --upload-pack=evil", "over http and https only"),
        ("git: /srv/git/x", "over http and https only"),
    ],
)
def test_a_line_that_is_wrong_is_named_and_says_why(line: str, reason: str) -> None:
    links = parse_links(f"https://good.example\n{line}\n".encode(), "links.txt")
    assert links.pages == ["https://good.example"]
    assert links.lines == []
    assert list(links.left_out) == ["links.txt, line 2"]
    assert reason in links.left_out["links.txt, line 2"]
    assert "p@" not in str(links.left_out)


def test_every_form_of_line_is_read_and_told() -> None:
    for form in LINE_FORMS:
        text = f"{form.word} {form.example.replace('…', 'a.example/b')}"
        assert begins_line(text)
        assert [line.text for line in parse_links(text.encode()).lines] == [text]
        assert f"`{form.word} https://…`" in KEYS["documentation"]
    assert not begins_line("docs/guides")
    assert not begins_line("notes: of the mill")


def test_people_are_told_which_line_it_is() -> None:
    text = f"git: {REPOSITORY}@v2 docs\nsitemap: {SITE} guides/**\n"
    lines = parse_links(text.encode(), "links.txt").lines
    assert [(line.position, line.text) for line in lines] == [
        ("links.txt, line 1", f"git: {REPOSITORY}@v2 docs"),
        ("links.txt, line 2", f"sitemap: {SITE}"),
    ]
