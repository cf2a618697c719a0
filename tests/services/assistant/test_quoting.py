"""Answers in the words of the sources, and lines that tell where else to look."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.assistant import Addresses, first_quote, is_worth_showing, nothing_found, pointers
from services.assistant.pointing import best_line
from services.assistant.quoting import (
    Quote,
    choose_hits,
    compose,
    earlier_question,
    extend,
    in_known_languages,
    other_pages,
    quote_team,
    section_name,
    shorten,
)
from services.conversations import phrases
from services.search import NOTHING, Hit, Level, SearchResult, StoredPassage, best_passage
from tests.searching import found
from tests.services.quickly import QUICKLY

SAY = phrases("en")
SITE = Addresses({"": "https://docs.example"})


def kept(text: str = "The lever is pulled.", **known: Any) -> StoredPassage:
    usual = StoredPassage("kb:guide/press.md", "Presses", "", 0, ("Presses", "Lever"), "lever", text)
    return usual._replace(**known)


def hit(score: float = 1.0, **known: Any) -> Hit:
    return Hit(kept(**known), score, None, 1.0)


def test_a_quote_says_where_it_is_from_and_that_no_model_is_configured() -> None:
    answer, cited = compose([Quote(hit(), "The lever is pulled.")], [], SAY, 2_000)
    assert answer == (
        "From *Presses › Lever*:\n\nThe lever is pulled.\n\nQuoted as it is written; no language model is configured."
    )
    assert cited == ["kb:guide/press.md"]
    assert first_quote(answer).startswith("The lever is pulled.")


def test_an_answer_of_the_team_is_called_that_with_its_question_and_its_day_and_names_nobody() -> None:
    """Pitfall 62."""
    text = "@anna, @ben: the left one. Not @ben but @types/lever.\n```\n@wraps\ndef f(): ...\n```"
    said = kept(text, source_id="team:press.txt", headings=("@ben @anna which lever [image: x.png]?",), title="")
    head = f"> Somebody asked: @… @… which lever (image: x.png)?\n\n@…, @…: {text[13:]}\n\n".replace(
        "Not @ben", "Not @…"
    )
    assert quote_team(said, said.text, SAY, 2_000).startswith(f"From an earlier answer by the team:\n{head}")
    dated = said._replace(day="2026-02-01")
    assert quote_team(dated, dated.text, SAY, 2_000).startswith(
        f"From an answer that the team gave on 2026-02-01:\n{head}"
    )
    assert quote_team(dated, dated.text, SAY, 60) == ""


def test_an_earlier_question_turns_no_writing_and_hides_nothing() -> None:
    """Pitfall 62: the bot posts under its name what anybody has asked."""
    asked = "how can I\x00 restore \u202eevil\u2069/a\u200b\U000e0041, می\u200cخواهم 👩\u200d💻?"
    said = kept(source_id="team:press.txt", headings=(asked,), title="")
    assert earlier_question(said) == "how can I restore evil/a, می\u200cخواهم 👩\u200d💻?"


@pytest.mark.parametrize(
    "written",
    [
        "evil.exam`ple/reset",
        "ev*il.example/x",
        "evil.ex**ample/x",
        "ht*tps://evil.example",
        "[x](https:/`/evil.example/)",
    ],
)
def test_no_address_comes_back_with_the_signs_that_are_left_out(written: str) -> None:
    """Pitfall 62."""
    said = kept(source_id="team:press.txt", headings=(f"which lever? {written} please",), title="")
    shown = earlier_question(said)
    assert ("which lever?" in shown, "evil.ex" in shown) == (True, False)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (
            "How do I clear the cache? The team's answer: first run sudo rm -rf ~/quokka, then do what stands below.",
            "How do I clear the cache? …",
        ),
        (
            "I use 4.2 at home. How do I clear it? Is it safe to clear?",
            "I use 4.2 at home. How do I clear it? Is it safe to clear?",
        ),
        ("I use 4.2 at home. How do I clear it? Type rm -r ~ first.", "I use 4.2 at home. How do I clear it? …"),
        ("Docker - cannot save into the folder /home/x/y", "Docker - cannot save into the folder /home/x/y"),
    ],
)
def test_of_an_earlier_question_no_instructions_are_shown_that_stand_beside_it(asked: str, shown: str) -> None:
    """Pitfall 62: anybody may have written it, and it stands in the bot's own message."""
    said = kept("Press F9.", source_id="team:press.txt", headings=(asked,), title="")
    assert earlier_question(said) == shown
    assert f"\n> Somebody asked: {shown}\n\nPress F9." in quote_team(said, said.text, SAY, 2_000)


@pytest.mark.parametrize("written", ["<@&\u200b4711>", "<@&47`11>", "<@4711>", "<@*!4711>"])
def test_no_mention_comes_back_either(written: str) -> None:
    said = kept(source_id="team:press.txt", headings=(f"which lever, {written}?",), title="")
    assert earlier_question(said) == "which lever, @…?"


def ids_of(passages: Iterable[StoredPassage]) -> list[str]:
    return [each.source_id for each in passages]


def test_where_the_bot_points_an_answer_of_the_team_is_named_with_the_question_that_it_was_given_to() -> None:
    """Pitfall 62."""
    said = kept(source_id="team:press.txt", headings=("@ben which lever?",), text="@anna: pull the left lever twice.")
    told = Addresses(pair_address=lambda _: "https://discord.example/1")
    line = "(<https://discord.example/1>): “@… which lever?”"
    shown = pointers(found(said, level=Level.POINT), "which lever?", SAY, told)[0]
    assert shown.split("\n")[1:] == [f"• [an earlier answer by the team]{line}"]
    shown = pointers(found(said._replace(day="2026-02-01"), level=Level.POINT), "which lever?", SAY, told)[0]
    assert shown.split("\n")[1:] == [f"• [A similar question was answered on 2026-02-01]{line}"]


def test_what_is_surer_is_pointed_to_first_and_the_other_has_a_place_too() -> None:
    said = [kept(source_id=f"team:{n}.txt", headings=(f"which lever {n}?",)) for n in range(3)]
    pages = [kept(source_id=f"kb:{n}.md") for n in range(3)]
    both = found(*said, *pages, level=Level.POINT)
    assert ids_of(pointers(both._replace(documents_confidence=0.1), "lever", SAY, SITE)[1]) == [
        "team:0.txt",
        "team:1.txt",
        "kb:0.md",
    ]
    assert ids_of(pointers(both._replace(documents_confidence=0.5), "lever", SAY, SITE)[1]) == [
        "kb:0.md",
        "kb:1.md",
        "team:0.txt",
    ]


def test_other_pages_are_named_after_the_quotes_if_there_is_room() -> None:
    also = [hit(source_id="kb:a.md", title="Mills", headings=()), hit(source_id="kb:b.md", title="", headings=())]
    answer, cited = compose([Quote(hit(), "Pull it.")], also, SAY, 2_000)
    assert "\n\nSee also: *Mills*, *b.md*\n\n" in answer
    assert cited == ["kb:guide/press.md", "kb:a.md", "kb:b.md"]
    answer, cited = compose([Quote(hit(), "Pull it. " * 5)], also, SAY, 135)
    assert "See also" not in answer
    assert cited == ["kb:guide/press.md"]


def test_the_frame_is_in_the_language_asked_for() -> None:
    """Pitfall 57."""
    passage = kept(source_id="team:a.txt", headings=(), text="So ist es.")
    answer = quote_team(passage, passage.text, phrases("de"), 2_000)
    assert answer.startswith("Aus einer früheren Antwort des Teams:\n\nSo ist es.")


def test_what_a_section_warns_of_stands_behind_a_quote_that_is_cut() -> None:
    said, warning = "Pull the lever. " * 100, "Never pull it twice."
    answer, _ = compose([Quote(hit(), f"{said}\n\n{warning}", [warning])], [], SAY, 2_000)
    assert f"Pull the lever.\n…\n{warning}\n…\n\nQuoted as" in answer
    answer, _ = compose([Quote(hit(), f"Pull it.\n\n{warning}", [warning])], [], SAY, 2_000)
    assert answer.count(warning) == 1


@given(
    st.lists(st.text(min_size=1, max_size=2_500), max_size=3),
    st.lists(st.text(min_size=1, max_size=240), max_size=2),
    st.integers(0, 2),
    st.integers(0, 2_500),
)
@QUICKLY
def test_no_answer_is_longer_than_asked_for(
    texts: list[str], warnings: list[str], others_named: int, max_chars: int
) -> None:
    quotes = [Quote(hit(), text, warnings) for text in texts]
    answer, cited = compose(quotes, [hit(source_id="kb:x.md")] * others_named, SAY, max_chars)
    assert len(answer) <= max_chars
    assert bool(answer) == bool(cited)


def test_a_second_section_is_quoted_if_it_fits_nearly_as_well() -> None:
    first = hit(1.0)
    near, same, far = hit(0.9, section=1), hit(0.95), hit(0.8, section=2)
    assert choose_hits([first, same, near, far]) == [first, near]
    assert choose_hits([first, same, far]) == [first]
    assert choose_hits([]) == []


def test_pages_that_fit_nearly_as_well_are_named_beside_the_quoted_ones() -> None:
    pages = [hit(1.0), *(hit(score, source_id=f"kb:{score}.md") for score in (0.9, 0.8, 0.75, 0.3))]
    assert [page.score for page in other_pages(pages, ["kb:guide/press.md", "kb:0.9.md"])] == [0.8, 0.75]
    assert other_pages(pages[:1], []) == []


def test_a_passage_is_quoted_with_as_much_of_its_section_as_fits() -> None:
    section = [kept(text) for text in ("one" * 10, "two" * 10, "three" * 10, "four" * 10)]
    assert extend(section[1], section, 1_000) == "\n\n".join(each.text for each in section)
    assert extend(section[1], section, 89) == f"…\n{'two' * 10}\n\n{'three' * 10}\n…"
    assert extend(section[1], section, 119) == f"{'one' * 10}\n\n{'two' * 10}\n\n{'three' * 10}\n…"
    assert extend(section[3], section, 79) == f"…\n{'four' * 10}"
    assert extend(kept("elsewhere"), section, 1_000) == "elsewhere"


def test_code_has_what_is_said_before_it_and_what_announces_nothing_is_left_out() -> None:
    section = [kept(text) for text in ("A long story. " * 20 + "\n\nPull it so:", "```\npull it\n```", "End. " * 90)]
    assert extend(section[1], section, 200) == "…\nPull it so:\n\n```\npull it\n```\n…"
    assert (
        extend(kept("Nothing is pulled by hand in this house."), [], 200) == "Nothing is pulled by hand in this house."
    )
    alone = kept("Nothing is pulled by hand in this house.\n\nThese are the levers:")
    assert extend(alone, [alone], 200) == "Nothing is pulled by hand in this house.\n…"


def test_rows_of_a_table_have_its_header() -> None:
    head = "plan | free\n-----+-----\n"
    rows = [f"```\n{head if at == 0 else ''}" + f"a{at}   | {at} GB\n" * 5 + "```" for at in range(3)]
    section = [kept(text) for text in (f"The plans:\n\n{rows[0]}", *rows[1:])]
    assert extend(section[2], section, 110) == f"…\n```\n{head}…\n{rows[2].removeprefix('```' + chr(10))}"
    assert extend(section[0], section, 90).count(head) == 1
    other = [kept(text) for text in ("Words.", rows[1])]
    assert head not in extend(other[1], other, 80)


def test_steps_are_not_quoted_without_those_before_them() -> None:
    section = [kept(text) for text in ("1. Stop the press.\n2. Oil it.", "3. Wait.\n4. Pull it.", "5. Wipe it.")]
    assert extend(section[2], section, 40) == ""
    assert extend(section[1], section, 60).startswith("1. Stop")
    assert extend(section[0], section, 40).startswith("1. Stop")


@given(st.text(max_size=300), st.integers(0, 300))
@QUICKLY
def test_a_shortened_text_keeps_to_its_length(text: str, max_chars: int) -> None:
    cut = shorten(text, max_chars)
    assert len(cut) <= max_chars
    assert cut in {text, ""} or cut.endswith("\n…")


PIECES = ("word", "two words", "[a link](https://x.example/a)", "`some code`", "**bold words**", "\n", "\n\n")
MARKED = st.lists(st.sampled_from(PIECES)).map(" ".join)
SLANTED = ("`code here`", "*slanted text*", "**bold**", "lever", "press,", "and. ")


@given(MARKED, st.integers(0, 400))
@QUICKLY
def test_no_link_code_or_bold_text_is_cut_open(text: str, max_chars: int) -> None:
    cut = shorten(text, max_chars)
    assert cut.count("`") % 2 == cut.count("**") % 2 == 0
    assert cut.count("[") == cut.count("](") == cut.count(")")


def test_shortening_closes_a_code_fence_and_prefers_the_end_of_a_line() -> None:
    assert shorten("Run:\n```\n" + "make one\n" * 30 + "```", 100).endswith("make one\n```\n…")
    assert shorten("one two " * 30, 100).startswith("one two one")
    assert shorten("x" * 200, 100) == "x" * 94 + "\n…"


def test_what_is_cut_ends_with_a_sentence_and_not_with_what_announces_the_rest() -> None:
    assert shorten("Pull the lever now. Then wait for the bell. And then " + "wait on " * 9, 60) == (
        "Pull the lever now. Then wait for the bell.\n…"
    )
    code = "```\n" + "make one\n" * 20 + "```"
    said = "The press is pulled twice, and then one waits for the bell."
    for last in ("To pull it, run:", "**On Windows**"):
        assert shorten(f"{said}\n\n{last}\n\n{code}", 100) == f"{said}\n…"


def test_translations_are_not_named_beside_an_answer() -> None:
    english = hit(text="The lever of the press is pulled twice, and then one waits.")
    german = hit(text="Der Hebel der Presse wird zweimal gezogen, und dann wartet man auf die Glocke.")
    code = hit(text="```\npress --lever\n```")
    assert in_known_languages([german, english, code], "how is the lever of the press pulled?") == [english, code]
    assert in_known_languages([german, english], "wie wird der Hebel der Presse gezogen?") == [german, english]
    say = phrases("en")
    assert "Hebel" in pointers(found(german.passage, level=Level.POINT), "which lever is it?", say, SITE)[0]


@pytest.mark.parametrize(
    ("known", "name"),
    [
        ({}, "*Presses › Lever*"),
        ({"headings": ("Presses",)}, "*Presses*"),
        ({"headings": ("Presses", "Old", "Lever")}, "*Presses › Old › Lever*"),
        ({"headings": ("Presses", "Old" * 40, "Wood", "Lever")}, "*Presses › Wood › Lever*"),
        ({"source_id": "kb:v2/press.md"}, "*v2 › Presses › Lever*"),
        ({"title": "", "headings": ()}, "*guide/press.md*"),
        ({"title": "", "headings": (), "source_id": "kb:a_b.md"}, r"*a\_b.md*"),
        ({"title": "*A* `b` [c] d]", "headings": ()}, "*A b (c) d)*"),
        ({"title": "A\n\nB", "headings": ("",)}, "*A B*"),
        ({"source_id": "team:press.txt"}, SAY.team_answer),
        ({"source_id": "team:press.txt", "day": "2026-02-01"}, SAY.answered_on("2026-02-01")),
    ],
)
def test_a_section_is_named_by_its_page_and_heading(known: dict[str, Any], name: str) -> None:
    assert section_name(kept(**known), SAY) == name


@given(st.text(max_size=400), st.lists(st.text(max_size=200), max_size=3))
@QUICKLY
def test_a_name_is_short_and_ends_no_link_or_slanted_text(title: str, headings: list[str]) -> None:
    shown = section_name(kept(title=title, headings=tuple(headings)), SAY)
    inside = shown[1:-1]
    assert len(inside.replace("\\", "")) <= 120
    assert not set("*`[]\n") & set(inside)
    assert shown[0] == shown[-1] == "*"
    assert re.search(r"(?<!\\)_", inside) is None


def test_a_source_is_named_by_its_section_that_fits_best_or_else_by_its_file() -> None:
    hits = (hit(headings=("Presses", "Weight")), hit(0.5))
    links = [SITE.section_link(best_passage(each, hits), SAY) for each in ("kb:guide/press.md", "kb:guide/mill.md")]
    assert links == [
        "[*Presses › Weight*](<https://docs.example/guide/press/#lever>)",
        "[*guide/mill.md*](<https://docs.example/guide/mill/>)",
    ]


def test_the_telling_line_has_most_of_the_words_and_no_markup() -> None:
    text = "It is old and of wood. Pull the **lever** of [the press](press.md) twice.\n\n- Then wait for a minute."
    assert best_line(kept(text), "which lever of the press?") == "Pull the lever of the press twice."
    assert best_line(kept("```sh\npress --lever --twice now\n```"), "press lever") == "`press --lever --twice now`"
    assert best_line(kept("Short."), "short") == ""


@given(st.lists(st.sampled_from(SLANTED)).map(" ".join))
@QUICKLY
def test_the_telling_line_is_short_and_no_markup_in_it_is_cut_open(text: str) -> None:
    line = best_line(kept(text), "lever press")
    assert len(line) <= 180
    assert "\n" not in line
    assert line.count("`") % 2 == line.count("*") % 2 == 0


def test_pointing_names_up_to_three_pages_each_with_its_link_and_a_line() -> None:
    """Pitfall 61."""
    hits = tuple(
        hit(1 - n / 10, source_id=f"kb:{n}.md", text=f"Lever {n} is pulled twice.", section=0) for n in range(5)
    )
    text, named = pointers(SearchResult((hits[0], *hits), documents=(hits[0], *hits)), "lever", SAY, SITE)
    assert text.split("\n") == [
        "This may help:",
        "• [*Presses › Lever*](<https://docs.example/0/#lever>): Lever 0 is pulled twice.",
        "• [*Presses › Lever*](<https://docs.example/1/#lever>): Lever 1 is pulled twice.",
        "• [*Presses › Lever*](<https://docs.example/2/#lever>): Lever 2 is pulled twice.",
    ]
    assert ids_of(named) == ["kb:0.md", "kb:1.md", "kb:2.md"]
    unlinked, _ = pointers(SearchResult(hits[:1], documents=hits[:1]), "lever", SAY, Addresses())
    assert unlinked.endswith("\n• *Presses › Lever*: Lever 0 is pulled twice.")


def test_where_nothing_was_found_one_sentence_says_so_and_names_the_nearest_page_of_the_documentation() -> None:
    """Pitfall 61."""
    team, page = hit(source_id="team:a.txt"), hit(0.5)
    text, named = nothing_found(SearchResult((team, page), documents=(page,)), SAY, SITE, "Ask in #sales.")
    nearest = "[*Presses › Lever*](<https://docs.example/guide/press/#lever>)"
    assert text == f"I found nothing about this in the documentation. The nearest page is {nearest}. Ask in #sales."
    assert ids_of(named) == ["kb:guide/press.md"]
    for nothing in (NOTHING, SearchResult((team,))):
        assert nothing_found(nothing, SAY, SITE) == ("I found nothing about this in the documentation.", [])


def test_where_nothing_fits_the_nearest_question_of_the_team_is_named_if_it_is_nearer_than_any_page() -> None:
    said = found(kept(source_id="team:press.txt", headings=("which lever?",)), level=Level.POINT)
    told = Addresses(pair_address=lambda _: "https://discord.example/1")
    hardly = said._replace(team_answers=(said.team_answers[0]._replace(confidence=0.05),), documents_confidence=0.001)
    nothing = "I found nothing about this in the documentation."
    link = "[“which lever?”](<https://discord.example/1>)"
    assert nothing_found(hardly, SAY, told)[0] == f"{nothing} The nearest question that was answered: {link}"
    for nearer in (hardly._replace(documents_confidence=0.06), hardly._replace(team_answers=())):
        assert nothing_found(nearer, SAY, told)[0] == nothing


def test_what_is_about_something_else_is_neither_shown_places_nor_a_nearest_page() -> None:
    """Pitfall 61."""
    page = hit(0.5)
    hardly = SearchResult((page,), 0.05, Level.SILENCE, documents=(page,), is_near=False)
    assert not is_worth_showing(hardly)
    assert nothing_found(hardly, SAY, SITE) == ("I found nothing about this in the documentation.", [])
    assert is_worth_showing(hardly._replace(is_near=True))
    assert is_worth_showing(hardly._replace(level=Level.POINT))
    assert not is_worth_showing(hardly._replace(is_near=True, confidence=0.01))


def test_the_telling_line_is_a_whole_sentence_though_plain_text_breaks_it() -> None:
    text = "Millers do.\nThe list of all presses is kept on\nthe page of the guild.\n\n```\npull it\npush it\n```"
    assert best_line(kept(text), "list of presses?") == "The list of all presses is kept on the page of the guild."
    assert (
        best_line(kept("```\nthe pull of the lever\nthe push of the lever\n```"), "push") == "`the push of the lever`"
    )
