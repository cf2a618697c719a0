"""`--forget` and `/privacy forget`: what is kept of a person, found and removed."""

# pyright: reportUnusedImport=false
from services.privacy.forgetting import Forgotten, Learned, forget_everywhere, has_written, note_documents
from services.privacy.pseudonyms import pseudonym, pseudonym_key
from services.privacy.strangers import Surroundings
