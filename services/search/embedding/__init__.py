"""Turns text into vectors: with a packaged model, an endpoint, or hashes of words for tests."""

# pyright: reportUnusedImport=false
from services.search.embedding.endpoint import EmbeddingEndpoint, EndpointEmbedder
from services.search.embedding.packaged import REMEDY, PackagedEmbedder, installed
from services.search.embedding.protocol import Embedder, EmbeddingFailed, Vectors
