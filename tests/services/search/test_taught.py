"""How sure an earlier answer of the team is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.search import Level
from services.search.differences import asks_only_among_others, asks_something_else
from services.search.embedding import Match
from services.search.passage_store import StoredPassage
from services.search.retrieval import (
    MAX_TEAM_ANSWERS,
    Hit,
    SearchResult,
    TeamAnswerSignals,
    judge_team_answers,
    level_of,
    team_candidates,
    team_probability,
)
from tests.services.quickly import QUICKLY

CLOSE = Match(near=0.9, missing=0.0)
ASKED = "which lever of the press is pulled?"


def said(question: str, *, section: int = 0, cosine: float = 0.6, quotable: bool = True, helped: bool = False) -> Hit:
    kept = StoredPassage(
        "team:mill.txt", "Mill", "", section, (question,), str(section), "Pull it.", "2026-02-16", quotable, helped
    )
    return Hit(kept, cosine, cosine, 1.5)


def test_of_each_answer_the_best_passage_counts_and_of_many_answers_the_first() -> None:
    hits = tuple(said(f"question {n}?", section=n // 2, cosine=0.9 - n / 100) for n in range(4 * MAX_TEAM_ANSWERS))
    assert team_candidates(SearchResult(hits)) == [hits[2 * n] for n in range(MAX_TEAM_ANSWERS)]


@given(st.floats(0, 20), st.floats(-1, 1), st.none() | st.floats(0, 1), st.floats(0, 1))
@QUICKLY
def test_it_is_a_probability_and_grows_with_what_speaks_for_an_answer(
    keywords: float, ahead: float, near: float | None, missing: float
) -> None:
    signals = TeamAnswerSignals(keywords, ahead, near, None if near is None else missing)
    likely = team_probability(signals)
    assert 0 <= likely <= 1
    more = [signals._replace(keywords=keywords + 1), signals._replace(ahead=ahead + 0.1)]
    if near is not None:
        more += [signals._replace(near=near + 0.1), signals._replace(missing=0.0)]
    assert all(team_probability(each) >= likely for each in more)


def test_an_answer_that_is_ahead_of_all_others_is_quoted_and_rivals_are_not() -> None:
    alone = judge_team_answers(ASKED, [said(ASKED)], [CLOSE])
    assert alone[0].level is Level.ANSWER
    rivals = [said(ASKED), said("why does the wheel of the mill stop?", section=1)]
    assert {each.level for each in judge_team_answers(ASKED, rivals, [CLOSE, CLOSE])} <= {Level.POINT, Level.SILENCE}


@pytest.mark.parametrize("match", [Match(near=0.63, missing=0.4), None])
def test_the_first_answer_of_a_team_is_not_told_to_whoever_asks_something_about_the_product(
    match: Match | None,
) -> None:
    """It has no rival that it could be ahead of."""
    matches = [] if match is None else [match]
    assert judge_team_answers("how do I oil the press?", [said(ASKED)], matches)[0].level is not Level.ANSWER


def test_answers_to_one_question_are_no_rivals_and_the_one_that_helped_comes_first() -> None:
    once, again = said(ASKED, cosine=0.61), said(ASKED, section=1, helped=True)
    assert [each.hit for each in judge_team_answers(ASKED, [once, again], [CLOSE, CLOSE])] == [again, once]
    assert {each.level for each in judge_team_answers(ASKED, [once, again], [CLOSE, CLOSE])} == {Level.ANSWER}
    better = said(ASKED, cosine=0.95)
    assert judge_team_answers(ASKED, [again, better], [Match(near=0.5, missing=0.4), CLOSE])[0].hit == better, (
        "that it helped is no proof"
    )


def test_of_answers_to_one_question_that_are_as_sure_the_oldest_comes_first() -> None:
    old, new = said(ASKED, cosine=0.61), said(ASKED, section=1, cosine=0.62)
    assert [each.hit for each in judge_team_answers(ASKED, [new, old], [CLOSE, CLOSE])] == [old, new]


@pytest.mark.parametrize("same_topic", [True, False])
def test_an_answer_that_a_doubted_one_may_have_replaced_is_not_sure(same_topic: bool) -> None:
    """Else whoever doubts the newer of two has the older one quoted."""

    def level(day: str, section: int) -> Level:
        other = said(ASKED, section=section, quotable=False)
        source_id = "team:mill.txt" if same_topic else "team:wheel.txt"
        doubted = other._replace(passage=other.passage._replace(doubted=True, day=day, source_id=source_id))
        return judge_team_answers(ASKED, [said(ASKED, section=1), doubted], [CLOSE, CLOSE])[0].level

    assert level("2026-02-17", 0) is (Level.ANSWER if same_topic else Level.POINT)
    assert [level("2026-02-17", 2), level("2026-02-16", 2)] == [Level.POINT, Level.POINT]
    assert level("2026-02-15", 2) is Level.ANSWER


@pytest.mark.parametrize(
    ("asked", "earlier"),
    [
        ("How do I disable the lever of the press?", "How do I enable the lever of the press?"),
        ("How do I unmount the wheel of press 3?", "How do I mount the wheel of press 3?"),
        ("Which lever does the press have on Linux?", "Which lever does the press have on Windows?"),
        ("Which lever does version 4 of the press have?", "Which lever does version 3 of the press have?"),
        ("Can I pull the lever without gloves?", "Can I pull the lever with gloves?"),
        ("How do I restore the press?", "How do I back up the press?"),
        ("How do I rename the press?", "How do I delete the press?"),
        ("How do I unhinge the lever?", "How do I hinge the lever?"),
        ("How do I reset the production database of the press?", "How do I reset the staging database of the press?"),
        ("¿Cómo restauro la base de datos de la prensa?", "¿Cómo elimino la base de datos de la prensa?"),
        ("Wie sichere ich die Datenbank der Presse?", "Wie lösche ich die Datenbank der Presse?"),
        ("如何恢复数据库?", "如何删除数据库?"),
        ("How do I hinge the lever?", "How do I unhinge the lever?"),
        ("How do I hinge the lever?", "How do I un-hinge the lever?"),
        ("How do I hinge the lever of this press?", "How do I un hinge the lever of this press?"),
        ("How do I hinge the lever?", "How do I un**hinge** the lever?"),
        ("How do I hinge the lever?", "How do I (un)hinge the lever?"),
        ("How do I hinge the lever?", "How do I `un`hinge the lever?"),
        ("How do I un-hinge the lever?", "How do I hinge the lever?"),
        ("How do I start the press?", "How do I stop the press from starting?"),
        ("How do I enable the lever of the press?", "How do I dis\u0430ble the lever of the press?"),
        ("How do I turn the press on?", "How do I turn the press of\u200bf?"),
        ("How do I restore the settings of the press?", "How do I back up the settings of the press?"),
        ("How do I unlock the lever of the press?", "How do I lock the lever of the press?"),
        ("How do I lock the lever of the press?", "How do I unlock the lever of the press?"),
        ("How do I turn off the lever of the press?", "How do I turn on the lever of the press?"),
        ("How do I turn the lever of the press off?", "How do I switch on the lever of the press?"),
        ("How do I turn off the lever of the press?", "How do I enable the lever of the press?"),
        ("How do I log out of the press?", "How do I log in to the press?"),
        ("How do I opt out of the tests of the press?", "How do I opt in to the tests of the press?"),
        ("How do I scale down the press?", "How do I scale up the press?"),
        ("How do I resume the press?", "How do I pause the press?"),
        ("How do I delete one lever of the press?", "How do I delete all levers of the press?"),
        ("How do I reset my password of the press?", "How do I reset the press password of all users?"),
        ("How do I delete the press account of another member?", "How do I delete my own account of the press?"),
        ("How do I share the press with nobody but me?", "How do I share the press with everybody?"),
        ("How do I make the press private?", "How do I make the press public?"),
        ("How do I erase the press?", "How do I move the press?"),
        ("How do I move wheels from the mill to the press?", "How do I move wheels from the press to the mill?"),
        ("How do I turn on the press?", "How do I turn the press on? How do I break it?"),
        ("How do I log out of the press?", "How do I login to the press?"),
        ("How do I log a member out of the press?", "How do I log a member in to the press?"),
        ("How do I sign up to the press?", "How do I sign in to the press?"),
        ("Is the press faster than the mill?", "Is the mill faster than the press?"),
        ("How do I convert wheels to levers?", "How do I convert levers to wheels?"),
        ("How do I copy wheels to the press?", "How do I copy wheels from the press?"),
        ("Is the press oiled before the start?", "Is the press oiled after the start?"),
        ("How do I delete one wheel of the press?", "How do I delete all wheels of the press?"),
        ("How do I delete the press of another member?", "How do I delete my own press?"),
        ("How do I reset my press?", "How do I reset the press of all members?"),
        ("How do I grant access to the press?", "How do I revoke access to the press?"),
        ("How do I rename the lever of the press?", "How do I delete the lever of the press?"),
        ("How do I enable the press?", "How do I disable the press, so that I can enable it later?"),
        ("Does the lever of the press move the wheel?", "Does the wheel move the lever of the press?"),
        ("How do I copy the old wheel over the new wheel?", "How do I copy the new wheel over the old wheel?"),
        ("How do I repair the press after I broke the levers?", "How do I repair the levers after I broke the press?"),
        ("Which levers can I not pull?", "Which levers can I pull?"),
        ("Which levers can I pull?", "Which levers can't I pull?"),
        ("Can I pull the lever while no wheels are moving?", "Can I pull the lever while wheels are moving?"),
        ("Kann ich den Hebel nicht ziehen?", "Kann ich den Hebel ziehen?"),
        ("Geht der Hebel nicht?", "Geht der Hebel?"),
        ("Is it safe to pull the lever?", "Is it possible to pull the lever?"),
        ("Is it right to pull the lever?", "Is it wrong to pull the lever?"),
        ("Why is the lever pulled?", "How often is the lever pulled?"),
        ("Who has pulled the lever?", "When was the lever pulled?"),
        ("How many levers are pulled?", "Why are levers pulled?"),
        ("How do I reset the database of the press?", "How do I reset the staging database of the press?"),
        ("How do I delete the lever of all members?", "How do I delete the lever of a member?"),
        ("How do I reset the live production lever of the press?", "How do I reset the staging lever of the press?"),
        ("How do I undo resetting the lever?", "How do I reset the lever?"),
        ("I reset the lever by accident, how do I get it back?", "How do I reset the lever?"),
        ("Who reset the lever?", "How do I reset the lever?"),
        ("How do I reset a wheel of the lever?", "How do I reset the lever?"),
        ("How do I reset the lever without oil?", "How do I reset the lever?"),
        ("How do I pull levers instead of wheels?", "How do I pull wheels instead of levers?"),
        ("How do I pull levers together with wheels?", "How do I pull levers instead of wheels?"),
        ("How do I pull levers instead of wheels?", "How do I pull levers with wheels?"),
        ("How do I get a lever?", "When do I get a lever?"),
        ("How do I delete the levers of the press?", "How do I delete all of the press except the levers?"),
        ("How do I wipe the press?", "How do I wipe the press apart from the levers?"),
        ("How do I move the owner of the press?", "How do I move everybody of the press but the owner?"),
        ("Can I pull anything other than the lever?", "Can I pull the lever?"),
        ("How do I remove the press and keep the levers?", "How do I remove the press?"),
        ("How do I move the press so that no lever is lost?", "How do I move the press?"),
        ("How do I delete the press with the wheel?", "How do I delete the press?"),
        ("How do I delete the lever of somebody else?", "How do I delete my lever?"),
        ("How do I keep guests from pulling the lever?", "How do I let guests pull the lever?"),
        ("How do I merge main into the lever branch?", "How do I merge the lever branch into main?"),
        ("How do I roll out the press?", "How do I roll back the press?"),
        ("How do I give a lever?", "How do I get a lever?"),
        ("Are levers over 18 pulled?", "Are levers under 18 pulled?"),
        ("Can they pull my lever?", "Can I pull their lever?"),
        ("Can they oil me with the press?", "Can I oil them with the press?"),
        ("Can I see your lever?", "Can you see my lever?"),
        ("Do I have to pull the lever?", "Can I pull the lever?"),
        ("Should I pull the lever?", "Do I have to pull the lever?"),
        ("Who can change my lever?", "Who can see my lever?"),
        ("Whose lever can I pull?", "Who can pull my lever?"),
        ("Is @kim one of the levers?", "Is @tess one of the levers?"),
        ("What does `press -f` do?", "What does `press -n` do?"),
        ("Can I run `press clean --all`?", "Can I run `press clean`?"),
        ("Is the press written in C++?", "Is the press written in C?"),
        ("How do I stop the press if people pull levers?", "How do I stop the press if nobody pulls levers?"),
        ("How do I stop the press?", "How do I stop the press if nobody pulls levers?"),
        ("How do I move the press?", "How do I move the press when it is empty?"),
        ("How do I reset the press?", "How do I reset the press in the emulator?"),
        ("How do I run the upgrade of the press?", "How do I test the upgrade of the press?"),
        ("Can I start the press after a backup?", "Can I start the press during a backup?"),
        ("Is it normal that the mill calls me and asks for a code?", "Is it normal that the mill calls me?"),
        ("Can I give my lever to support?", "Can I give my lever to my wife?"),
        ("How many wheels may my child take?", "How many wheels may I take?"),
        ("Can I unplug the main wheel?", "Can I unplug the spare wheel?"),
        ("How do I do the upgrade of the press?", "How do I test the upgrade of the press?"),
        ("How do I replace a wheel with the main lever?", "How do I replace the main lever with a wheel?"),
        ("How do I pull the lever?", "Why do I pull the lever?"),
        ("Should I pull the lever?", "How do I pull the lever?"),
        ("Is the lever safe with a full mill?", "Is the lever unsafe with a full mill?"),
        ("Is the lever good after an hour in the mill?", "Is the lever spoiled after an hour in the mill?"),
        ("Will the mill fix the lever?", "Will the mill break the lever?"),
        ("Is the press free?", "Is the press free for students?"),
        ("Is it OK to leave the press on while away?", "Is it OK to leave the press on overnight?"),
        ("Which oil do I give the old press?", "Which oil do I give the press?"),
        ("How do I pull the lever?", "Do I have to pull the lever?"),
        ("How do I factory reset the press remotely?", "How do I factory reset the press?"),
        ("What dose of oil does the left press get?", "What dose of oil does the press get?"),
        ("Are traces of oil in the press?", "Is oil in the press?"),
        ("How do I lock the press with somebody else's key?", "How do I lock the press with my own key?"),
        ("Wie schalte ich die Presse im Labor ein?", "Wie schalte ich die Presse im Labor aus?"),
        ("Wie schalte ich die Presse wieder an?", "Wie schalte ich die Presse wieder ab?"),
    ],
)
def test_the_answer_to_an_opposite_question_is_never_sure(asked: str, earlier: str) -> None:
    assert judge_team_answers(asked, [said(earlier)], [CLOSE])[0].level is Level.POINT
    assert judge_team_answers(asked, [said(asked)], [CLOSE])[0].level is Level.ANSWER


@pytest.mark.parametrize(
    ("asked", "earlier"),
    [
        ("How do I delete a lever?", "How do I remove a lever?"),
        ("How do I make a backup of the lever?", "How do I back up the lever?"),
        ("How do I turn the lever of the press off?", "How can I switch off the lever of the press?"),
        ("How do I log in to the press?", "How do I log in to the press in the mill?"),
        ("How do I reset my password of the press?", "How do I reset the password of the press?"),
        ("How do I delete all levers of the press?", "How do I delete all my levers of the press?"),
        ("How do I move wheels from the mill to the press?", "How can I move a wheel to the press from the mill?"),
        ("How do I stop the lever of the press?", "How do I stop the lever of the press? Any ideas what is wrong?"),
        ("How do I log in to the press?", "I cannot figure out how to log in to the press."),
        ("How do I disable the lever?", "How do I disable the lever on the press?"),
        ("How do I disable the lever?", "How do I turn off the lever?"),
        ("How do I reset my press?", "Hi everyone, how do I reset the press? It does not work at all."),
        ("How do I see all my wheels?", "How do I see my wheels?"),
        ("How do I see my wheels?", "How do I see all my wheels?"),
        ("Is there a way to oil the wheel and stop the press?", "How to stop the press and oil the wheel?"),
        ("Which lever moves the press with wheels and oil?", "Which lever moves the press and its wheels with oil?"),
        ("How can I set the press up in the mill?", "Setting up the press in the mill"),
        ("Which lever does the press have on Linux?", "Which lever does the press have on Linux or Windows?"),
        ("Which lever is pulled on a Mac?", "Which lever is pulled on macOS?"),
        ("Which lever is pulled on Linux?", "Which lever is pulled on Windows or Linux?"),
        ("Which lever is pulled in version 4?", "Which lever is pulled?"),
        ("Which lever is pulled?", "Which lever is pulled in version 4?"),
        ("Who pulls it: stop it, then start it again?", "Who pulls it, to start it?"),
        ("After the start, can the lever be pulled?", "Can I pull the lever after the start?"),
        ("How do I see the wheel of the lever of the press?", "How do I see the press lever wheel?"),
        ("Why does the lever of the press not move?", "The lever of the press does not move"),
        ("What do I do if the lever of the press moves?", "The lever of the press won't let me move it?"),
        ("How do I sort levers, wheels and presses?", "How do I sort presses, wheels and levers?"),
        ("How often is the lever pulled?", "When is the lever pulled?"),
        ("How do I reset the live production lever?", "Trouble with resetting the lever in production"),
        ("I want to reset the lever, how do I do that?", "How do I reset the lever?"),
        ("How do I reset the lever of the press?", "How do I reset the press lever?"),
        ("Is permission denied to pull the lever?", "The press won't let me pull the lever"),
        ("Can you pull your own lever?", "Can I pull my own lever?"),
        ("Is it possible to pull the lever?", "Can I pull the lever?"),
        ("Could you let me know how to pull the lever?", "How do I pull the lever?"),
    ],
)
def test_other_words_for_the_same_matter_cost_nothing(asked: str, earlier: str) -> None:
    assert judge_team_answers(asked, [said(earlier)], [CLOSE])[0].level is Level.ANSWER


@pytest.mark.parametrize(
    ("asked", "earlier", "answer", "is_another"),
    [
        ("How do I restore the press?", "How do I delete the press?", "Drop it. Nobody can restore it.", True),
        ("How do I hinge the lever?", "How do I unhinge the lever?", "Pull it. You may hinge it later.", True),
        ("How do I oil the lever on Linux?", "How do I oil the lever on Windows?", "As on Linux: from above.", False),
        ("How do I oil the wheel?", "How do I oil the lever?", "Like the wheel: from above.", False),
        ("How do I oil the wheel?", "How do I oil the lever?", "From above. Not the wheel.", True),
        ("How do I stop the wheel?", "How do I stop the lever?", "Pull it, the wheel goes on by itself.", True),
        ("How do I stop the wheel?", "How do I stop the lever?", "Pull it. The same for the wheel.", False),
        ("Can I pull it while it rains in May?", "Can I pull it when it rains?", "Yes, in all months.", True),
        ("Can I pull it while it rains in May?", "Can I pull it when it rains?", "Yes, in May, too.", False),
        ("Do adults pull the lever?", "Do children pull the lever?", "Yes. Adults pull the wheel.", True),
        ("Do adults pull the lever?", "Do children pull the lever?", "Yes, both do, adults and children.", False),
        ("Does the cloud press pull the lever?", "Does the press pull the lever?", "Yes, by its wheel.", True),
        ("Does version B pull the lever?", "Does version A pull the lever?", "Yes. Version B came later.", True),
        ("Which lever does version 4 pull?", "Which lever does version 3 pull?", "The left. 4 is new.", True),
        ("Which lever does version 4 pull?", "Which lever does version 3 pull?", "The left, both 3 and 4.", False),
        ("How do I oil the wheel?", "How do I oil the lever?", "From above. The wheel is next to it.", True),
        ("How do I oil the wheel?", "How do I oil the lever?", "From above. That goes for the wheel.", False),
        ("How do I turn off the left wheel?", "How do I turn off the wheel?", "Pull the left lever.", True),
        ("How do I oil the wheel?", "How do I oil the lever?", "From above. The wheel would need other oil.", True),
    ],
)
def test_an_answer_may_name_another_scope_but_names_the_opposite_act_to_warn(
    asked: str, earlier: str, answer: str, *, is_another: bool
) -> None:
    assert asks_something_else(asked, earlier, answer) is is_another


def test_what_was_answered_word_for_word_goes_first() -> None:
    asked, turned = "Does the lever move the wheel?", "Does the wheel move the lever?"
    old, new = said(turned), said(asked, section=1)
    assert [each.hit for each in judge_team_answers(asked, [old, new], [CLOSE, CLOSE])] == [new, old]
    assert judge_team_answers(turned, [old, new], [CLOSE, CLOSE])[0].hit == old
    same = said(asked.replace("the wheel", "a wheel"))
    assert judge_team_answers(asked, [same, new], [CLOSE, CLOSE])[0].hit == new, "an article may be all the difference"


@pytest.mark.parametrize(
    ("asked", "earlier"),
    [
        ("How do I reset my password?", "How do I enable the lanternfish option? How do I reset my password?"),
        ("How do I restore a backup?", "How do I enable the lanternfish option? Can I restore a backup on Windows?"),
        (
            "How do I reset my password?",
            "How do I enable the lanternfish option? (reset password login account backup)",
        ),
        ("How do I reset my password?", "How do I reset my password? Never mind, solved. The lever is stuck now."),
        ("How do I reset my password?", "How do I reset my password? Hat sich erledigt. Der Hebel klemmt jetzt."),
        ("How do I reset my password?", "How do I reset my password? I also want to pull the lever of the press."),
        ("How do I reset my password?", "I need to pull the lever of the press. How do I reset my password?"),
        ("How do I clear the press?", "How do I clear the press? It's a test box."),
        ("How do I clear the press?", "How do I clear the press? No need to keep anything."),
        ("How do I clear the press?", "My press is throwaway. How do I clear the press?"),
        ("How do I clear the press?", "We lost all data anyway. How do I clear the press?"),
        ("How do I clear the press?", "I want to destroy everything. How do I clear the press?"),
        ("How do I clear the press?", "I'm on the very old release. How do I clear the press?"),
        (
            "How do I reset the lanternfish cache on the server?",
            "How do I reset the lanternfish cache on the server? How do I move it to the server?",
        ),
        (
            "How do I repair the lanternfish service?",
            "How do I switch the lanternfish service to the nightly channel? How do I repair the lanternfish service?",
        ),
    ],
)
def test_the_answer_to_a_question_with_others_is_not_sure_to_be_to_one_of_these(asked: str, earlier: str) -> None:
    (found,) = judge_team_answers(asked, [said(earlier)], [CLOSE])
    assert found.level is Level.POINT


@pytest.mark.parametrize(
    ("asked", "earlier"),
    [
        ("How do I reset my password?", "I forgot my password. How do I reset it? Thanks for any help."),
        ("The plugin fails on Windows", "I installed the plugin on Windows and it fails. What am I doing wrong?"),
        ("How do I reset my password?", "Can I reset my password? How do I reset the password?"),
        ("How do I reset my password?", "How do I reset my password? Is there any command to reset it?"),
        ("Where do I change my secret word?", "How do I reset my password? I forgot it."),
        ("How do I reset my password?", "I want to get into the shop again. How do I reset my password?"),
        ("How do I reset my password?", "Login works again. How do I reset my password?"),
    ],
)
def test_a_question_in_several_sentences_is_one_question(asked: str, earlier: str) -> None:
    (found,) = judge_team_answers(asked, [said(earlier)], [CLOSE])
    assert found.level is Level.ANSWER


@pytest.mark.parametrize(
    "seen", ["How do I pull the l\u0435ver?", "❌ How do I pull the lever?", "How do I :un:pull the lever?"]
)
def test_a_word_with_letters_of_two_alphabets_or_a_picture_is_not_the_one_that_people_read(seen: str) -> None:
    (found,) = judge_team_answers("How do I pull the lever?", [said(seen)], [CLOSE])
    assert found.level is Level.POINT


@pytest.mark.parametrize(
    ("asked", "is_for_others"),
    [
        ("What is the command for the mill?", True),
        ("What is the command to reset the mill to factory settings?", False),
    ],
)
def test_an_answer_that_takes_up_what_stands_beside_the_question_is_for_those_of_whom_that_is_true(
    asked: str, *, is_for_others: bool
) -> None:
    earlier = "Reset everything to factory settings\nWhat is the command for the mill?"
    answer = "Run `mill factory --reset-all`."
    assert asks_only_among_others(asked, earlier, answer) is is_for_others


def test_what_is_no_answer_is_never_sure() -> None:
    assert judge_team_answers(ASKED, [said("which lever is pulled?", quotable=False)], [CLOSE])[0].confidence == 0
    assert judge_team_answers(ASKED, [], []) == []


def test_levels_begin_where_they_are_said_to() -> None:
    assert [level_of(each) for each in (0.0, 0.09, 0.1, 0.49, 0.5, 1.0)] == [
        Level.SILENCE,
        Level.SILENCE,
        Level.POINT,
        Level.POINT,
        Level.ANSWER,
        Level.ANSWER,
    ]
