"""The one clock: the event loop's, read as UTC.

Operators, streams and sinks ask nobody else for the time. On a `VirtualLoop` the loop's own time *is* UTC, so a
recorded day replays in seconds and gives the same bytes each time; on an ordinary loop it is the computer's clock.
"""

# pyright: reportUnusedImport=false
from clock.real_time import real_time
from clock.run_blocking import run_blocking
from clock.utc import from_rfc3339, now, rfc3339, utc_clock
from clock.virtual_loop import Deadlock, VirtualLoop
