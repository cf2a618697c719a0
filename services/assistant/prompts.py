"""The prompts of all steps: of the answer chain, of team knowledge, and of describing sources.

The system text holds what an operator configured and our fixed rules (`services.assistant.rules`). It is the same from
call to call as long as the same kinds of things are shown, so that providers can cache it. Rules about images, the
team's sources, excerpts and files are there only where the prompt has any.

The user text holds what came from outside, in sections that it cannot leave (`services.llm.prompting`). What changes
least comes first. Neither text is ever empty, which some endpoints refuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from model.conversations import Conversation, Role, Turn
from model.words import number_of
from services.assistant import rules as fixed
from services.assistant.citations import conversation_label
from services.knowledge import IndexEntry, pair_ids, topic_for_model
from services.llm import Field, Prompt, conversation_rules, id_field, one_line, section, system
from services.team import Correction, Pair, has_several_askers, utterances_of


def holds_runbook(files: Sequence[str]) -> bool:
    """`files`: what can be searched, each in a few words."""
    if not files:
        return False
    from services.documents import OwnRunbook  # noqa: PLC0415 (takes long, and most questions are without files)

    return any(isinstance(file, OwnRunbook) for file in files)


PAIR_CHARS = 24_000
"""Of one conversation, shown to a model: of a longer one its beginning and its end."""
CONVERSATION_CHARS = 24_000
"""Of the conversation in which a question is asked, shown to a model."""
TURN_CHARS = 6_000
_DAY, _MINUTE = 10, 16
"""Characters of a time stamp."""


def turn_label(place: int) -> str:
    """The label of a turn in a prompt in which turns may be named: `t1` for the first (place 0)."""
    return f"t{place + 1}"


def pair_fields(
    pair: Pair, label: str = "", corrections: Sequence[Correction] = (), *, name_turns: bool = False
) -> Iterable[Field]:
    """The middle of a very long conversation is left out: its subject comes first, its solution last. `label`: what it
    is called, if it may be named; `name_turns`: whether its turns may be.
    """
    if label:
        yield Field("Id", label)
    yield Field("Said", pair.said_at[:_MINUTE].replace("T", " "))
    for each in corrections:
        yield Field(f"Superseded in part on {each.said_at[:_DAY]}", each.what)
    turns = utterances_of(pair)
    texts = [middle_cut(turn.text, TURN_CHARS) for turn in turns]
    room = PAIR_CHARS - sum(map(len, texts))
    at = len(texts) // 2
    first = last = at
    while room < 0:  # grow the gap outwards from the middle, so that both ends stay
        if last - at <= at - first and last < len(texts):
            room += len(texts[last])
            last += 1
        else:
            first -= 1
            room += len(texts[first])
    for number, (turn, text) in enumerate(zip(turns, texts, strict=True)):
        if number == first < last:
            yield Field("Left out", f"{last - first} messages")
        if not first <= number < last:
            yield Field(f"{turn.label} ({turn_label(number)})" if name_turns else turn.label, text)


def middle_cut(text: str, max_chars: int) -> str:
    half = max_chars // 2
    return text if len(text) <= max_chars else f"{text[:half]}\n[…]\n{text[-half:]}"


class Offered(NamedTuple):
    """An entry of the index that selection may choose. `heading`: the one closest to the question, or empty."""

    id: str
    description: str
    heading: str = ""


class Given(NamedTuple):
    """A source as an answer gets it. `is_excerpt`: `text` holds the best sections of a longer page, in their order."""

    id: str
    title: str
    text: str
    is_excerpt: bool = False


@dataclass(frozen=True, slots=True)
class Tasks:
    """Instructions of the operator for each step: scope, tone, what to ignore; `project_introduction` ends each."""

    gate: str = ""
    select: str = ""
    generate: str = ""
    verify: str = ""
    project_introduction: str = ""
    summarise: str = ""
    classify: str = ""
    integrate: str = ""
    summarise_images: str = ""


OFFERED_CHARS = 80
"""Of a description, shown to selection: thirty of them take a third of what an answer may cost."""
REQUEST_CHARS = 2_000
"""Of what the asker wrote, shown to selection beside the rewritten question."""
DESCRIPTION_CHARS, LONGEST_DESCRIPTION_CHARS = 600, 1_200
_SHORT_PAGE_CHARS, _LONG_PAGE_CHARS = 4_000, 40_000
IMAGE_SUMMARY_CHARS = 600
# The lines that open turns in team knowledge. Text inside a turn is indented there, so it cannot pass for one.
_TEAM_TURN = re.compile(r"(?:User(?: [A-Z]| \d+)?|Team)(?: \(to User (?:[A-Z]|\d+)\))?: ")
_SEVERAL_USERS = re.compile(r"^User A: ", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")


def gate(tasks: Tasks, conversation: Conversation, files: Sequence[str] = ()) -> Prompt:
    """`files`: what can be searched besides the sources, each in a few words; not mentioned if there are none."""
    rules = _joined(fixed.GATE_RULES, *_if(files, fixed.GATE_FILES))
    return Prompt(
        system(tasks.gate, tasks.project_introduction, rules, *_labels(conversation)),
        _joined(*_files(files), _conversation(conversation), "Decide about the newest messages."),
        conversation.images,
    )


def select(
    tasks: Tasks, query: str, request: str, entries: Sequence[Offered], max_sources: int, files: Sequence[str] = ()
) -> Prompt:
    """`query`: the question, rewritten so that it stands alone. `request`: what the asker wrote, all messages of it;
    may be equal or empty. `entries`: those that rank best, or the whole of a small index. `files`: as for `gate`.
    """
    of_team = any(_is_of_team(entry.id) for entry in entries)
    rules = _joined(
        fixed.SELECT_RULES.format(max_sources=max_sources),
        *_if(of_team, fixed.SELECT_TEAM),
        *_if(files, fixed.SELECT_FILES),
    )
    index = section("index", (field for entry in entries for field in _offered(entry)))
    asked = [Field("Question", query)]
    if request.strip() and request.strip() != query.strip():
        asked.append(Field("As it was asked", middle_cut(request.strip(), REQUEST_CHARS)))
    return Prompt(
        system(tasks.select, tasks.project_introduction, rules),
        _joined(index, *_files(files), section("question", asked), "Choose the sources."),
    )


def generate(
    tasks: Tasks,
    conversation: Conversation,
    query: str,
    sources: Sequence[Given],
    *,
    max_chars: int,
    was_too_long: bool = False,
    files: Sequence[str] | None = None,
    out_of_scope_hint: str = "",
) -> Prompt:
    """`files`: those that the model's tools search; None if it has no tools. `out_of_scope_hint`: where to ask what is
    not for the bot, in the operator's words.
    """
    hint = out_of_scope_hint.strip()
    has_excerpts = any(source.is_excerpt for source in sources)
    rules = _joined(
        fixed.GENERATE_RULES.format(max_chars=max_chars)
        + "\n"
        + (fixed.TO_READ if has_excerpts else fixed.NOTHING_TO_READ),
        *_if(any(_is_of_team(source.id) for source in sources), fixed.GENERATE_TEAM),
        *_if(_several_users(sources), fixed.SPEAKERS),
        *_if(has_excerpts, fixed.EXCERPT_RULES),
        *_if(hint, fixed.OUT_OF_SCOPE.format(hint=hint)),
        *_if(files is not None, fixed.TOOL_RULES),
        *_if(files is not None and holds_runbook(files), fixed.TOOL_RUNBOOKS),
    )
    ending = fixed.SHORTEN.format(max_chars=max_chars) if was_too_long else "Answer the question."
    asked = section("question", [Field("Question", query)])
    return Prompt(
        system(tasks.generate, tasks.project_introduction, rules, *_labels(conversation)),
        _joined(*_sources(sources), *_files(files or ()), _conversation(conversation), asked, ending),
        conversation.images,
    )


def verify(
    tasks: Tasks, conversation: Conversation, draft: str, sources: Sequence[Given], out_of_scope_hint: str = ""
) -> Prompt:
    """`sources` and `out_of_scope_hint`: as the draft was written from."""
    hint = out_of_scope_hint.strip()
    rules = _joined(
        fixed.VERIFY_RULES,
        *_if(any(_is_of_team(source.id) for source in sources), fixed.VERIFY_TEAM),
        *_if(_several_users(sources), fixed.SPEAKERS),
        *_if(any(source.is_excerpt for source in sources), fixed.EXCERPT_RULES),
        *_if(conversation.images, fixed.VERIFY_IMAGES),
        *_if(hint, fixed.VERIFY_OUT_OF_SCOPE.format(hint=hint)),
    )
    drafted = section("draft", [Field("Draft", draft)])
    return Prompt(
        system(tasks.verify, tasks.project_introduction, rules, *_labels(conversation)),
        _joined(*_sources(sources), _conversation(conversation), drafted, "Judge the draft."),
    )


def summarise(tasks: Tasks, source_id: str, text: str, page_chars: int | None = None) -> Prompt:
    """`page_chars`: how long the whole document is, of which `text` may be an outline; None: as long as `text`."""
    most = description_chars(len(text) if page_chars is None else page_chars)
    return Prompt(
        system(tasks.summarise, tasks.project_introduction, fixed.SUMMARISE_RULES),
        _joined(
            section("source", _entry(source_id, "Text", text)), f"Describe this source in at most {most} characters."
        ),
    )


def description_chars(page_chars: int) -> int:
    """How long the description of a page may be: 600 characters for a short page, up to 1,200 for a long one."""
    share = (min(page_chars, _LONG_PAGE_CHARS) - _SHORT_PAGE_CHARS) / (_LONG_PAGE_CHARS - _SHORT_PAGE_CHARS)
    most = DESCRIPTION_CHARS + max(share, 0) * (LONGEST_DESCRIPTION_CHARS - DESCRIPTION_CHARS)
    return int(most // 100) * 100


def conversations_in(sources: Sequence[Given]) -> list[str]:
    """The ids of the team's conversations in `sources`, in the order of `citations.conversation_label`."""
    return list(dict.fromkeys(each for source in sources if _is_of_team(source.id) for each in pair_ids(source.text)))


def classify(tasks: Tasks, pair: Pair, index: Sequence[IndexEntry]) -> Prompt:
    listed = section("index", (field for entry in index for field in _entry(entry.id, "About", entry.description)))
    mixed = has_several_askers(pair)
    pieces = fixed.PIECES if mixed else fixed.NO_PIECES
    rules = "\n".join((fixed.CLASSIFY_RULES, pieces, *_if(mixed, fixed.SPEAKERS)))
    return Prompt(
        system(tasks.classify, tasks.project_introduction, rules),
        _joined(listed, section("pair", pair_fields(pair, name_turns=mixed)), "File this pair, or skip it."),
    )


def integrate(
    tasks: Tasks,
    pair: Pair,
    topic: str,
    held: Sequence[Pair],
    corrections: Callable[[Pair], Sequence[Correction]] = lambda _pair: (),
) -> Prompt:
    """`topic` is the safe name of a file: letters, digits and hyphens. `corrections`: what is superseded in a pair."""
    shown = (pair_fields(each, conversation_label(place), corrections(each)) for place, each in enumerate(held))
    topic_fields = (Field("Topic", one_line(topic)), *(field for fields in shown for field in fields))
    rules = _joined(fixed.INTEGRATE_RULES, *_if(any(map(has_several_askers, (pair, *held))), fixed.SPEAKERS))
    return Prompt(
        system(tasks.integrate, tasks.project_introduction, rules),
        _joined(section("topic", topic_fields), section("pair", pair_fields(pair)), "Integrate this pair."),
    )


def summarise_images(tasks: Tasks, conversation: Conversation, message_ids: Sequence[int]) -> Prompt:
    """`message_ids`: one for each turn."""
    rules = fixed.SUMMARISE_IMAGES_RULES.format(max_chars=IMAGE_SUMMARY_CHARS)
    return Prompt(
        system(tasks.summarise_images, tasks.project_introduction, rules, *_labels(conversation)),
        _joined(_conversation(conversation, message_ids), "Summarise each image."),
        conversation.images,
    )


def _joined(*parts: str) -> str:
    return "\n\n".join(parts)


def _conversation(conversation: Conversation, message_ids: Sequence[int] | None = None) -> str:
    """Turns, with the numbers of their images; with `message_ids`, in the terms in which images are summarised."""
    fields: list[Field] = []
    seen = left_out = 0
    ids = [None] * len(conversation.turns) if message_ids is None else message_ids
    shown = _within_room(conversation.turns, with_images=message_ids is not None)
    for at, (turn, message_id) in enumerate(zip(conversation.turns, ids, strict=True)):
        label = "You" if turn.role is Role.ASSISTANT else "User"
        images = [f"image {seen + number}" for number in range(1, len(turn.images) + 1)]
        seen += len(images)
        if images and message_id is not None:
            images = [f"{image} is its image_index {index}" for index, image in enumerate(images)]
            label += f" (message_id {message_id}; {', '.join(images)})"
        elif images:
            label += f" ({', '.join(images)})"
        if at not in shown:
            left_out += 1
            continue
        if left_out:
            fields.append(Field("Left out", number_of(left_out, "message")))
            left_out = 0
        fields.append(Field(label, shown[at]))
    if left_out:
        fields.append(Field("Left out", number_of(left_out, "message")))
    return section("conversation", fields)


def _within_room(turns: Sequence[Turn], *, with_images: bool) -> Mapping[int, str]:
    """Return the texts of the turns that are shown, by their places: what is asked now, the first one, which tells the
    subject, and of the others the newest. `with_images`: before all of them, those that have images.
    """
    texts = [middle_cut(turn.text, TURN_CHARS) for turn in turns]

    def rank(at: int) -> tuple[bool, bool, bool, int]:
        return not (with_images and turns[at].images), not turns[at].asked_now, at != 0, -at

    shown: dict[int, str] = {}
    room = CONVERSATION_CHARS
    for at in sorted(range(len(turns)), key=rank):
        room -= len(texts[at])
        if room < 0 and shown:
            break
        shown[at] = texts[at]
    return shown


def _offered(entry: Offered) -> Iterable[Field]:
    yield id_field(entry.id)
    if entry.heading.strip():
        yield Field("Heading", one_line(entry.heading))
    yield Field("About", beginning(one_line(entry.description), OFFERED_CHARS))


def beginning(text: str, max_chars: int) -> str:
    """At most `max_chars` from the beginning of a text in one line: whole sentences, else whole words and `…`."""
    if len(text) <= max_chars:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text) if match.end() <= max_chars]
    if ends and ends[-1] >= max_chars // 3:
        return text[: ends[-1]]
    words = text[: max_chars - 1]
    return f"{words.rpartition(' ')[0] or words}…"


def _sources(sources: Sequence[Given]) -> list[str]:
    labels = {each: conversation_label(place) for place, each in enumerate(conversations_in(sources))}
    return [section("source", _given(source, labels)) for source in sources]


def _several_users(sources: Sequence[Given]) -> bool:
    return any(_is_of_team(source.id) and _SEVERAL_USERS.search(topic_for_model(source.text, {})) for source in sources)


def _given(source: Given, labels: Mapping[str, str]) -> Iterable[Field]:
    text = topic_for_model(source.text, labels) if _is_of_team(source.id) else source.text
    source_id, shown = _entry(source.id, "Excerpt of a longer page" if source.is_excerpt else "Text", text)
    yield source_id
    if source.title.strip():
        yield Field("Title", one_line(source.title))
    yield shown


def _entry(source_id: str, label: str, text: str) -> tuple[Field, Field]:
    return id_field(source_id), Field(label, text, _TEAM_TURN if _is_of_team(source_id) else None)


def _is_of_team(source_id: str) -> bool:
    return source_id.startswith("team:")


def _labels(conversation: Conversation) -> tuple[str, ...]:
    return conversation_rules(
        has_own_turns=any(turn.role is Role.ASSISTANT for turn in conversation.turns),
        has_images=bool(conversation.images),
    )


def _if(there: object, rule: str) -> tuple[str, ...]:
    return (rule,) if there else ()


def _files(files: Sequence[str]) -> list[str]:
    return [section("evidence", [Field("File", one_line(file)) for file in files])] if files else []
