from __future__ import annotations

from clock.timeouts import Backoff


def test_pauses_double_up_to_the_longest_and_start_anew_after_a_success() -> None:
    backoff = Backoff(1, 10)
    assert [backoff.pause() for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    backoff.reset()
    assert backoff.pause() == 1


def test_whoever_asks_for_a_longer_pause_gets_it_within_bounds() -> None:
    backoff = Backoff(1, 10)
    assert [backoff.pause(5), backoff.pause(500), backoff.pause(0)] == [5, 10, 4]
