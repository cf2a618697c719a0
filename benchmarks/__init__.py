"""How fast, how large, and the same each time: see README.md beside this file."""
