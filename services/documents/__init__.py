"""Facts from files: taking them in, keeping them searchable, and finding passages in them."""
