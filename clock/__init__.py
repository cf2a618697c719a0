"""The one clock: the event loop's, read as UTC.

Operators, streams and sinks ask nobody else for the time. On a `VirtualLoop` the loop's own time *is* UTC, so a
recorded day replays in seconds and gives the same bytes each time; on an ordinary loop it is the computer's clock.
"""

from clock.briefly import briefly
from clock.outside import outside
from clock.utc import from_rfc3339, now, rfc3339, utc_clock
from clock.virtual_loop import Deadlock, VirtualLoop

__all__ = ["Deadlock", "VirtualLoop", "briefly", "from_rfc3339", "now", "outside", "rfc3339", "utc_clock"]
