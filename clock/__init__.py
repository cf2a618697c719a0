"""The one clock: the event loop's, read as UTC.

Operators, streams and sinks take the time from here only. On a `VirtualLoop` the loop's time *is* UTC, so a recorded
day replays in seconds and gives the same bytes each time; on an ordinary loop it is the computer's clock.

utc             the time of the loop as UTC                virtual_loop    the loop whose time jumps
threads         blocking work and real time beside the loop; a shutdown that does not wait for hanging threads
processes       work on bytes from outside, in processes that may be killed; `worker` is what these processes run
cancellation    of one item, and of tasks; one task for identical requests
timeouts        time limits that ignore pauses of the process, and growing pauses between attempts
"""

# pyright: reportUnusedImport=false
from clock.cancellation import BackgroundTasks, SharedCalls, cancel_and_wait, finish_even_if_cancelled
from clock.processes import FairTurns, Processes, WorkRunner, WorkStopped
from clock.threads import (
    exit_process,
    run_blocking,
    run_in_real_time,
    wait_for_blocking_work,
    wait_in_real_time,
    with_bounded_shutdown,
)
from clock.timeouts import RetryDeadline, loop_time, timeout_ignoring_pauses, with_timeout
from clock.utc import DAY, HOUR, MINUTE, from_rfc3339, now, rfc3339, utc_clock, utc_minute
from clock.virtual_loop import Deadlock, VirtualLoop
