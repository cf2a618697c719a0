"""The verbs of the command line, one module each. `dispatch` finds the one that was asked for."""
