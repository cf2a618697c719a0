"""`--forget` and `/privacy forget`: what is kept of a person, found and removed."""

# pyright: reportUnusedImport=false
from services.privacy.forgetting import Forgotten, forget, has_written, note_documents, pseudonym
from services.privacy.strangers import Surroundings
