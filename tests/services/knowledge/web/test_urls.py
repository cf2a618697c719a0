from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from services.knowledge.web import exchange
from services.knowledge.web.client import next_url
from services.knowledge.web.exchange import Answer, check_url
from services.knowledge.web_interface import FetchFailed


@pytest.mark.parametrize(
    ("url", "dialled"),
    [
        ("https://docs.example.com/a?b=c#d", "https://docs.example.com/a?b=c"),
        ("HTTP://EXAMPLE.com", "http://example.com"),
        ("http://example.com.:8080/%2e%2F", "http://example.com.:8080/.%2F"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
        ("http://1.1.1.1/", "http://1.1.1.1/"),
        ("http://[2606:4700::1111]:81/", "http://[2606:4700::1111]:81/"),
        ("http://under_score.example/", "http://under_score.example/"),
    ],
)
def test_a_public_url_is_dialled_as_it_was_checked(url: str, dialled: str) -> None:
    assert str(check_url(url, ())) == dialled


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1/", "http://127.0.0.1./", "http://127.1/", "http://2130706433/", "http://0x7f.1/"),
        *("http://0177.0.0.1/", "http://①②⑦.0.0.1/", "http://127。0。0。1/", "http://[::1]/", "http://[::]/"),
        *("http://[::ffff:127.0.0.1]/", "http://[64:ff9b::10.0.0.1]/", "http://[2002:a00:1::]/", "http://0/"),
        *("http://localhost/", "https://LOCALHOST./", "http://a.localhost:80/", "http://169.254.169.254/latest"),
    ],
)
def test_pitfall_17_an_address_of_the_inside_is_refused_in_every_spelling(url: str) -> None:
    with pytest.raises(FetchFailed, match=r"not public.*kb\.web_fetch_private_hosts"):
        check_url(url, ())


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://example.com/", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("javascript:alert(1)", "only http and https"),
        ("//example.com/", "only http and https"),
        ("", "only http and https"),
        ("https://me@example.com/", "user or password"),
        ("https://me:secret@example.com/", "user or password"),
        ("http:///x", "not a valid URL"),
        ("http://example.com:0/", "not a valid URL"),
        ("http://example.com:99999/", "not a valid URL"),
        ("http://exa mple.com/", "not a valid URL"),
        ("http://example.com\\@127.0.0.1/", "not a valid URL"),
        ("http://%31%32%37.0.0.1/", "not a valid URL"),
        ("http://[fe80::1%25eth0]/", "not a valid URL"),
        ("http://[/", "not a valid URL"),
        ("http://\ud800.example/", "not a valid URL"),
        ("http://./", "not a valid URL"),
    ],
)
def test_what_is_no_plain_web_address_is_refused(url: str, why: str) -> None:
    with pytest.raises(FetchFailed, match=why) as caught:
        check_url(url, ())
    assert "secret" not in str(caught.value)


def test_hosts_of_ones_own_are_let_through_and_no_others() -> None:
    hosts = {"wiki.intern", "127.0.0.1", "localhost", "::1"}
    for url in ("http://wiki.intern/", "http://127.0.0.1:8080/", "http://LocalHost./", "http://[::1]/"):
        assert check_url(url, hosts).host
    with pytest.raises(FetchFailed):
        check_url("http://127.0.0.2/", hosts)


@given(st.one_of(st.text(), st.text().map("http://{}/".format), st.ip_addresses().map("http://{}".format)))
def test_whatever_stands_in_the_list_is_taken_or_refused(url: str) -> None:
    with contextlib.suppress(FetchFailed):
        assert check_url(url, ()).scheme in {"http", "https"}


@pytest.mark.parametrize("start", ["https://", "//", "HTTP://user@"])
def test_a_host_that_is_longer_than_names_may_be_is_never_encoded(start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To encode 2,700 Chinese characters takes a second, in which nobody is answered."""
    monkeypatch.setattr(exchange, "URL", pytest.fail)
    with pytest.raises(FetchFailed, match="not a valid URL"):
        check_url(f"{start}{'中' * 2_700}/", ())
    with pytest.raises(FetchFailed, match="no URL"):
        next_url(Answer(URL("https://mill.example/"), 302, {"Location": f"{start}{'中' * 2_700}"}, b""), ())
