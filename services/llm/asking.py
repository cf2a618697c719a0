"""The seam through which everybody asks a model: one question, one validated answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel

from model.conversations import Image
from services.llm.endpoint import CallOptions
from services.llm.tools import Tool, ToolLimits
from services.llm.usage import Usage

M = TypeVar("M", bound=BaseModel)


class Asker(Protocol):
    """Puts one question to a model and gives back its validated answer."""

    async def ask(
        self,
        step: str,
        system: str,
        user: str,
        model: type[M],
        usage: Usage,
        *,
        images: Sequence[Image] = (),
        options: CallOptions | None = None,
    ) -> M:
        """`step` names the call in metrics, recordings and errors; `model`'s class name is the schema's on the wire.
        `manner`: how long the reply may be, and so on; None: as the settings say.

        Raises:
            LLMError: there is no usable answer (services.llm.errors says which kinds there are).
        """
        ...


class Conversing(Asker, Protocol):
    """Also lets the model call tools before it answers."""

    async def converse(
        self,
        step: str,
        system: str,
        user: str,
        model: type[M],
        usage: Usage,
        *,
        tools: Sequence[Tool],
        limits: ToolLimits,
        images: Sequence[Image] = (),
    ) -> M:
        """Raises `LLMError`, as `ask` does; what goes wrong with a tool, the model is told."""
        ...
