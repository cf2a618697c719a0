"""Secrets and personal details become labels before a document is cut up, stored or embedded (DOCUMENT_QA 4.5)."""

from __future__ import annotations

from services.redaction import Redactor
from services.secret_shapes import PERSONAL_SHAPES, SHAPES

DOCUMENT_REDACTOR = Redactor(shapes=(*SHAPES, *PERSONAL_SHAPES))
"""For documents without secrets of our own; the program passes one that knows them."""
