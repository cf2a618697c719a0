"""The ids of sources: what goes into one comes out of it."""

from hypothesis import given
from hypothesis import strategies as st

from model.source_ids import (
    bare_name,
    document_id,
    folders_of,
    has_namespace,
    is_document,
    is_topic,
    owner_of,
    topic_id,
    topic_in,
    with_owner,
    without_owner,
)

NAMES = st.text(min_size=1).filter(lambda name: not name.startswith("@"))
SERVERS = st.integers(1, 2**64 - 1)


@given(NAMES, SERVERS)
def test_a_document_s_name_comes_out_as_it_went_in(name: str, server: int) -> None:
    shared = document_id(name)
    own = with_owner(shared, server)
    assert (owner_of(shared), owner_of(own), without_owner(own)) == (None, server, shared)
    for each in (shared, own):
        assert (bare_name(each), is_document(each), is_topic(each), has_namespace(each)) == (name, True, False, True)


@given(NAMES, SERVERS)
def test_a_topic_s_name_comes_out_as_it_went_in(name: str, server: int) -> None:
    shared = topic_id(name)
    for each in (shared, with_owner(shared, server)):
        assert (topic_in(each), is_document(each), is_topic(each), has_namespace(each)) == (name, False, True, True)


def test_the_folders_of_a_document_are_in_its_name_and_an_address_has_none() -> None:
    assert folders_of("kb:@7/v2/guides/setup.md") == ("v2", "guides")
    assert folders_of("kb:setup.md") == folders_of("https://example.org/v2/setup") == ()


def test_what_is_no_id_is_a_name() -> None:
    assert (topic_in("tokens"), bare_name("guide.md"), owner_of("@7/guide.md")) == ("tokens", "guide.md", None)
    assert not has_namespace("app.log:7-9")
