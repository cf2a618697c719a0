"""The parts are put together from the same configuration as the commands; what tests open is closed."""

from tests.commands.conftest import config
from tests.root_logger import logging_restored
from tests.services.left_open import stores_closed

__all__ = ["config", "logging_restored", "stores_closed"]
