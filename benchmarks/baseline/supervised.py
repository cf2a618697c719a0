"""A branch that outlives its own bugs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, compose
from reactivex import operators as ops

T = TypeVar("T")

RESTARTS = 100

log = logging.getLogger(__name__)


def supervised(name: str) -> Callable[[Observable[T]], Observable[T]]:
    """Log what killed the branch, then subscribe it anew to the live source.

        --1--x             --1--2--|
        [ supervised ]  => --1-----2--|

    After too many deaths the error goes through and ends the graph: let the
    process be restarted. Always supervise *above* a share() too (see `fork`): a
    share() that failed stays failed, and retrying below it would spin.

    Only for bugs: the branch loses its open windows and work in hand. Failures
    of single items belong to `map_async(on_failure=...)`.
    """

    def say(error: Exception) -> None:
        log.critical("%s died and was restarted", name, exc_info=error)

    def operator(source: Observable[T]) -> Observable[T]:
        return source.pipe(ops.do_action(on_error=say), ops.retry(RESTARTS))

    return operator


def fork(name: str) -> Callable[[Observable[T]], Observable[T]]:
    """Run what comes before once, however many branches follow."""
    return compose(supervised(name), ops.share())
