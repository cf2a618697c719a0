"""Which model writes the answers, if any."""

from __future__ import annotations

from collections.abc import Mapping

from assembly.llm import endpoint_settings
from assembly.running import run_async
from commands.check_servers import asked
from commands.findings import Finding, Verdict
from commands.setting_up.answers import NONE, Answers, Question, WizardOutput, WrongAnswer
from commands.setting_up.keeping import OperatorFiles
from services.llm import NOT_THIS_KEY, unreachable_because
from settings import LLMSettings

BACK = "back"
LLM = "ai_response.llm"
METHODS = ("function_calling", "json_schema")


def ask_for_model(answers: Answers, own: OperatorFiles, tell: WizardOutput) -> None:
    tell.head("Language model: without one, answers are quotes from the documentation")
    present = own.settings.ai_response.llm
    begun = own.begun_model
    offered = begun.get("base_url", "") if begun else NONE if present is None else present.base_url
    if begun:
        tell.warn(f"{LLM} lacks something still; there is {', '.join(begun)}")
    while True:
        base_url = answers.ask(
            Question("model_base_url", f"Address of an OpenAI-compatible endpoint (usually ends in /v1), or `{NONE}`"),
            lambda text: _address(own, text, present) if text or answers.interactive else "",
            offered,
        )
        if base_url is None:
            if present is not None or begun:
                own.keep({LLM: None})
            tell.good("no model is asked")
            return
        if not base_url:
            tell.warn(f"it stays so, and other commands refuse it; with model_base_url `{NONE}` it is taken away")
            return
        offered = base_url
        key = answers.ask(
            Question("model_api_key", f"Its key (not shown), or `{NONE}`", secret=True),
            lambda text, url=base_url: _key(own, url, text),
            _key_of(base_url, present, begun),
        )
        found = answers.ask(
            Question("model_name", "Name of the model" + (f", or `{BACK}`" if answers.interactive else "")),
            lambda text, url=base_url, key=key: None if text == BACK else _answering(own, url, key, text),
            present.model if present else begun.get("model", ""),
        )
        if found is not None:
            break
    llm, says = found
    new = {
        "base_url": llm.base_url,
        "api_key": key,
        "model": llm.model,
        "structured_output_method": llm.structured_output_method,
    }
    old = begun if present is None else present.model_dump() | {"api_key": present.api_key.get_secret_value()}
    default = {"structured_output_method": METHODS[0]} if present is None else {}
    own.keep({f"{LLM}.{name}": value for name, value in new.items() if (old | default).get(name) != value})
    (tell.good if says.verdict is Verdict.OK else tell.warn)(says.says)


def _key_of(base_url: str, present: LLMSettings | None, begun: Mapping[str, str]) -> str:
    """The key that is there for this address. A key belongs to one address, and is shown to no other."""
    if present is not None:
        return present.api_key.get_secret_value() if base_url == present.base_url else NONE
    mine = begun.get("base_url", base_url).rstrip("/") == base_url.rstrip("/")
    return begun.get("api_key", NONE) if mine else NONE


def _tried(own: OperatorFiles, base_url: str, key: str, model: str, method: str | None = None) -> LLMSettings:
    values = {"base_url": base_url, "api_key": key, "model": model}
    if method is not None:
        values["structured_output_method"] = method
    llm = own.tried({f"{LLM}.{name}": value for name, value in values.items()}).ai_response.llm
    if llm is None:
        raise WrongAnswer("the environment says that there is no model (APP__AI_RESPONSE__LLM)")
    return llm


def _address(own: OperatorFiles, text: str, present: LLMSettings | None) -> str | None:
    if text.lower() == NONE:
        return None
    key = NONE if present is None else present.api_key.get_secret_value()
    # A key belongs to one address, and is shown to no other.
    llm = _tried(own, text, NONE, "model")
    if present is not None and llm.base_url == present.base_url:
        llm = _tried(own, text, key, "model")
    trouble = run_async(unreachable_because(endpoint_settings(llm)))
    if trouble is not None and NOT_THIS_KEY not in trouble:
        raise WrongAnswer(trouble.removeprefix("LLM model at "))
    return llm.base_url


def _key(own: OperatorFiles, base_url: str, text: str) -> str:
    llm = _tried(own, base_url, text or NONE, "model")
    trouble = run_async(unreachable_because(endpoint_settings(llm)))
    if trouble is not None:
        raise WrongAnswer(trouble.removeprefix("LLM model at "))
    return llm.api_key.get_secret_value()


def _answering(own: OperatorFiles, base_url: str, key: str, name: str) -> tuple[LLMSettings, Finding]:
    """Ask it one question, as a function call and else by a schema: servers differ in what they know."""
    if not name:
        raise WrongAnswer("a name is needed, as the endpoint lists it")
    first: Finding | None = None
    configured = _tried(own, base_url, key, name).structured_output_method
    for method in dict.fromkeys((configured, *METHODS)):
        llm = _tried(own, base_url, key, name, method)
        finding = run_async(asked(own.settings, LLM, llm))
        if finding.verdict is not Verdict.MISSING:
            return llm, finding
        first = first or finding
    raise WrongAnswer("" if first is None else first.says)
