"""The parts, put together from the settings: each module builds one branch of the graph, or what runs beside it."""

from model.processes import UserError


class Unusable(UserError):
    """Options or files that cannot be used: one readable line that names them and the remedy. Nothing was done."""
