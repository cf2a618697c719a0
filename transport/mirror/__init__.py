"""A folder kept in the log: its one writer appends each change before it is on the disk, other processes have copies.

`LogJournal` is the writer's side, below `services.storage.files`; `publish` tells of a folder that others write.
`restore` makes a copy, `FolderFollower` keeps one up to date, `read_in_all_scopes` looks at one file in all scopes.
"""

# pyright: reportUnusedImport=false
from transport.mirror.copying import read_in_all_scopes, restore
from transport.mirror.entries import NotAPath
from transport.mirror.following import FolderFollower
from transport.mirror.publishing import FolderPublisher, Published, publish
from transport.mirror.writing import LogJournal, Writer
