"""Selecting and quoting, measured on an invented product: by words only."""

from __future__ import annotations

from collections.abc import Sequence

from model.conversations import Conversation, Role, Turn
from services.assistant import Addresses, VerificationResult
from services.assistant.answering import AnswerResult
from services.assistant.citations import remove_foreign_links, resolve_citations
from services.assistant.extractive import ExtractiveAssistant
from services.assistant.prompts import about
from services.conversations import phrases
from services.knowledge.index_file import IndexEntry
from services.knowledge.library import Source
from services.llm.usage import Usage
from services.search import EARLIER_QUESTION, Level
from tests.services.assistant.extractive.lanternfish import (
    INDEX,
    QUESTIONS,
    SOURCES,
    UNANSWERED,
    Bookcase,
    assistant_over,
    search_over,
)

BY_ID = {source.id: source for source in SOURCES}
NOTICE = phrases("en").no_model_notice


async def select(query: str, most: int = 3, files: Sequence[str] = ()) -> list[str]:
    given = await assistant_over(Bookcase()).select(query, query, (), most, Usage(), files=files)
    return given.selected_source_ids


async def generate(query: str, sources: Sequence[Source], max_chars: int = 3000) -> AnswerResult:
    return await generated_by(assistant_over(Bookcase()), query, sources, max_chars)


async def generated_by(
    assistant: ExtractiveAssistant, query: str, sources: Sequence[Source], max_chars: int = 3000
) -> AnswerResult:
    conversation = Conversation((Turn(Role.USER, query, asked_now=True),))
    return await assistant.generate(conversation, query, sources, Usage(), max_chars=max_chars)


def books(*sources: Source) -> Bookcase:
    return Bookcase([IndexEntry(source.id, "About it.") for source in sources], sources)


async def answer(query: str) -> AnswerResult:
    return await generate(query, [BY_ID[source_id] for source_id in await select(query)])


async def test_the_right_source_is_selected_first_for_10_of_10_questions() -> None:
    first = [(await select(query))[0] for query, _, _ in QUESTIONS]
    assert sum(got == wanted for got, (_, wanted, _) in zip(first, QUESTIONS, strict=True)) == 10


async def test_what_is_answered_is_quoted_right_with_its_source_and_that_is_most() -> None:
    answers = [await answer(query) for query, _, _ in QUESTIONS]
    right = [
        words in (given.answer or "") and source_id in resolve_citations(given.citations, [BY_ID[source_id]]).sources
        for given, (_, source_id, words) in zip(answers, QUESTIONS, strict=True)
    ]
    answered = [given.answer is not None for given in answers]
    assert right == answered
    assert sum(right) >= 7


async def test_what_is_not_answered_is_among_the_pages_that_the_bot_would_point_to() -> None:
    """Pitfall 61."""
    search = search_over(Bookcase())
    for query, source_id, _ in QUESTIONS:
        assert source_id in [hit.source_id for hit in (await search.find(query)).pages[:3]]


async def test_questions_that_the_documentation_does_not_answer_get_no_answer() -> None:
    assert [await answer(query) for query in UNANSWERED] == [AnswerResult(answer=None, citations=[])] * len(UNANSWERED)


async def test_an_answer_names_its_section_and_says_once_that_no_model_is_configured() -> None:
    given = await generate("how to turn off face recognition?", [BY_ID["kb:guides/faces.md"]])
    assert given.answer == (
        "From *Face recognition › Turning it off*:\n\n"
        "Set `LF_FACES=off` and restart. Groups that exist already are kept until `lf faces purge` is run.\n\n" + NOTICE
    )
    assert given.citations == ["kb:guides/faces.md"]


async def test_a_team_answer_is_named_as_such() -> None:
    """Pitfall 62."""
    query = "does hardware transcoding on a raspberry pi work?"
    given = await generate(query, [BY_ID["team:gpu-transcoding.txt"]])
    assert (given.answer or "").startswith(
        "From an earlier answer by the team:\n> Somebody asked: Does hardware transcoding work on a Raspberry Pi 5?"
    )


async def test_what_stands_around_a_quote_is_in_the_language_of_the_question_or_the_configured_one() -> None:
    page = Source("kb:cache.md", "# Zwischenspeicher\n\nDer Zwischenspeicher wird mit der Taste F9 geleert.\n")
    asked, search = "Mit welcher Taste wird der Zwischenspeicher geleert?", search_over(books(page))
    for language, written in (("question", "de"), ("en", "en"), ("ja", "ja")):
        given = await generated_by(ExtractiveAssistant(search, reply_language=language), asked, [page])
        assert (given.answer or "").startswith(phrases(written).quoted_from("*Zwischenspeicher*"))
        assert (given.answer or "").endswith(phrases(written).no_model_notice)


async def test_links_in_quotes_are_absolute() -> None:
    page = Source("kb:guide/cache.md", "# Cache\n\nTo purge the cache press F9, as [the keys](keys.md#f9) say.\n")
    assistant = ExtractiveAssistant(search_over(books(page)), Addresses({"": "https://x.example"}))
    given = await generated_by(assistant, "how do I purge the cache, which keys?", [page])
    assert "[the keys](<https://x.example/guide/keys/#f9>)" in (given.answer or "")


async def test_only_what_was_loaded_is_quoted() -> None:
    query = "how to turn off face recognition?"
    assert (await generate(query, [])).answer is None
    assert (await generate(query, [BY_ID["kb:guides/backup.md"]])).answer is None


async def test_a_section_that_does_the_opposite_is_not_quoted() -> None:
    asked = "How do I turn off the alarm of the quokka?"
    turns_on = "## Turn on the alarm\n\nOpen the settings of the quokka, choose Alarm and press F9.\n\n"
    only = Source("kb:quokka.md", f"# Quokka\n\n{turns_on}")
    search = search_over(books(only))
    assert (await search.find(asked)).level is Level.ANSWER
    assert (await generated_by(ExtractiveAssistant(search), asked, [only])).answer is None
    followed = f"and how do I turn it off?\n{EARLIER_QUESTION}How do I turn on the alarm of the quokka?"
    assert (await generated_by(ExtractiveAssistant(search), followed, [only])).answer is None
    turns_off = turns_on.replace("Turn on", "Turn off").replace("F9", "F8")
    both = Source("kb:quokka.md", f"# Quokka\n\n{turns_on}{turns_off}")
    given = await generated_by(assistant_over(books(both)), asked, [both])
    assert "F8" in (given.answer or "")
    assert "F9" not in (given.answer or "")


async def test_a_section_for_something_else_is_not_quoted() -> None:
    asked = "How many drops of the quokka syrup do children take?"
    adults = "# Quokka syrup\n\n## Adults\n\nTake twenty drops of the quokka syrup a day.\n\n"
    children = "## Children\n\nTake two drops of the quokka syrup a day.\n"
    both = Source("kb:quokka.md", adults + children)
    given = await generated_by(assistant_over(books(both)), asked, [both])
    assert "two drops" in (given.answer or "")
    assert "twenty" not in (given.answer or "")
    ask_somebody = Source("kb:quokka.md", f"{adults}## Children\n\nAsk a doctor first of all.\n")
    assert "twenty" not in (
        (await generated_by(assistant_over(books(ask_somebody)), asked, [ask_somebody])).answer or ""
    )


async def test_what_the_head_of_a_page_says_holds_for_its_sections() -> None:
    asked = "How do I clear the tables of the quokka?"
    section = "## Clear the tables\n\nRun `quokka clear` to clear the tables of the quokka.\n"
    warned = Source("kb:quokka.md", f"# Quokka\n\n!!! danger\n    Never run any of this at noon.\n\n{section}")
    given = await generated_by(assistant_over(books(warned)), asked, [warned])
    assert "`quokka clear`" in (given.answer or "")
    assert "Never run any of this at noon." in (given.answer or "")
    old = Source("kb:quokka.md", f"---\nstatus: superseded by 7\n---\n# Quokka\n\n{section}")
    assert (await generated_by(assistant_over(books(old)), asked, [old])).answer is None


async def test_of_equal_passages_the_teams_comes_first_whatever_the_order_of_sources() -> None:
    text = "Press F9 to purge the cache of thumbnails."
    pair = f"--- QA ---\nid: qa_1\nUser: which key to press to purge the cache of thumbnails?\nTeam: {text}\n\n"
    page, team = Source("kb:a.md", text), Source("team:cache.txt", pair)
    for order in ((page, team), (team, page)):
        library = books(*order, *SOURCES)
        given = await generated_by(assistant_over(library), "press which key to purge the cache of thumbnails?", order)
        assert given.citations == ["qa_1"]


async def test_an_answer_of_the_team_that_search_has_cut_is_quoted_whole() -> None:
    """What takes it back may stand at its end; code keeps its lines."""
    steps = "\n".join(f"Step {number}: press F{number} and wait for the lamp of the cache." for number in range(1, 35))
    text = f"{steps}\n```\nif dark:\n    press F9\n```\nNever do this on a Sunday."
    asked = "which key to press to purge the cache of thumbnails?"
    inside = text.replace("\n", "\n  ")
    team = Source("team:cache.txt", f"--- QA ---\nid: qa_1\nUser: {asked}\nTeam: {inside}\n\n")
    search = search_over(books(team, *SOURCES))
    best = (await search.find(asked)).team_answers[0].hit.passage
    assert len(best.text) < len(text) < 2_000
    given = await generated_by(ExtractiveAssistant(search), asked, [team])
    assert text in (given.answer or "")
    # A topic that has changed meanwhile is not quoted in part.
    changed = Source("team:cache.txt", team.text.replace("qa_1", "qa_2"))
    assert (await generated_by(ExtractiveAssistant(search), asked, [changed])).answer is None


async def test_no_answer_is_longer_than_asked_for() -> None:
    assistant = assistant_over(Bookcase())
    for max_chars in (0, 80, 150, 200, 400, 3000):
        for query, _, _ in QUESTIONS:
            assert len((await generated_by(assistant, query, SOURCES, max_chars)).answer or "") <= max_chars


async def test_selection_names_at_most_as_many_as_it_may_in_the_order_of_the_index_on_a_tie() -> None:
    assistant = assistant_over(books(*(Source(f"kb:{number}.md", "alpha beta gamma") for number in range(5))))
    chosen = await assistant.select("alpha", "alpha", (), 2, Usage())
    assert chosen.selected_source_ids == ["kb:0.md", "kb:1.md"]
    assert (await assistant.select("nothing of it", "?", (), 2, Usage())).selected_source_ids == []


async def test_where_there_are_files_only_a_page_that_answers_is_selected() -> None:
    """Pitfall 59: an attachment does not bring in any page."""
    search = search_over(Bookcase())
    for query, source_id, _ in QUESTIONS:
        answers = (await search.find(query)).level is Level.ANSWER
        assert (source_id in await select(query, files=["app.log (log, 3 kB)"])) is answers
    assert await select("what does the log say about the kitchen?", files=["app.log"]) == []


async def test_quotes_need_no_verification_and_hold_no_address_that_is_not_in_the_sources() -> None:
    assistant = assistant_over(Bookcase())
    for query, _, _ in QUESTIONS:
        draft = (await generated_by(assistant, query, SOURCES)).answer or ""
        assert await assistant.ask("verify", about("verify", "", "", draft=draft), VerificationResult, Usage()) is None
        assert remove_foreign_links(draft, [source.text for source in SOURCES]) == draft


async def test_the_assistant_counts_no_calls() -> None:
    usage = Usage()
    conversation = Conversation((Turn(Role.USER, "how do I install it on Linux?"),))
    assert (await assistant_over(Bookcase()).gate(conversation, usage)).is_question
    assert not usage.calls


def test_every_source_of_the_index_is_there() -> None:
    assert [entry.id for entry in INDEX] == [source.id for source in SOURCES]
