"""Replaces secrets with labels: known values, values of a known shape, and values behind the name of a secret.

One `Redactor` serves logs, prompts, captures and evidence.
"""

# pyright: reportUnusedImport=false
from services.redaction.names import Path, is_placeholder, leads_to_secret
from services.redaction.redactor import Redactor
from services.redaction.runs import end_of_run, run_of
from services.redaction.shapes import CODE_SHAPES, DOCUMENTATION_SHAPES, MARKUP_SHAPES, PERSONAL_SHAPES, SHAPES, label
