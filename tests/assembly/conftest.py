"""The parts are put together from the same configuration as the commands."""

from tests.commands.conftest import config
from tests.root_logger import logging_restored

__all__ = ["config", "logging_restored"]
