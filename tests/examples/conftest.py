from tests.root_logger import logging_restored

__all__ = ["logging_restored"]
