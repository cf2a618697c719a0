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
