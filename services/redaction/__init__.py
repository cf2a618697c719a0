"""Replaces secrets with labels: known values, values of a known shape, and values behind the name of a secret.

One `Redactor` serves logs, prompts, captures and evidence.
"""

# pyright: reportUnusedImport=false
from services.redaction.named_secrets import KeyPath, compile_run, end_of_run, is_placeholder, leads_to_secret
from services.redaction.redactor import (
    CODE_SHAPES,
    MARKUP_SHAPES,
    PERSONAL_SHAPES,
    SHAPES,
    Redactor,
    label,
)
