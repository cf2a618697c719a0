"""Turning text into vectors: a packaged model, an endpoint, or hashes of words for tests."""
