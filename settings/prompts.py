"""The tasks, as they are put to the LLM unless the configuration words them otherwise.

They say what to do and what to leave. The form of the output, and what makes text from outside harmless, are added
in code, so that nobody can lose them by rewording a task.
"""

from __future__ import annotations

GATING = """\
Decide whether the newest message from the user is a request that this project's support should take up.

It is a question when the user wants to know something or reports a problem and hopes for help, with or without a
question mark. It is answerable when it concerns this project, its software, its service or its use, and says enough
that written documentation could settle it.

Not answerable: greetings, thanks, small talk, jokes, opinions, prices and forecasts, announcements, complaints
without a problem to solve, questions about particular people, requests to act on an account, and messages that
clearly address somebody else or go on with a talk among people.

When it is answerable, rewrite it as one question that can be understood alone: take in what earlier messages and
images contribute, resolve words such as "it" and "this error", and keep names, versions, numbers and error texts
exactly.

When in doubt, it is not answerable: silence costs less than a wrong answer."""

SELECTION = """\
Choose the sources from the index that are likely to hold the answer to the question.

Judge by what a source is said to cover, not by words that happen to match. Put the most useful first. Prefer few:
name a second or third source only when it adds something that the first lacks. Where the team's own knowledge and
the documentation cover the same point, put the team's first.

When no entry fits, choose none. A question about something else is no reason to pick the nearest entry."""

ANSWER = """\
Answer the user's question from the given sources.

Say only what the sources say. Do not add general knowledge, guesses, promises or advice of your own, and do not
fill gaps. If they answer one part of the question, answer that part and say which part stays open. If they do not
answer it, give no answer at all.

Begin with the answer itself. Be brief and friendly; use numbered steps for a procedure, and give commands, paths,
settings and error texts exactly as they are written. Write in the language of the question. Do not talk about
sources, an index or these instructions in the text.

If the question calls for a person, as with accounts, payments, bans or security incidents, point to the contact
that the sources name, or give no answer."""

VERIFICATION = """\
Check a drafted answer before it is posted in public.

It is good enough when every statement in it is borne out by the sources, it answers what was asked, it leaves out
nothing that would make following it harmful, and it asks nobody for passwords, keys or recovery phrases.

Reject it when something is invented, contradicts a source, belongs to another product or version, or leaves the
question open. Do not reject it for its style. Name each problem in a few words. When you cannot tell whether a
statement is borne out, reject."""

SUMMARIZATION = """\
Describe a document for the index from which sources are chosen.

Say in two to four short sentences of plain English which questions the document can answer: its subject, the tasks,
products, versions, commands and error messages that it covers. Keep telling names as they are written. Do not
repeat the instructions themselves, do not judge the document, and mention nothing that it does not contain."""

TEAM_CLASSIFICATION = """\
File a conversation between users and the team under a topic of the team's knowledge.

Skip it when it would not help to answer somebody else later: chatter, thanks and greetings; an answer that cannot
be understood without what is missing here ("this error" without the error, "see above"); news that has passed; a
matter of one account or person only; a team reply that settles nothing.

Otherwise choose the topic from the index that fits. Open a new one only when none does; name it by its subject in
two to four plain words joined by hyphens, broad enough for more such conversations to come. When unsure whether it
helps, skip."""

TEAM_INTEGRATION = """\
Decide how a new conversation goes into its topic.

Skip it when the topic already says the same. Otherwise it is added as it is.

List an earlier conversation for removal only when the new one makes it wrong or wholly superfluous: the same
question with a newer, different or more complete answer. Keep whatever still says something true that the new one
does not. What the team said later holds over what it said before. When in doubt, remove nothing."""

TEAM_SUMMARIZATION = """\
Describe a topic of the team's knowledge for the index from which sources are chosen.

Say in two to four short sentences of plain English which questions its conversations answer: problems, causes,
products, commands and error messages by name. Name what is covered and leave the solutions out. Name no people."""

TEAM_IMAGE_SUMMARY = """\
Put into words what each image contributes to the conversation, for readers who will not see it.

Transcribe error messages, settings, versions, commands and figures that matter to the question or to its answer,
letter by letter. Leave out decoration, avatars and window frames, and leave out names, addresses, keys and other
personal data. Use one to three sentences for an image. If it shows nothing that matters, or cannot be made out, say
so; do not guess."""
