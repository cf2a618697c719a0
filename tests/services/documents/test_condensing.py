"""How a model is asked to condense and to rewrite, with the client as the program has it."""

from __future__ import annotations

import pytest

from services.documents.asking.passages import Findings
from services.documents.asking.synthesis import Material
from services.documents.condensing import ModelRewriter, ModelSynthesiser, ToolModel
from services.llm.endpoint import CallOptions, LLMError, TimedOut, Unavailable
from services.llm.structured import StructuredLLM
from services.llm.usage import Usage
from tests.services.llm.asking import ScriptedEndpoint, patient, reply_of


def material(max_tokens: int = 500) -> Material:
    return Material("why?", "why?", Findings(), (), (), max_tokens=max_tokens)


def model(endpoint: ScriptedEndpoint, max_retries: int = 2) -> ToolModel:
    return ToolModel(StructuredLLM(patient(endpoint, max_retries=max_retries), "json_schema"), "m", Usage())


@pytest.mark.parametrize("max_tokens", [500, 1200])
async def test_condensing_is_short_and_sober(max_tokens: int) -> None:
    endpoint = ScriptedEndpoint()
    endpoint.then(reply_of('{"answer": "So."}'))
    assert await ModelSynthesiser(model(endpoint)).answer(material(max_tokens)) == "So."
    assert [request.options for request in endpoint.asked] == [CallOptions(0.3, max_tokens, 0)]


@pytest.mark.parametrize("error", [Unavailable("503"), Unavailable("429", retry_after=600.0), TimedOut("504")])
@pytest.mark.parametrize("max_retries", [0, 2])
async def test_what_fails_is_asked_once_more_whatever_the_client_does_elsewhere(
    error: LLMError, max_retries: int
) -> None:
    endpoint = ScriptedEndpoint()
    endpoint.then(*[error] * 9)
    with pytest.raises(type(error)):
        await ModelSynthesiser(model(endpoint, max_retries)).answer(material())
    assert len(endpoint.asked) == 2


async def test_rewriting_is_shorter_still_and_asked_once_more_as_well() -> None:
    endpoint = ScriptedEndpoint()
    endpoint.then(*[Unavailable("503")] * 9)
    assert await ModelRewriter(model(endpoint)).rewrite("and it?", (("what failed?", "The pump."),)) is None
    assert [request.options for request in endpoint.asked] == [CallOptions(0.0, 150, 1)] * 2


async def test_a_reply_that_cannot_be_used_is_asked_for_again_without_further_retries() -> None:
    endpoint = ScriptedEndpoint()
    endpoint.then(Unavailable("503"), reply_of("nonsense"), Unavailable("503"), reply_of('{"question": "x"}'))
    assert await ModelRewriter(model(endpoint)).rewrite("and it?", ()) is None
    assert len(endpoint.asked) == 3
