"""From a question to passages, and from passages to an answer (docs/document-tools.md)."""
