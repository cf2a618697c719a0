"""Placeholder until merged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Phrases:
    from_the_team: str = "From an earlier answer by the team:"
    may_help: str = "This may help:"
    found_nothing_at_all: str = "I found nothing about this in the documentation."
    no_model_notice: str = "(Quoted as it is written; no language model is configured.)"
    also: str = "See also:"

    def quoted_from(self, title: str) -> str:
        return f"From {title}:"

    def found_nothing(self, nearest: str) -> str:
        return f"I found nothing about this in the documentation. The nearest page is {nearest}."


def phrases(language: str) -> Phrases:
    _ = language
    return Phrases()
