"""`--forget` and `/privacy forget`: find and remove what is kept of a person."""

# pyright: reportUnusedImport=false
from services.privacy.everywhere import Learned, forget_everywhere, texts_everywhere
from services.privacy.forgetting import Forgotten, has_written, note_documents
from services.privacy.pseudonyms import new_pseudonym_key, pseudonym, pseudonym_key
from services.privacy.strangers import Surroundings
from services.privacy.sweep import still_held
