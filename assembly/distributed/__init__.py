"""The program in several processes over NATS: the roles gateway, worker, team and knowledge, each with its own sources,
services and sinks.
"""
