"""The operators of the program: they follow, screen, route, gather, answer, capture, curate and update.

Operators take an Observable and give an Observable; steps are functions that an operator awaits for each item
(`operators.step`). Generic operators are in `dataflow`.
"""
