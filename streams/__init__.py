"""What flows, and which way. `graph` is the whole program on one screen."""
