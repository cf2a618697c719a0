"""A folder that lives in the log: its one writer tells of each change first, everybody else has a copy.

`LogJournal` is the writer's side, below `services.storage.files`; `publish` tells of a folder that others write.
`restore` makes a copy, `ScopeFollower` keeps one up to date, `everywhere` looks at one file in all scopes.
"""

# pyright: reportUnusedImport=false
from transport.mirror.copying import everywhere, restore
from transport.mirror.entries import NotAPath
from transport.mirror.following import ScopeFollower
from transport.mirror.publishing import FolderPublisher, Published, publish
from transport.mirror.writing import LogJournal, Writer
