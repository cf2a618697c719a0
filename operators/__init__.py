"""The operators and steps of the bot. An operator takes an Observable and gives an Observable (`screen`, `route`, …); a
step is an async function that `operators.step` lifts into a stream (`gate`, `select`, …). Generic operators are in
`dataflow`.

Generic ones are named here; those of the domain (route, gate, select, …) live in modules of their own.
"""

from clock.cancel_token import CancelToken

# pyright: reportUnusedImport=false
from operators.delay_unless_replaced import delay_unless_replaced
from operators.fork import fork, supervised
from operators.map_async import CancelledWithin, Overflow, map_async
from operators.quiet_window import Amend, Keep, quiet_window
from operators.selecting import concat_map_iterable, only, pass_through
from operators.serialize_by_key import serialize_by_key
from operators.triggering import unfold
