"""What people write to turn the bot against others, through the whole of it, with a model that obeys all of it."""
