"""Operators for RxPY that do not know what flows: bounded concurrency, quiet windows, order by key, failure as data.

Each takes an Observable and gives an Observable, and runs on any asyncio event loop, `clock.VirtualLoop` included.
`dataflow` and `clock` import nothing else of this program (`make imports`).
"""

# pyright: reportUnusedImport=false
from clock.cancellation import CancelToken
from dataflow.basics import concat_map_iterable, only, pass_through
from dataflow.fork import fork, supervised
from dataflow.map_async import CancelledWithin, Overflow, map_async
from dataflow.metering import Gauge, Meter, in_flight, named, watched
from dataflow.quiet_window import Amend, Keep, quiet_window
from dataflow.serialize_by_key import serialize_by_key
from dataflow.triggering import delay_unless_replaced, unfold
