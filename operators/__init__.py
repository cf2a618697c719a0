"""What is done to a stream: each operator takes an Observable and gives an Observable.

Generic ones are named here; those of the domain (route, gate, select, …) live in modules of their own.
"""

from operators.bypass import bypass
from operators.cancel_token import CancelToken
from operators.fork import fork, supervised
from operators.in_turn import in_turn
from operators.map_async import CancelledWithin, Overflow, map_async
from operators.postpone import postpone
from operators.quiet_window import Amend, quiet_window
from operators.spread import only, spread
from operators.unfold import unfold

__all__ = [
    "Amend",
    "CancelToken",
    "CancelledWithin",
    "Overflow",
    "bypass",
    "fork",
    "in_turn",
    "map_async",
    "only",
    "postpone",
    "quiet_window",
    "spread",
    "supervised",
    "unfold",
]
