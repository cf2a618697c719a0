"""Turns text into vectors, with a packaged model or an endpoint."""

# pyright: reportUnusedImport=false
from services.search.embedding.endpoint import Embedder, EmbeddingEndpoint, EmbeddingFailed, EndpointEmbedder, Vectors
from services.search.embedding.matching import Match, Matcher
from services.search.embedding.packaged import REMEDY, PackagedEmbedder, installed
