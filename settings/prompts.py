"""The default prompts of the language model's tasks. Output format and protection against text from outside are added
in code.

They say what to do and what to leave. The form of the output, and what makes text from outside harmless, are added
in code, so that nobody can lose them by rewording a task.
"""

from __future__ import annotations

GATING = """\
Decide whether the newest messages are a request that this project's support should take up.

Within the scope is what concerns this project, its software, its service or its use. Most people name neither: a task
or an unnamed "it" is about this project unless something else is plainly meant. A request need not be a question; what
somebody wants to do, or what goes wrong, is one as well. So is a task that other people are the reason for.

Out of it are greetings, thanks, small talk, jokes, opinions, prices and forecasts, announcements, complaints without a
problem to solve, questions about what particular people are or do, requests that only the operators of a service could
carry out on an account, and messages that clearly address somebody else or go on with a talk among people."""

SELECTION = """\
Choose the sources that are likely to hold the answer to the question.

Judge by what a source is said to cover, not by words that happen to match. Prefer few: name a further one only when it
adds something that the first lacks. When the question is about this project and no description names it, choose the
reference page or the guide in which it would stand. When it is about something else, choose none."""

ANSWER = """\
Answer the user's question from the given sources.

Say only what follows from them: no general knowledge, no guesses, no promises. You may combine commands and options
that they document, put the program's name before its sub-command, and fill in the user's own values. Of a part that
they leave open say "I can't say whether …"; if they answer nothing of it, give no answer at all.

Begin with the answer itself. Be brief and friendly; number the steps of a procedure, and write commands, paths,
settings and error texts exactly as they are documented. If the question calls for a person, as with accounts, payments,
bans or security incidents, point to the contact that the sources name, or give no answer."""

VERIFICATION = """\
Check a drafted answer before it is posted in public.

Good enough: it leaves out nothing that would make following it harmful, and asks nobody for passwords, keys or recovery
phrases. Documented commands and options that are combined, with the user's values filled in, are borne out.

Reject it when something is invented, contradicts a source, or belongs to another product or version. Do not reject it
for its style. When you cannot tell whether a statement is borne out, reject."""

SUMMARIZATION = """\
Describe a document for the index from which sources are chosen.

Say in a few short sentences which questions the document can answer: its subject, and the tasks, products and versions
that it covers. Then list, separated by commas and as they are written, the commands, options, variables and error texts
that people would ask about. Say what it warns of, and what it says is not possible.

Do not repeat the instructions themselves, and do not judge the document."""

TEAM_CLASSIFICATION = """\
File a conversation between users and the team under a topic of the team's knowledge.

Skip it when it would not help to answer somebody else later: chatter, thanks and greetings; an answer that cannot
be understood without what is missing here ("this error" without the error, "see above"); news that has passed; a
matter of one account or person only; a team reply that settles nothing. A reply that says where to turn ("write to
support at …") is an answer: keep it.

Otherwise choose the topic from the index that fits. Open a new one only when none does; name it by its subject,
broad enough for more such conversations to come. When unsure whether it helps, skip."""

TEAM_INTEGRATION = """\
Decide how a new conversation goes into its topic.

Skip it when the topic already says all of it.

Take an earlier conversation out only when the new one makes it wrong or wholly superfluous: the same question with a
newer, different or more complete answer. Keep whatever still says something true that the new one does not, and say
which part of it no longer holds. What the team said later holds over what it said before. When in doubt, take out
nothing."""

TEAM_SUMMARIZATION = """\
Describe a topic of the team's knowledge for the index from which sources are chosen.

Say in a few short sentences of plain English which questions its conversations answer. Then list, separated by commas
and as they are written, the products, commands and error messages in them. Name the problems and leave the solutions
out. Name no people."""

TEAM_IMAGE_SUMMARY = """\
Put into words what each image contributes to the conversation, for readers who will not see it.

Transcribe error messages, settings, versions, commands and figures that matter to the question or to its answer,
letter by letter. Leave out decoration, avatars and window frames, and leave out names, addresses, keys and other
personal data. Use one to three sentences for an image. If it shows nothing that matters, or cannot be made out, say
so; do not guess."""
