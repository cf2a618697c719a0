"""The version of the program: that of `pyproject.toml`, which an installation need not have."""

VERSION = "0.1.0"
