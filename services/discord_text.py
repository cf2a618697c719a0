"""How messages read, and how replies fit (to be replaced by the full module)."""

from __future__ import annotations

from collections.abc import Mapping

from model.messages import Message


def render(message: Message, names: Mapping[int, str]) -> str:
    text = message.text
    for user_id, name in (*names.items(), *message.mentions):
        text = text.replace(f"<@{user_id}>", f"@{name}")
    lines = [
        f"[image: {a.filename}]" if a.is_image else f"[file: {a.filename}, {a.size // 1000} kB]"
        for a in message.attachments
    ]
    return "\n".join([text, *lines]).strip()


def split(text: str, limit: int = 2000) -> list[str]:
    return [text[i : i + limit] for i in range(0, len(text), limit)]


def thread_name(text: str) -> str:
    return (text.strip().splitlines() or ["Question"])[0][:100]
