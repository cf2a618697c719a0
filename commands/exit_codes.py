"""How a command ends."""

DONE, FAILED, UNUSABLE = 0, 1, 2
"""Done; finished with failures or cut off; nothing done, since configuration or input cannot be used."""
