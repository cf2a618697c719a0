"""Settings in, the rules of the graph out; those of single servers with them."""

from __future__ import annotations

from dataclasses import replace

from assembly.answering import answer_rules
from assembly.documents import evidence_rules
from assembly.redaction import redactor_of
from assembly.state import RunState
from assembly.team import curation_rules
from operators.screen import ScreenRules
from services.conversations import ContextRules, FollowRules, RouteRules, TeamIds
from settings import Settings
from streams.conversations import WindowRules
from streams.wiring import Rules


def graph_rules(settings: Settings, state: RunState, *, to_the_end: bool) -> Rules:
    discord = settings.discord
    return Rules(
        screen=ScreenRules(
            withheld=state.withheld,
            allowed=discord.channel_allowlist,
            denied=discord.channel_denylist,
            servers={
                guild_id: (server.discord.channel_allowlist, server.discord.channel_denylist)
                for guild_id, server in settings.servers.items()
            },
            # As it was at the start: within a run, a late message is not an old one.
            ended=state.seen_before.has_end,
        ),
        answers=answer_rules(settings),
        window=WindowRules(
            quiet=discord.message_batch_wait_seconds,
            settle=discord.message_batch_settle_seconds,
            longest=discord.message_batch_max_seconds,
        ),
        evidence=evidence_rules(settings.documents),
        curation=curation_rules(settings, to_the_end=to_the_end),
    )


def context_rules(settings: Settings, state: RunState) -> ContextRules:
    discord = settings.discord
    return ContextRules(
        reply_chain_max_depth=discord.reply_chain_max_depth,
        grouping_seconds=discord.message_grouping_window_seconds,
        withheld=state.withheld,
        redact=redactor_of(settings).text,
    )


def route_rules(settings: Settings) -> RouteRules:
    discord = settings.discord
    return RouteRules(
        reply_mode=discord.reply_mode,
        reply_mode_by_channel={
            channel: differs.reply_mode
            for channel, differs in discord.channels.items()
            if differs.reply_mode is not None
        },
        capture_channels=discord.capture_channels,
        team_active_seconds=discord.team_active_seconds,
        servers={guild_id: route_rules(server) for guild_id, server in settings.servers.items()},
    )


def follow_rules(settings: Settings) -> FollowRules:
    """A line that leads to a reply is in one batch with it, or it would have been captured before it is moved."""
    rules = FollowRules()
    return replace(rules, leading=min(rules.leading, settings.discord.message_batch_wait_seconds))


def teams(settings: Settings) -> dict[int, TeamIds]:
    return {
        guild_id: TeamIds(server.discord.team_member_ids, server.discord.team_role_ids)
        for guild_id, server in settings.servers.items()
    }
