"""Words about numbers, the same in every place that people read."""


def number_of(count: int, thing: str, things: str = "") -> str:
    """Return a number with its noun: `1 file`, `2 files`. `things`: the plural, if adding an s is not enough."""
    return f"{count} {thing if count == 1 else things or f'{thing}s'}"
