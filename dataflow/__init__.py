"""Operators for RxPY that do not know what flows: bounded concurrency, quiet windows, order by key, failure as data.

Each operator maps an Observable to an Observable, and runs on any asyncio event loop, `clock.VirtualLoop` included.
`dataflow` and `clock` import nothing else of this program (`make imports`).
"""

# pyright: reportUnusedImport=false
from clock.cancellation import CancelToken
from dataflow.basics import concat_map_iterable, of_type, pass_through
from dataflow.fork import fork, supervise
from dataflow.map_async import Overflow, UnexpectedCancellation, map_async
from dataflow.metering import Gauge, Meter, measure_item, operator_gauge, operator_watch
from dataflow.quiet_window import Amend, Keep, quiet_window
from dataflow.serialize_by_key import serialize_by_key
from dataflow.triggering import delay_unless_replaced, from_coroutine, unfold
