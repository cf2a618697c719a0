from __future__ import annotations

from model.conversations import Conversation, Role, Turn
from services.assistant.citations import linkable_texts, links_block, remove_foreign_links, resolve_citations
from services.knowledge.library import Source


def test_an_invented_id_costs_nothing_but_itself() -> None:
    """Pitfalls 17 and 44: ids that no index holds are dropped, the others keep the model's order."""
    index = ["kb:a.md", "kb:b.md", "kb:https://example.org/x"]
    cited = ["kb:b.md", "kb:http://169.254.169.254/", " kb:a.md\n", "kb:b.md", "kb:../.env", "team:/etc/passwd"]
    found = resolve_citations(cited, [Source(each, "") for each in index])
    assert found.sources == ("kb:b.md", "kb:a.md")
    assert found.unknown == ("kb:http://169.254.169.254/", "kb:../.env", "team:/etc/passwd")


def test_citations_are_kept_when_they_name_a_loaded_source_once_each() -> None:
    loaded = [Source("kb:a", "A."), Source("kb:b", "B.")]
    assert resolve_citations(["kb:b", "kb:x", "kb:a", "kb:b"], loaded).sources == ("kb:b", "kb:a")
    assert resolve_citations(["c"], loaded) == ((), (), ("c",))


def test_a_conversation_of_the_team_is_cited_with_its_source() -> None:
    pairs = [f"--- QA ---\nid: qa_2026020{n}_000000.000000\nUser: why?\nTeam: so.\n\n" for n in (1, 2, 3)]
    topic, page = Source("team:a.txt", "".join(pairs[:2])), Source("kb:a.md", pairs[2])
    first, second = "qa_20260201_000000.000000", "qa_20260202_000000.000000"
    cited = resolve_citations(["kb:a.md", f"`{second}`", "team:a.txt", first, second], [topic, page])
    assert cited.sources == ("kb:a.md", "team:a.txt")
    assert cited.pairs == (("team:a.txt", second), ("team:a.txt", first))
    assert resolve_citations(["qa_20260203_000000.000000"], [topic, page]).sources == ()


def test_links_follow_after_an_empty_line_without_previews() -> None:
    urls = ["https://a.example/x#y", "http://b.example", "https://a.example/x#y"]
    assert links_block(urls) == "\n\nLinks:\n<https://a.example/x#y>\n<http://b.example>"


def test_without_addresses_there_is_no_links_block() -> None:
    assert links_block([]) == ""


def test_linkable_is_what_sources_the_team_and_the_asker_wrote_and_nobody_else() -> None:
    conversation = Conversation(
        (
            Turn(Role.USER, "stranger"),
            Turn(Role.ASSISTANT, "bot"),
            Turn(Role.ASSISTANT, "team", from_team=True),
            Turn(Role.USER, "asker", asked_now=True),
        )
    )
    texts = linkable_texts([Source("kb:https://a.example", "page"), Source("kb:b", "file")], conversation)
    assert [text for text in texts if text] == ["page", "file", "https://a.example", "team", "asker"]


def test_an_answer_may_repeat_the_address_at_which_a_host_shows_a_file_of_a_repository() -> None:
    url = "https://github.com/example/mill/blob/HEAD/docs/setup.md"
    texts = linkable_texts([Source("kb:git:github.com/example/mill//docs/setup.md", "Grease it.")], Conversation(()))
    assert remove_foreign_links(f"See <{url}>.", texts) == f"See <{url}>."


def test_of_what_the_team_has_taught_only_its_own_words_are_linkable() -> None:
    """Pitfall 19: whoever asks the team may write any address, which others must not be sent to."""
    topic = (
        "--- QA ---\nid: qa_20260201_000000.000000\ntimestamp: 2026-02-01T00:00:00.000000Z\n"
        "User: Is https://theirs.example right?\n  Or https://theirs.example/2?\n"
        "Team: No, take\n  https://ours.example\n\n"
    )
    assert linkable_texts([Source("team:downloads.txt", topic)], Conversation(())) == [
        "No, take\nhttps://ours.example",
        "",
    ]
