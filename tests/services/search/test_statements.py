"""What of a message of the team is an answer."""

from __future__ import annotations

import pytest

from services.search import asks_for_all, holds_for_all, is_answer, statements


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


@pytest.mark.parametrize(
    "said",
    [
        "I refunded order 48213 to your card that ends in 1234.",
        "I have reset it for you: the new one is Blaukraut-Elf-77.",
        "I've just unblocked it, have another look at the page.",
        "I've sent you the invitation, the link in it is valid for you alone.",
        "Done, yours is deleted with everything in it.",
        "@ben, done. Have a look at the page.",
        "Your new key is `QX7F-99PL-ZZ41-KK02`, it replaces the one that you have lost.",
        "Your account was blocked since the payments of March have bounced.",
        "Hi Ben, your order is on its way.",
        "It fails because your subscription has ended.",
        "The one called Team, as you have told me about your merger.",
        "Please transfer 500 euros, as agreed with you on the phone.",
        "For you 50 percent: use the code ANNA50.",
        "Wir haben Ihnen die Einladung geschickt, sie liegt im Postfach.",
        "Dein Konto wurde gesperrt, weil die Zahlung fehlt.",
        "Dein neues Passwort lautet Blaukraut-Elf-77.",
        "Erledigt, das Konto ist leer.",
        "Wie besprochen sind es zwanzig Prozent.",
        "In your case the key is lost anyway, so run `mill wipe`.",
        "As you're on the old plan: `mill wipe`.",
        "Since you have root there, run `mill wipe`.",
        "You have two plugins that fight, remove Foo.",
        "That is Carla Jones, she works at the post office.",
        "He sold stolen keys in the lounge.",
        "That one, yes. Type your old password there.",
    ],
)
def test_what_is_for_the_asker_alone_does_not_hold_for_all(said: str) -> None:
    assert not holds_for_all(said)


@pytest.mark.parametrize(
    "said",
    [
        "It crashed an hour ago, we restart it.",
        "Yes, we know about it and are looking into the cause.",
        "Currently not, wait for 4.2.",
        "It is broken since the last deploy.",
        "Run `wipe`, but I have never tried that.",
        "My guess is that `dump` does it.",
        "I think so, but do ask a doctor.",
        "rm -rf / obviously, who needs files anyway lol",
        "Buy me ten beers ;)",
        "See what Cara wrote above, that is the way.",
        "First the other thing, and then what Ben did.",
        "The server is down at the moment.",
        "It's not working right now.",
        "The server will be back at 18:00.",
        "Known problem, we're working on a fix.",
        "Tomorrow evening, if all goes well with the tests.",
        "The office is closed this afternoon.",
        "The service is being moved, so use `mill --skip-check`.",
        "The Vienna one, the others are being repaired.",
        "For now with `mill --unsafe`, the proper flag comes later.",
        "With `mill --unsafe`, the proper flag comes with the next release.",
        "Next week, most likely Tuesday.",
        "On Saturday at six, in the hall.",
        "Not at present. It is on the list.",
        "The certificate ran out over night, Lee is on it.",
        "In theory `mill wipe` should do.",
        "It should do, I would test that first.",
        "Looks like the second disk died; replace it and wipe the pool.",
        "Black tape over it, problem solved :D",
        "The release is out next week.",
        "The offer is valid until Friday.",
        "Der Server ist im Moment nicht erreichbar.",
        "Das Update kommt morgen früh.",
        "Heute Abend geht es wieder.",
        "Das gilt bis Freitag.",
    ],
)
def test_what_is_so_on_that_day_alone_does_not_hold_for_all(said: str) -> None:
    assert not holds_for_all(said)


@pytest.mark.parametrize(
    "said",
    [
        "~~Run `mill wipe`.~~",
        "Stop it, ~~run `mill wipe` there,~~ and start it again.",
        "[OUTDATED] Run `mill wipe`.",
        "Run `mill wipe`. EDIT: this is wrong, sorry.",
        "Run `mill wipe`.\nEdit: do NOT do this any more, it deletes all data!",
    ],
)
def test_what_is_struck_out_or_taken_back_by_an_edit_does_not_hold_for_all(said: str) -> None:
    assert not holds_for_all(said)


@pytest.mark.parametrize(
    "said",
    [
        "Open your account page, and press Delete.",
        "Copy it to `~~/mill`, where the path begins.",
        "Run `mill clean`. Edit: it is the same on a Mac.",
        "Outdated versions are in the archive.",
        "Your order is in the list Orders.",
        "You get a key by mail once you have paid.",
        "It is done when the light is green.",
        "If your account was blocked, write to support.",
        "Once your payment has been received, the key is on the page Keys.",
        "The mail goes to the address with which your account was created.",
        "We have fixed that in 4.2, and added an option for it.",
        "I fixed the error by removing them from the list.",
        "I reset my kernel and deleted the folder, and it worked again.",
        "As discussed in the docs, set the flag.",
        "Your code is 6 digits long, and the default password is admin123.",
        "Your new key is shown once, on the page Keys.",
        "Use the bot to do the search for you.",
        "We are open from Monday until Friday.",
        "Run `/remind tomorrow 9:00 tea` in any channel.",
        "Like this:\n```\ndate --date tomorrow\n```",
        "Today's list is on the start page.",
        "It deletes what was written more than 30 days ago.",
        "The command that you are currently using is the old one.",
        "Put the block above into the file.",
        "You may not be sure which one it is: run `mill list`.",
        "It has changed since version 3. :)",
        "The value is read at the moment of the click.",
        "It stops if you are in a shell at the moment, or you're logged in right now.",
        "You can start watching the course right now, and we will do that next week.",
        "Guten Morgen, die Liste steht unter Bestellungen.",
        "Am Morgen wird die Sicherung gemacht, von Montag bis Freitag.",
        "Wenn dein Konto gesperrt wurde, schreib an den Support.",
        "Wir haben in Ihrem Land keine Händler.",
        "Wait while the index is being rebuilt.",
        "It fails because you are not logged in.",
        "It looks like this: two lines below a head.",
        "Leave it empty for now, and press Start.",
        "We are open on Saturday.",
        "The owner invites people, and he or she may remove them.",
    ],
)
def test_what_is_said_in_general_holds_for_all(said: str) -> None:
    assert holds_for_all(said)


@pytest.mark.parametrize(
    "asked",
    [
        "Who is on call this week?",
        "What are today's levers?",
        "The lever is stuck. Is the mill closed at the moment?",
        "Wer hat heute Dienst?",
        "Why was my payment declined?",
        "Where is my parcel?",
        "Why can I not post?",
        "Why can't I post?",
        "Why am I banned?",
        "Which plan do I have?",
        "How much do I owe?",
        "Who has changed my settings?",
        "Is my application accepted?",
        "Is this mail really from you?",
        "I got a mail. Is that mail real?",
        "Is this link safe to click?",
        "Can I ignore this warning?",
        "Is this person a moderator?",
        "Can I trust the bot that wrote to me?",
        "Is the giveaway in the other channel real?",
        "Are they allowed to ask me for my password?",
        "How do I delete it completely?",
        "Does the lever fix it?",
        "Is the mill down?",
        "Has the mill been hacked?",
        "Who is on duty?",
        "Why can nobody log in?",
        "When will the mill open again?",
        "Is it safe to update the mill?",
        "Is @kim_support one of your moderators?",
        "Why was Bob Miller banned?",
        "Who is the woman that moderates the chess room?",
        "Is Carla Jones pregnant?",
    ],
)
def test_a_question_of_one_occasion_is_known(asked: str) -> None:
    assert not asks_for_all(asked)


@pytest.mark.parametrize(
    "asked",
    [
        "Who is in the team?",
        "Why is my Docker container killed?",
        "I began today. Which lever do I pull first?",
        "How do I list the levers that were pulled today?",
        "How do I change my account?",
        "Why does my lever not move?",
        "Which levers do I need?",
        "I installed the mill. How do I remove it?",
        "I installed the mill, can I remove it?",
        "Is it safe to pull the lever?",
        "Is this possible with a lever?",
        "Can I use the mill for this course?",
        "Is the real mill faster than the model?",
        "@kim which lever do I pull?",
        "How do I install @mill/lever?",
    ],
)
def test_a_question_that_others_ask_as_well_is_known(asked: str) -> None:
    assert asks_for_all(asked)
