from tests.kept_processes import kept, kept_processes

__all__ = ["kept", "kept_processes"]
