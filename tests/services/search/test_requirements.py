"""What a question asks for, and whether a passage can have it."""

from __future__ import annotations

import pytest

from services.search import (
    Place,
    advises_against,
    is_about_opposite,
    is_for_another,
    is_of_another_version,
    is_outdated,
    is_too_general,
    meets,
    notices_in,
    requirements_of,
    warnings_in,
)


@pytest.mark.parametrize(
    ("question", "has_it", "has_it_not"),
    [
        ("which node version does it need?", "Node 20.19 or 22.12 is required.", "Node is a runtime."),
        ("how long is the session cookie valid?", "It expires after 31 days.", "Changed in 2.3: not set by default."),
        ("how long is version 3.2 supported?", "3.2: supported until 31 March 2027.", "New in 3.2: notices."),
        ("how often are sources checked?", "They are checked every hour.", "There are 3 kinds of sources."),
        ("how many agents can it serve?", "At most 40 agents.", "Agents report to the server."),
        (
            "how many workers should it have?",
            "Start two workers for each core.",
            "Workers are new in 2.3. A pool of them helps.",
        ),
        (
            "how many of my nested folders are read?",
            "At most 40 folders are read.",
            "Since 3.1 a folder is read once more, and files too.",
        ),
        ("which port does the server use?", "It listens on 8443.", "It listens on a port, since 2.3."),
        ("what's the default port?", "Open http://localhost:5000 then.", "There is 1 default."),
        ("how large can an upload be?", "Uploads end at 16 MB.", "Uploads are new in 2.3."),
        ("when will 4.0 come out?", "4.0 is planned for May 2027.", "4.0 removes the pool."),
        (
            "what does --prune-empty do?",
            "With `--prune-empty` folders without files go.",
            "Folders without files stay.",
        ),
        ("what does E4012 mean?", "E4012: the disk is full.", "Error codes begin with E."),
        ("what is server.close() for?", "Call `server.close()` at the end.", "A server is opened."),
        (
            "which version of python does httpx need",
            "HTTPX requires Python 3.9+.",
            "HTTP/2 has version 2 of the protocol.",
        ),
        ("which node version does vite 7 need", "Node.js 20.19 or 22.12 is needed.", "The moduleGraph of 7 is mixed."),
        ("what is the minimum version of Go?", "It needs at least Go 1.21.", "Going on to 1.21, it works."),
    ],
)
def test_what_is_asked_for_is_in_what_is_quoted(question: str, has_it: str, has_it_not: str) -> None:
    assert meets(has_it, requirements_of(question))
    assert not meets(has_it_not, requirements_of(question))


def test_words_that_are_nothing_without_their_endings_are_not_counted() -> None:
    required = requirements_of("how many seats, and how many ie licences can I have?")
    assert required.counted == {"seat", "licence"}
    assert meets("There are no more than 40 licences.", required)
    assert not meets("Nothing in this text has a number beside what is counted, but for 40.", required)


@pytest.mark.parametrize(
    "question", ["which .. version is it?", "what version of -- is needed?", "which ... versions?"]
)
def test_a_version_of_nothing_is_a_version_of_anything(question: str) -> None:
    assert not requirements_of(question).versions_of
    assert meets("It is 3.", requirements_of(question))


def test_a_question_without_either_asks_for_nothing_of_the_kind() -> None:
    assert meets("Anything.", requirements_of("how do I restore a file?"))


@pytest.mark.parametrize(
    "heading", ["Introduction", "Getting Started", "Welcome to Ferrygate!", "Overview", "Contents"]
)
def test_an_introduction_answers_nothing_particular(heading: str) -> None:
    assert is_too_general(("Ferrygate", heading), "how do I limit the upload rate?")
    assert not is_too_general(("Ferrygate", heading), "what is Ferrygate?")
    assert not is_too_general(("Ferrygate", heading), "how do I get started?")
    assert not is_too_general((heading, "Limits"), "how do I limit the upload rate?")
    assert not is_too_general((), "how do I limit the upload rate?")


@pytest.mark.parametrize(
    "heading", ["Things you must never do", "Deprecated", "What no longer works", "Common mistakes", "Old instructions"]
)
def test_what_is_advised_against_is_known_by_any_heading(heading: str) -> None:
    assert advises_against(("Guide", heading, "Rotate the keys"), "how do I rotate the keys?")
    assert not advises_against(("Guide", "Rotate the keys"), "how do I rotate the keys?")
    assert not advises_against(("Guide", "Do not copy the keys"), "can I copy the keys?")
    assert not advises_against(("Guide", heading), "which common mistakes are deprecated?")


@pytest.mark.parametrize(
    "heading",
    [
        "Common mistakes when rotating the keys",
        "Deprecated: rotating the keys by hand",
        "How not to rotate the keys",
        "Dangerous ways to rotate the keys",
        "Wrong way to rotate the keys",
        "Keys (2019, superseded)",
        "~~Rotate the keys~~",
    ],
)
def test_what_names_the_thing_and_advises_against_it_is_no_way_to_do_it(heading: str) -> None:
    assert advises_against(("Guide", heading), "how do I rotate the keys?")
    assert not advises_against(("Guide", heading), "why does rotating the keys fail?")
    assert not advises_against(("Guide", heading), "which ways to rotate the keys are wrong?")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("Status: rejected", True),
        ("**Deprecated since 3.0:** This page is about 2.x.", True),
        ("This guide has been superseded by another.", True),
        ("**This page is superseded by 7.**", True),
        ("How to keep outdated clients running.", False),
        ("", False),
    ],
)
def test_a_page_says_at_its_head_that_it_is_out_of_date(head: str, expected: bool) -> None:
    assert is_outdated(head) is expected


def test_notices_are_bold_paragraphs_that_warn_and_what_holds_for_the_page() -> None:
    danger, horses = "**Danger:** Never run this on a live system.", "All doses on this page are for horses."
    assert notices_in(f"Never mind.\n\n{danger}\n\n**Note:** It is quick.\n\n{horses}") == [danger, horses]


def test_warnings_are_sentences_of_the_prose() -> None:
    text = "Run it.\n\n```\n# never stop\n```\n\nNever do this twice. It is fine. All files are lost."
    assert warnings_in(text) == ["Never do this twice.", "All files are lost."]
    assert not warnings_in(f"Never {'do it ' * 60}.")
    assert len(warnings_in("⚠️ Drain it. Else it explodes. Important: wear gloves. Make sure that it is cold.")) == 4


@pytest.mark.parametrize(
    ("question", "heading", "text"),
    [
        ("How do I turn off the alarm?", "Bells › Turn on the alarm", "Open the settings and press F9."),
        ("How do I turn off the alarm?", "Alarm", "To turn on the alarm, press F9."),
        ("How do I disable the cache?", "Cache", "Enable the cache with `cache: true`."),
        ("How do I log out of the console?", "Log in", "Open the console and type your name."),
        ("How do I opt out of tracking?", "Tracking", "To opt in to tracking, open the settings."),
        ("How do I delete one message?", "Delete all messages", "Press F9."),
        ("How do I delete one message in a channel?", "Messages", "To delete all messages of a channel, press F9."),
        ("How do I reset my password?", "Reset the password of all users", "Run `users reset`."),
        ("How do I share a project with nobody but me?", "Share a project with everybody", "Press F9."),
        ("How do I migrate from MySQL to Postgres?", "Migrate from Postgres to MySQL", "Run `migrate`."),
        ("How do I deploy without Docker?", "Deploy with Docker", "Run `docker compose up`."),
        ("How do I enable two-factor sign-in?", "Disable two-factor sign-in", "Wipe it. Users enable it again."),
        ("How do I restore the database?", "Delete the database", "Drop it. Nobody can restore it."),
        ("How do I reset the production server?", "Reset the staging server", "To reset the staging server, drop it."),
        ("How do I stop the server?", "Stop the server if nobody is there", "Run `kill -9`."),
        ("How do I format the disk of my machine?", "Format the disk of a new machine", "Run `format --yes`."),
        ("How do I run an upgrade?", "Test an upgrade", "Run `upgrade --wipe` on a copy."),
        ("How do I reset the app?", "Reset the app in the emulator", "Press F9."),
        ("How do I replace a replica with the master?", "Replace the master with a replica", "Press F9."),
        ("How do I reset the production server?", "Guide › Staging › Reset the server", "Press F9."),
        ("How do I upgrade the schema of version 2?", "Guide › Version 1 › Upgrade the schema", "Press F9."),
        ("How do I delete the logs?", "Delete everything except the logs", "Run `purge --keep logs`."),
        ("How do I block friends?", "Block everybody but friends", "Press F9."),
        ("How do I keep guests from seeing files?", "Let guests see files", "Press F9."),
        ("How do I uninstall the app and keep my files?", "Uninstall", "Press F9. All files are removed."),
        ("How do I roll out a release?", "Roll back a release", "Press F9."),
        ("May people over 18 join?", "Under 18", "People under 18 may not join."),
        ("I deleted it, how do I get the data back?", "Delete the data", "To delete the data, press F9."),
        ("How do I prevent users from deleting the data?", "Deleting the data", "To delete the data, press F9."),
        ("Somebody deleted the data, what now?", "Delete the data", "To delete the data, press F9."),
        ("Who has deleted the data?", "Delete the data", "To delete the data, press F9."),
        ("Why was the data deleted?", "Delete the data", "To delete the data, press F9."),
        ("How do I undo the removal of a machine?", "Remove a machine", "To remove a machine, press F9."),
        ("How do I delete the pinned files?", "Keep one file for ever", "Pin it."),
        ("How do I rename a vault?", "Move a vault into a bucket", "Press F9 beside the vault."),
        ("How do I reset the live data?", "Reset the test data", "It is filled from the live data by itself."),
        ("Can I unplug the main node?", "Unplug the spare node", "You can unplug it, as the main node goes on."),
        ("Can I restart the live server at any time?", "Restart the test server", "Restart it at any time."),
        ("How do I stop the data being wiped?", "Files › Wipe the data", "Press F9, and the data is wiped."),
        ("How do I undo a restore?", "Restore a snapshot", "Press F9. It overwrites the data."),
        ("How do I remove all users?", "Removing a user", "Press F9."),
    ],
)
def test_a_section_about_the_opposite_is_known(question: str, heading: str, text: str) -> None:
    assert is_about_opposite(question, heading.split(" › "), text)


@pytest.mark.parametrize(
    ("question", "heading", "text"),
    [
        ("How do I turn off the alarm?", "Turn off the alarm", "After you turn on the alarm, press F8."),
        ("How do I turn off the alarm?", "Turning the alarm on and off", "Press F9."),
        ("How do I turn off the alarm?", "Alarm", "Turn on the alarm with F9. Turn it off with F8."),
        ("How do I turn off the alarm?", "Alarm", ""),
        ("How do I log out of the console?", "Console", "Log in to the console: F9.\nLog out of the console: F8."),
        ("How do I disable the cache?", "Enable the cache", "To disable it, set `cache: false`."),
        ("How do I change the port of the server?", "Set the port of the server", "Put it into `port`."),
        ("How do I reset the production server?", "Reset the server", "To reset the server, drop it."),
        ("How do I drop the data?", "Delete the data", "Press F9."),
        ("When is the data deleted?", "Deletion of data", "After 30 days."),
        ("Is the data deleted after a month?", "Deletion of data", "After 30 days."),
        ("How do I reset the server?", "Guide › Staging › Reset the server", "Press F9."),
        ("How do I upgrade the schema of version 1?", "Guide › Version 1 › Upgrade the schema", "Press F9."),
        ("How do I uninstall the app and keep my files?", "Uninstall", "Press F9. Files are kept with `--keep`."),
        ("How do I get rid of the data?", "Delete the data", "Press F9."),
        ("Can I delete the data?", "Delete the data", "Press F9."),
        ("How do I keep the data?", "Keep the data", "Press F9. It is not deleted then."),
        ("How do I undo a restore?", "Restore a snapshot", "Press F9. To revert it, press F8."),
        ("How do I remove all users?", "Removing users", "Select all of them and press F9."),
        ("does it collect telemetry?", "Does it send telemetry?", "No, it contacts nobody."),
        ("How do I reset my password?", "Passwords", "To reset the password of every user, run `users reset`."),
        ("How many computers can one server take?", "Machines for each server", "Up to 500 can be paired."),
        ("Can I get files back without losing those there?", "Files", "Files that were there are kept."),
        (
            "does the agent back up archives that are open?",
            "Shadow copies",
            "Open files such as archives are read from a shadow copy.",
        ),
        ("upgrading from 2.9, can I jump to 3.4?", "Upgrade from 2.9 to 3.x", "Go to 3.0 first."),
    ],
)
def test_a_section_that_has_both_or_neither_is_none_about_the_opposite(question: str, heading: str, text: str) -> None:
    assert not is_about_opposite(question, heading.split(" › "), text)


@pytest.mark.parametrize(
    ("question", "place", "text", "other"),
    [
        ("How many tablets do children take?", "Dosage › Adults", "Take two tablets.", "Dosage › Children"),
        ("How many tablets can I give my dog?", "Dosage › Adults", "Take two tablets.", "Dosage › Dogs"),
        ("How does a guest delete the workspace?", "Roles › Owner", "Delete the workspace with F9.", "Roles › Guest"),
        ("How do I drop the schema in production?", "Staging", "Drop the schema with F9.", "Staging › Production"),
        ("How do I reset it in version 5?", "Guide › Version 4 › Reset", "Press F9.", "Guide › Version 5 › Keys"),
        ("How do I wire it with the breaker on?", "Guide › Wires", "Brown to L.", "Guide › Wires › The breaker"),
        ("How do I pair the oven?", "lamp/Pairing", "To pair the device, press F9.", "oven/Pairing"),
        ("Wie viele Tabletten nehmen Kinder?", "Dosis › Erwachsene", "Nehmen Sie zwei Tabletten.", "Dosis › Kinder"),
        ("Which wire goes to the negative terminal?", "Pump › Positive terminal", "The red wire goes there.", ""),
        ("How many seats are in the Enterprise plan?", "Price › Pro plan", "There are 50 seats.", ""),
        ("To what do I set the dial of Model C?", "Heater › Model A", "Set the dial to 90.", ""),
        ("At which temperature do I keep Vaccine Y?", "Fridge › Vaccine X", "Keep it at -70 degrees.", ""),
        ("What is the limit in version 5?", "Guide › Version 4", "The limit is 9.", ""),
        ("Can the folder data be deleted?", "Disk › Safe to delete", "The folder cache can be deleted.", ""),
    ],
)
def test_a_section_for_something_else_is_known(question: str, place: str, text: str, other: str) -> None:
    assert is_for_another(question, _place(place), text, [_place(place), _place("Other › Things"), _place(other)])


@pytest.mark.parametrize(
    ("question", "place", "text", "other"),
    [
        ("How many tablets do children take?", "Dosage › Adults", "Children take one tablet.", "Dosage › Children"),
        ("How many tablets do children take?", "Dosage › Children", "Take one tablet.", "Dosage › Adults"),
        ("How many tablets do I take?", "Dosage › Adults", "Take two tablets.", "Dosage › Children"),
        ("How do I configure timeouts?", "Guide › Timeouts", "Set `timeout: 5`.", "Guide › Configuration"),
        ("How do I install it?", "Guide › Linux", "Run `apt-get`.", "Guide › Installing on Windows"),
        ("How do I wire the pump?", "Guide › Wires › Brown", "To L.", "Guide › Wires"),
        ("How do I pair the toaster?", "lamp/Pairing", "To pair the device, press F9.", "oven/Pairing"),
        ("Is the installer a virus?", "Tool on Windows › Defender", "It is no virus.", "Installing Tool › Ports"),
        ("Which scope does a grafana token need?", "API tokens › Scopes", "The scope `read`.", ""),
        ("Does it collect telemetry?", "FAQ › Does it send telemetry?", "No.", ""),
        ("What is the limit in version 5.1?", "Guide › Version 5", "The limit is 9.", ""),
        ("How do I reset the pump?", "Guide › Pumps", "", ""),
    ],
)
def test_a_section_for_what_is_asked_is_none_for_something_else(
    question: str, place: str, text: str, other: str
) -> None:
    assert not is_for_another(question, _place(place), text, [_place(place), _place("Other › Things"), _place(other)])


@pytest.mark.parametrize(
    ("question", "place", "text", "other", "expected"),
    [
        ("How do I reset it in v2?", "v1/Reset", "Press F9 to reset it.", "v2/Reset", True),
        ("How do I reset it in v2?", "v2/Reset", "Press F9 to reset it.", "v1/Reset", False),
        ("How do I reset it in version 2.1?", "v2/Reset", "Press F9 to reset it.", "v1/Reset", False),
        ("How do I reset it?", "v1/Reset", "Press F9 to reset it.", "v2/Reset", True),
        ("How do I reset it?", "v2/Reset", "Press F9 to reset it.", "v1/Reset", False),
        ("How do I reset it?", "v2/Reset", "Press F9 to reset it.", "v3-beta/Reset", False),
        ("How do I reset it?", "v3-beta/Reset", "Press F9 to reset it.", "v2/Reset", True),
        ("How do I reset it?", "v1/Reset", "Press F9 to reset it.", "v2/Keys", False),
        ("How long do tokens live?", "Changes › 1.0.0", "Tokens live a day.", "Changes › 2.0.0", True),
        ("How long do tokens live?", "Changes › Unreleased", "Tokens live a day.", "Changes › 2.0.0", True),
        ("How long do tokens live?", "Changes › 2.0.0", "Tokens live a day.", "Changes › Unreleased", False),
        ("Since when do tokens live a day?", "Changes › 1.0.0", "Tokens live a day.", "Changes › 2.0.0", False),
        ("Is TLS 1.3 supported?", "Changes › 2.0.0", "TLS 1.3 is supported.", "Changes › 1.0.0", False),
        ("How do I downgrade to version 2?", "Guide › Downgrade to version 3", "Press F9.", "Guide › Keys", True),
        ("How do I reset it?", "01/Reset", "Press F9 to reset it.", "02/Reset", False),
    ],
)
def test_a_section_of_another_version_is_known(
    question: str, place: str, text: str, other: str, expected: bool
) -> None:
    others = {_place(place): text, _place(other): "How long tokens live: a day. Press F8 to reset it."}
    assert is_of_another_version(question, _place(place), text, others) is expected


def _place(text: str) -> Place:
    folder, _, headings = text.rpartition("/")
    return Place(tuple(filter(None, (folder, *headings.split(" › ")))), 2 if folder else 1)
