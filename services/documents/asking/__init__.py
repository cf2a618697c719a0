"""Plans a question about files, finds passages or lines, and writes a cited answer (docs/document-tools.md)."""
