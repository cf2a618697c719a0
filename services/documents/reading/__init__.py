"""From the bytes of a file to what is stored: decoded, classified, redacted and cut into chunks."""

# pyright: reportUnusedImport=false
from services.documents.reading.preparing import prepare
from services.documents.reading.redacting import DocumentRedactors
