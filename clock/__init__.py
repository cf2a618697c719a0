"""The one clock: the event loop's, read as UTC.

Operators, streams and sinks take the time from here only. On a `VirtualLoop` the loop's time *is* UTC, so a recorded
day replays in seconds and gives the same bytes each time; on an ordinary loop it is the computer's clock.

utc             the time of the loop as UTC                virtual_loop    the loop whose time jumps
threads         blocking work and real time beside the loop, and an end that does not wait for threads that hang
processes       work on bytes from outside, in processes that may be killed; `worker` is their other end
cancellation    of one item, and of tasks
timeouts        limits that a pause of the process does not use up, and pauses that double
shared_calls    one call for identical requests
"""

# pyright: reportUnusedImport=false
from clock.cancellation import BackgroundTasks, cancelled
from clock.processes import FairTurns, Processes, Run, WorkStopped
from clock.threads import blocking_work_ended, leave, real_time, run_blocking, wait_in_real_time, with_bounded_shutdown
from clock.timeouts import RetryDeadline, loop_time, timeout_ignoring_pauses, within
from clock.utc import from_rfc3339, now, rfc3339, utc_clock
from clock.virtual_loop import Deadlock, VirtualLoop
