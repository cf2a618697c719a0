"""Placeholder until merged."""


def language_of(text: str) -> str:
    return "en"
