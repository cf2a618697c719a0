from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import reactivex as rx

from assembly.answering import answer_rules, library_of
from assembly.data_folder import read_state
from assembly.graph_parts import DiscordAPI, ServerParts, assemble, capture_parts
from clock import now
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind
from model.servers import Servers
from operators.route import route
from services.assistant.extractive import ExtractiveAssistant
from services.assistant.inquiry import Inquiry
from services.discord.protocols import DryRunPoster
from services.knowledge import LibrarySearch
from settings import Settings, load
from tests.searching import ScriptedSearch


async def test_what_an_inquiry_uses_counts_towards_the_run_and_its_day(config: Path) -> None:
    settings = load(config)
    library, search = library_of(settings), ScriptedSearch()
    told: list[int] = []

    def tell(_step: str, _kind: str, count: int) -> None:
        told.append(count)

    state = read_state(settings, on_tokens=tell)
    parts = assemble(
        settings,
        state=state,
        servers=Servers(
            {
                None: ServerParts(
                    settings=settings,
                    assistant=ExtractiveAssistant(search),
                    library=library,
                    search=cast("LibrarySearch", search),
                    captures=capture_parts(settings, state),
                )
            }
        ),
        api=DiscordAPI(poster=DryRunPoster()),
    )
    message = Message(10, 17, Author(311, "ada"), "How?", now())
    part = Part(1, (message,), AuthorType.COMMUNITY_USER, Place(17, PlaceKind.CHANNEL), now())
    inquiry = await rx.just(part).pipe(route(parts.services.router, state.usages))
    assert isinstance(inquiry, Inquiry)
    inquiry.usage.add("gate", prompt_tokens=30, completion_tokens=4)
    assert state.spent[state.folder.usage].tokens == state.usages.default.tokens.total() == 34
    assert told == [30, 4]


def test_the_limits_of_answering_are_what_the_configuration_says() -> None:
    rules = answer_rules(Settings())
    assert (rules.max_answer_chars, rules.speculate, rules.thread_reuse_seconds) == (3000, False, 900)
    set_to = Settings.model_validate(
        {"ai_response": {"max_answer_chars": 50, "speculate": True}, "discord": {"thread_reuse_minutes": 2}}
    )
    expected = replace(rules, max_answer_chars=50, speculate=True, thread_reuse_seconds=120)
    assert answer_rules(set_to) == expected
