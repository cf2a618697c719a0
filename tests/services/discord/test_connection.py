from services.discord.protocols import GatewayHealth


def test_it_is_alive_until_it_has_been_away_for_more_than_three_minutes() -> None:
    health = GatewayHealth(1000.0)
    assert health.problem(1180.0) is None
    assert health.problem(1181.0) == "disconnected for 181 s"
    health.note_connected(1200.0)
    assert health.connected
    assert health.problem(1200.0) is None


def test_failing_to_connect_again_does_not_start_the_three_minutes_anew() -> None:
    health = GatewayHealth(1000.0)
    health.note_connected(1000.0)
    health.note_disconnected(1010.0)
    health.note_disconnected(1100.0)
    assert health.since == 1010.0
    assert health.problem(1191.0) is not None


def test_a_connection_on_which_nothing_is_heard_counts_as_dead() -> None:
    health = GatewayHealth(1000.0)
    health.note_connected(1000.0)
    health.note_frame(1100.0)
    assert health.problem(1280.0) is None
    assert health.problem(1281.0) == "connected, but silent for 181 s"
