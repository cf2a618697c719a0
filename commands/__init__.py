"""The commands of the command line, one module each; `dispatch` runs the chosen one."""
