"""What of a message of the team is an answer."""

from __future__ import annotations

import pytest

from services.search import is_answer, statements


@pytest.mark.parametrize(
    ("said", "stated"),
    [
        ("mira: What's the whole error?", ""),
        ("Sorry all, fell off my chair.  Reading now.", ""),
        ("one sec", ""),
        ("ok looking...", ""),
        ("Let me check that with the others", ""),
        ("Lemme check something.", ""),
        ("no idea", ""),
        ("You're welcome! :)", ""),
        ("haha. glad to hear", ""),
        ("hmm", ""),
        ("yes", "yes"),
        ("lol no", "lol no"),
        ("No. Everybody pays for the lamp once.", "No. Everybody pays for the lamp once."),
        ("What? No. It is for the lab.", "No. It is for the lab."),
        ("Is it safe? No! Anybody may. Are you kidding? To nothing!", "No! Anybody may. Are you kidding? To nothing!"),
        ("Never: give it to anybody.", "Never: give it to anybody."),
        ("Deprecated: use the old form.", "Deprecated: use the old form."),
        ("Sure, but ask before.", "Sure, but ask before."),
        ("can you put that code in a gist?", ""),
        ("Please share your configuration", ""),
        ("I need to see the whole error in `result.error`.", ""),
        ("brb", ""),
        ("but I have to run so leaving you to Ben", ""),
        ("tobie: you would just refund the charge", "tobie: you would just refund the charge"),
        ("@tobie, use the `--all` option.", "@tobie, use the `--all` option."),
        ("Hey tobie, it expires after 24 hours. Which version are you on?", "Hey tobie, it expires after 24 hours."),
        ("Hm, it is not supported there. Let me know if that helps!", "Hm, it is not supported there."),
        ("Run: docker ps", "Run: docker ps"),
        ("Error: it means that the disk is full.", "Error: it means that the disk is full."),
        ("Why does it fail? Since 4.2 the key is required. Add it.", "Since 4.2 the key is required. Add it."),
        ("It is slow. Why? The disk is full.", "It is slow. Why? The disk is full."),
        ("First line?\n    indented = code\nLast one.", "    indented = code\nLast one."),
        ("Like this:\n```\nwhat is your name?\n```\nok?", "Like this:\n```\nwhat is your name?\n```"),
        ("Das geht nur mit Version 4.", "Das geht nur mit Version 4."),
        ("Welche Version hast du?", ""),
    ],
)
def test_only_what_states_something_is_left(said: str, stated: str) -> None:
    assert statements(said) == stated


@pytest.mark.parametrize(
    ("stated", "enough"),
    [
        ("https://docs.example/refunds", True),
        ("`payment_behavior`", True),
        ("Sessions expire after a day.", True),
        ("It should, yeah", False),
        ("The key and the account are not the ones on which you're trying to create it.", False),
        ("If you're using the old key, replace it in the dashboard.", True),
        ("You're using the wrong key there. The secret key belongs on the server.", True),
    ],
)
def test_an_answer_is_a_link_code_or_a_few_words_that_are_of_use_to_others(stated: str, enough: bool) -> None:
    assert is_answer(stated) is enough
