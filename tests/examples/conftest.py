from tests.commands.conftest import logging_restored

__all__ = ["logging_restored"]
