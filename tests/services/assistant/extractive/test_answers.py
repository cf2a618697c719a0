"""Selecting and quoting, measured on an invented product."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from services.assistant.extractive.quoting import NOTICE, shortened

from model.conversations import Conversation, Role, Turn
from services.assistant.answering import AnswerResult
from services.assistant.extractive import ExtractiveAssistant
from services.assistant.links import remove_foreign_links
from services.knowledge.index_file import IndexEntry
from services.knowledge.library import Source
from services.llm.usage import Usage
from tests.services.assistant.extractive.lanternfish import INDEX, QUESTIONS, SOURCES, UNANSWERED, Bookcase
from tests.services.quickly import QUICKLY

BY_ID = {source.id: source for source in SOURCES}


async def select(query: str, most: int = 3) -> list[str]:
    return (await ExtractiveAssistant(Bookcase()).select(query, INDEX, most, Usage())).selected_source_ids


async def generate(query: str, sources: Sequence[Source], max_chars: int = 3000) -> AnswerResult:
    conversation = Conversation((Turn(Role.USER, query, asked_now=True),))
    return await ExtractiveAssistant(Bookcase()).generate(conversation, query, sources, Usage(), max_chars=max_chars)


async def answer(query: str) -> AnswerResult:
    return await generate(query, [BY_ID[source_id] for source_id in await select(query)])


async def test_the_right_source_is_selected_first_for_10_of_10_questions() -> None:
    first = [(await select(query))[0] for query, _, _ in QUESTIONS]
    assert sum(got == wanted for got, (_, wanted, _) in zip(first, QUESTIONS, strict=True)) == 10


async def test_the_right_passage_is_quoted_for_10_of_10_questions_with_its_source() -> None:
    answers = [await answer(query) for query, _, _ in QUESTIONS]
    right = [
        words in (given.answer or "") and source_id in given.citations
        for given, (_, source_id, words) in zip(answers, QUESTIONS, strict=True)
    ]
    assert sum(right) == 10


async def test_questions_that_the_documentation_does_not_answer_get_no_answer() -> None:
    assert [await answer(query) for query in UNANSWERED] == [AnswerResult(answer=None, citations=[])] * len(UNANSWERED)


async def test_an_answer_names_its_source_and_says_once_that_no_model_is_configured() -> None:
    given = await generate("how to turn off face recognition?", SOURCES)
    assert given.answer == (
        "From `guides/faces.md`, *Face recognition › Turning it off*:\n\n"
        "Set `LF_FACES=off` and restart. Groups that exist already are kept until `lf faces purge` is run.\n\n" + NOTICE
    )
    assert given.citations == ["kb:guides/faces.md"]


async def test_web_pages_and_team_answers_are_named_as_such() -> None:
    proxy = await generate(
        "nginx answers 413 when I upload videos", [BY_ID["kb:https://lanternfish.example/docs/proxy"]]
    )
    team = await generate("transcoding on a raspberry pi?", [BY_ID["team:gpu-transcoding.txt"]])
    assert (proxy.answer or "").startswith("From the documentation, *Reverse proxy and HTTPS*:")
    assert (team.answer or "").startswith("From an earlier answer by the team:\n\nNo, the Pi 5")


async def test_a_source_without_headings_is_named_alone() -> None:
    given = await generate("purge the cache", [Source("kb:faq.txt", "To purge the cache, press F9.")])
    assert (given.answer or "").startswith("From `faq.txt`:\n\nTo purge")


async def test_of_equal_passages_the_teams_comes_first_whatever_the_order_of_sources() -> None:
    text = "Press F9 to purge the cache."
    page = Source("kb:a.md", text)
    team = Source("team:cache.txt", f"--- QA ---\nid: qa_1\nTeam: {text}\n\n")
    assert await generate("purge the cache", [page, team]) == await generate("purge the cache", [team, page])
    assert (await generate("purge the cache", [page, team])).citations == ["team:cache.txt", "kb:a.md"]


async def test_no_answer_is_longer_than_asked_for() -> None:
    for max_chars in (0, 80, 150, 200, 400, 3000):
        for query, _, _ in QUESTIONS:
            assert len((await generate(query, SOURCES, max_chars)).answer or "") <= max_chars


async def test_selection_names_at_most_as_many_as_it_may_and_ranks_ties_as_the_index_does() -> None:
    index = [IndexEntry(f"kb:{number}.md", "alpha beta") for number in range(5)]
    assistant = ExtractiveAssistant(Bookcase(index, ()))
    chosen = await assistant.select("alpha", index, 2, Usage())
    assert chosen.selected_source_ids == ["kb:0.md", "kb:1.md"]
    assert (await assistant.select("nothing of it", index, 2, Usage())).selected_source_ids == []


async def test_a_draft_of_quotes_is_verified_and_a_draft_of_other_words_is_not() -> None:
    assistant = ExtractiveAssistant(Bookcase())
    conversation = Conversation((Turn(Role.USER, "?"),))
    for query, _, _ in QUESTIONS:
        for max_chars in (300, 3000):
            draft = (await generate(query, SOURCES, max_chars)).answer or ""
            verdict = await assistant.verify(conversation, draft, SOURCES, Usage())
            assert verdict.is_good_enough, verdict.issues
            assert remove_foreign_links(draft, [source.text for source in SOURCES]) == draft
    verdict = await assistant.verify(conversation, "Format the disk.", SOURCES, Usage())
    assert verdict.issues == ["Not in the sources: Format the disk."]
    assert not verdict.is_good_enough


async def test_the_assistant_counts_no_calls() -> None:
    usage = Usage()
    await ExtractiveAssistant(Bookcase()).gate(Conversation((Turn(Role.USER, "how do I install it on Linux?"),)), usage)
    assert not usage.calls


@given(st.text(max_size=300), st.integers(0, 300))
@QUICKLY
def test_a_shortened_text_keeps_to_its_length(text: str, max_chars: int) -> None:
    cut = shortened(text, max_chars)
    assert len(cut) <= max_chars
    assert cut in {text, ""} or cut.endswith("\n…")


def test_shortening_closes_a_code_fence_and_prefers_the_end_of_a_line() -> None:
    assert shortened("Run:\n```\n" + "make one\n" * 30 + "```", 100).endswith("make one\n```\n…")
    assert shortened("one two " * 30, 100).startswith("one two one")
    assert shortened("x" * 200, 100) == "x" * 94 + "\n…"
