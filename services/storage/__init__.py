"""Writes files so that a crash leaves either the old content or the new one.

This package knows where files are (`DataFolder`) and how to write them, not what they mean. Everything here blocks;
`in_thread` runs it off the event loop.
"""

# pyright: reportUnusedImport=false
from services.storage import confined, files, json_state
from services.storage.confined import OutsideFolder, Signature
from services.storage.data_folder import (
    DataFolder,
    FolderBusy,
    drop_left_folders,
    lock,
    lock_refusal,
    make_private,
    temporary_folder,
)
from services.storage.files import FileChange, describe_error, in_thread, remedy
from services.storage.json_state import (
    DamagedIds,
    Record,
    edit_records,
    json_object,
    parse_records,
    read_object,
    read_records,
    read_text,
    render_object,
    replace_strings,
)
