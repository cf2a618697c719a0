"""Asking a language model: a prompt and a Pydantic class in, an instance of that class out.

Everybody asks through one seam, `Asker`; `StructuredLLM` is the real one, tests script theirs. On its way a question is

    prompting               put into a prompt, whose sections text from outside cannot leave
    structured              made a request with a JSON schema; the reply is parsed, and asked for again if unusable
    tools                   answered after calls of tools, if there are any, within limits
    redacting               freed of secrets, and recorded so (`--llm-record`)
    recording               answered from such a file (`--llm-replay`), or else
    resilience              retried, or refused at once while a circuit breaker is open; in real time
    chat                    sent to an OpenAI-compatible endpoint, with a time-out

The last four are an `Endpoint` each: a `Request` in, a `Reply` out. They stack, and assembly picks which. A rebuild
asks through `prefetching`, another `Asker`, which makes calls before it is certain that their answers are needed.

What can go wrong is an `LLMError`: `Unavailable`, `TimedOut`, `Rejected`, `BadOutput`, `UnknownRequest`. Every
answered call is counted in a `Usage`, and charged to the day's `Limiter`. LangChain and the OpenAI SDK take a second to
import, which waits for the first call.
"""

# pyright: reportUnusedImport=false
from services.llm.endpoint import (
    BadOutput,
    CallOptions,
    Endpoint,
    EndpointSettings,
    LLMError,
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
    choose_images,
    image_adapter,
    load_images,
)
from services.llm.prefetching import PrefetchingAsker
from services.llm.prompting import Field, Prompt, clean, conversation_rules, id_field, one_line, section, system
from services.llm.recording import Recording, ReplayEndpoint, UnreadableExchanges
from services.llm.redacting import RedactingEndpoint
from services.llm.resilience import (
    NOT_THIS_KEY,
    import_client,
    open_endpoint,
    unreachable_because,
    vectors_client,
)
from services.llm.structured import (
    Asker,
    LongText,
    NotFound,
    ShortText,
    ShortTexts,
    StructuredLLM,
    at_most,
    first_valid_object,
)
from services.llm.tools import CountedResult, Tool, ToolLimits, argument_error
from services.llm.usage import (
    DAY,
    HOUR,
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
