"""The streams and their wiring. `graph` shows the whole program on one screen."""
