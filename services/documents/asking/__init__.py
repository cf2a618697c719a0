"""From a question to passages, and from passages to an answer (DOCUMENT_QA 5 and 6)."""
