"""`--forget` and `/privacy forget`: what is kept of a person, found and removed."""

# pyright: reportUnusedImport=false
from services.privacy.forgetting import Forgotten, forget, note_documents, pseudonym
