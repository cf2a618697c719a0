"""Backups of a data folder: one file, made while the folder is being written, and brought back as a whole.

`CopyOrder` says why files that are copied one after another belong together all the same. The backup is a zip archive:
first the files, below `data/`, then `millrace-backup.json`, which names each with its size and SHA-256. Everything here
blocks.
"""

# pyright: reportUnusedImport=false
from services.storage.backups import writing
from services.storage.backups.manifest import BadBackup
from services.storage.backups.restoring import FolderInUse, restore
from services.storage.backups.writing import BackupRefused, CopyOrder, CopyProgress, DamagedDatabase, back_up
