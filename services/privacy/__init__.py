"""`--forget` and `/privacy forget`: find and remove what is kept of a person."""

# pyright: reportUnusedImport=false
from services.privacy.forgetting import (
    ForgetResult,
    TeamData,
    collect_texts,
    forget_in_all_servers,
    has_archived_text,
    limits_pseudonym,
    new_pseudonym_key,
    planned_renames,
    pseudonym,
    pseudonym_key,
    rename_sources,
)
from services.privacy.text_match import find_remaining_words
from services.privacy.unknown_files import ConfiguredFiles
