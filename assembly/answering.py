"""What answers single questions, in the graph and outside of it: the library, and the limits."""

from __future__ import annotations

from assembly.redaction import redactor_of
from assembly.searching import point_rules
from assembly.sources import SourceSetup, source_kinds
from services.knowledge import DiskLibrary, JoinedLibrary, Library, OwnLibrary
from settings import Settings
from streams.answer_rules import AnswerRules


def library_of(settings: Settings, *, for_team: bool = False, documented: bool = True) -> DiskLibrary:
    """The sources that everybody may be answered from; `for_team`: internal topics as well. `documented`: as for
    `DiskLibrary`.

    Internal topics are kept from public answers here, and nowhere else.
    """
    kb = settings.kb
    return DiskLibrary(
        index_path=kb.index_path,
        kinds=source_kinds(SourceSetup(kb)),
        team_index_path=kb.team_index_path,
        team_topics_dir=kb.team_topics_dir,
        max_source_bytes=kb.max_source_bytes,
        left_out=() if for_team else kb.internal_topics,
        redact=redactor_of(settings).documentation_text,
        documented=documented,
    )


def server_library(
    settings: Settings, guild_id: int, shared: Library | None = None, *, for_team: bool = False
) -> tuple[OwnLibrary, JoinedLibrary]:
    """Give a server's own library, and the one that joins it with the shared library. Questions of the server are
    answered from the joined one only.
    """
    own = OwnLibrary(library_of(settings.servers[guild_id], for_team=for_team, documented=False), guild_id)
    return own, JoinedLibrary(own, shared or library_of(settings, for_team=for_team))


def answer_rules(settings: Settings) -> AnswerRules:
    answering = settings.ai_response
    return AnswerRules(
        chain_seconds=answering.graph_timeout_seconds,
        max_concurrent=answering.max_concurrent_answers,
        max_waiting=answering.max_waiting_answers,
        max_sources=answering.max_sources,
        max_index_entries=answering.max_index_entries,
        max_source_chars=answering.max_source_chars,
        max_answer_chars=answering.max_answer_chars,
        require_citations=answering.require_citations,
        enable_verification=answering.enable_verification,
        speculate=answering.speculate,
        thread_reuse_seconds=settings.discord.thread_reuse_minutes * 60,
        pointing=point_rules(settings),
    )
