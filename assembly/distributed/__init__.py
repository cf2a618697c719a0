"""The roles of a process where the transport is NATS: each is a choice of sources, services and sinks."""
