"""The same graph in several processes, between the streams of NATS JetStream.

Everything that knows NATS is in here. What it gives to the rest are sources of dispatches and captures, sinks that hand
over, and folders whose changes are kept in a stream. Imported only where `transport` says so.
"""
