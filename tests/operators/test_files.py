"""Reading files, giving them vectors and deleting them, where the store or something else fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.messages import Attachment, Place, PlaceKind
from operators import chunk as chunk_module
from operators.cancel_token import CancelToken
from operators.cases import Cases, Filing
from operators.chunk import Filed, Intake, chunk, collection_of, to_its_end
from operators.discard import Closing, Dropping, discard
from operators.embed import embed
from operators.sweep import Threads, sweep
from services.discord import LookupFailed
from services.documents.embedding.hashing import HashingEmbedder
from services.documents.embedding.protocol import EmbeddingFailed
from services.documents.offers import Offer
from services.documents.store.embedded import EmbeddedStore, Folders
from services.documents.store.protocol import State, StoreUnavailable
from tests.world import LookupError as _LookupError  # noqa: F401
