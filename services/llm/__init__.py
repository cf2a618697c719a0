"""Everything between "ask this step's question, get this Pydantic model" and the wire.

errors       what can go wrong, in one small tree
endpoint     the Protocol that all of the following share: a request goes in, a reply comes out
crynux       one attempt at one endpoint, through ChatCrynux (whose imports in `chat` wait for the first call)
retrying     another attempt where it is worth one
breaking     no attempt at all for a while, at an endpoint that has stopped answering
opening      these three put together, made so that a virtual clock stands still meanwhile
exchanges    the form in which calls are kept; `recording` writes it, `replaying` answers from it
structured   a question and a model class in, an instance of it out: finds, validates, asks once more
tool_calls   what a model calls on the way to an answer: run, or refused in words that it can read
schemas      the JSON schema of a model class as it goes over the wire
finding      the first JSON object in a reply that fits
images       pictures as parts of a request; `image_sources` says where they are read from
reachable    a cheap look at whether an endpoint is there
"""

# pyright: reportUnusedImport=false
from services.llm.asking import Asker, Conversing
from services.llm.budget import Budget, BudgetLimits, read_spent, render_spent
from services.llm.crynux import import_client
from services.llm.endpoint import CallOptions, Endpoint, EndpointSettings
from services.llm.errors import BadOutput, LLMError, Rejected, TimedOut, Unavailable, UnknownRequest
from services.llm.exchanges import UnreadableExchanges
from services.llm.finding import NotFound, first_that_fits
from services.llm.image_sources import AttachedImages
from services.llm.images import MAX_IMAGE_BYTES, ImageFailed, ImageSource, image_adapter, load_images
from services.llm.opening import open_endpoint
from services.llm.prompting import Prompt, question, system
from services.llm.reachable import unreachable_because
from services.llm.recording import RecordingEndpoint
from services.llm.replaying import ReplayEndpoint
from services.llm.spending import Spending, TellTokens
from services.llm.structured import StructuredLLM
from services.llm.tools import Tool, ToolLimits
from services.llm.untrusted import Field, clean, one_line, section
from services.llm.usage import Usage
