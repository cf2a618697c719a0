"""Makes backups of a data folder while it is being written, each as one file, and restores them as a whole.

`CopyOrder` explains why files that are copied one after another are consistent. The backup is a zip archive: first the
files, below `data/`, then `millrace-backup.json`, which lists each with its size and SHA-256. Everything here blocks.
"""

# pyright: reportUnusedImport=false
from services.storage.backups import writing
from services.storage.backups.manifest import BadBackup
from services.storage.backups.restoring import FolderInUse, prune, restore, series_of
from services.storage.backups.writing import BackupRefused, CopyOrder, CopyProgress, DamagedDatabase, back_up
