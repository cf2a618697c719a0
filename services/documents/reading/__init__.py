"""Reads the bytes of a file into a prepared document: decodes, classifies, redacts and cuts it into chunks."""

# pyright: reportUnusedImport=false
from services.documents.reading.preparing import prepare, prepare_document
from services.documents.reading.redacting import DocumentRedactors
