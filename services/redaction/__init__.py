"""Secrets, found by name, by shape or by known value, and replaced by a label of the same number of lines.

One `Redactor` serves logs, prompts, captures and evidence.
"""

# pyright: reportUnusedImport=false
from services.redaction.key_paths import Path, leads_to_secret
from services.redaction.labels import is_placeholder, label
from services.redaction.redactor import Redactor
from services.redaction.shapes import CODE_SHAPES, MARKUP_SHAPES, PERSONAL_SHAPES, SHAPES
