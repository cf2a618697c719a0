"""Asking a language model: a prompt and a Pydantic class in, an instance of that class out.

Everybody asks through one interface, `Asker`; the product uses `StructuredLLM`, tests script theirs. The modules:

    prompting               puts a question into a prompt, whose sections text from outside cannot leave
    structured              makes it a request with a JSON schema, parses the reply, asks again if it is unusable
    tools                   runs the tools that a model calls before it answers, within limits
    redacting               redacts secrets, and records the exchange (`--llm-record`)
    recording               answers from such a file (`--llm-replay`)
    resilience              retries, or refuses at once while a circuit breaker is open; in real time
    chat                    sends the request to an OpenAI-compatible endpoint, with a time-out

The last four are an `Endpoint` each: a `Request` in, a `Reply` out. They stack, and assembly picks which. A rebuild
asks through a `PrefetchingAsker`, which makes calls before it is certain that their answers are needed.

What can go wrong is an `LLMError`: `Unavailable`, `TimedOut`, `Rejected` (one kind is `PromptRefused`), `BadOutput`,
`UnknownRequest`. Every answered call is counted in a `Usage`, and charged to the day's `Limiter`. LangChain and the
OpenAI SDK take a second to import, which waits for the first call.
"""

# pyright: reportUnusedImport=false
from typing import TYPE_CHECKING

from services import lazy_exports

if TYPE_CHECKING:
    from services.llm.endpoint import (
        BadOutput,
        CallOptions,
        Endpoint,
        EndpointSettings,
        LLMError,
        PromptRefused,
        Rejected,
        TimedOut,
        Unavailable,
        UnknownRequest,
    )
    from services.llm.images import (
        MAX_IMAGE_BYTES,
        AttachedImages,
        ImageFailed,
        ImageSource,
        ImageUnusable,
        choose_images,
        image_adapter,
        load_images,
    )
    from services.llm.prompting import (
        Field,
        Prompt,
        clean,
        conversation_rules,
        id_field,
        mark_imitations,
        one_line,
        section,
        system,
    )
    from services.llm.recording import Recording, ReplayEndpoint
    from services.llm.redacting import RedactingEndpoint
    from services.llm.resilience import (
        NOT_THIS_KEY,
        ObserveCalls,
        import_client,
        open_endpoint,
        vectors_client,
        why_unreachable,
    )
    from services.llm.structured import (
        Asker,
        LongText,
        NotFound,
        PrefetchingAsker,
        ShortText,
        ShortTexts,
        StructuredLLM,
        at_most,
        first_valid_object,
    )
    from services.llm.tools import CountedResult, Tool, ToolLimits, argument_error
    from services.llm.usage import (
        SHARED_GROUP,
        Budget,
        BudgetLimits,
        Limiter,
        ObserveTokens,
        Refusals,
        Spending,
        Spent,
        StepTokens,
        TokenDays,
        Usage,
        budget_day,
        parse_token_days,
        read_spent,
        read_token_days,
        render_spent,
        render_token_days,
        summed_token_days,
    )

__getattr__ = lazy_exports(__name__)
