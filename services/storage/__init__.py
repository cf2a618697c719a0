"""Files, written so that a crash leaves the old content or the new one, and never half of either.

This room knows where files are (`DataFolder`) and how to write them, not what they mean. Everything here blocks;
`in_thread` takes it off the event loop.
"""

# pyright: reportUnusedImport=false
from services.storage import confined, files, json_state
from services.storage.confined import OutsideFolder, Signature
from services.storage.data_folder import DataFolder, FolderBusy, lock, lock_refusal, make_private
from services.storage.files import FileChange, in_thread, remedy, why
from services.storage.json_state import Record, edit, read_object, read_records, read_text, replace_strings
