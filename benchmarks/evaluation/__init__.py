"""How good it is, measured against what people have annotated.

conversations  captured conversations against annotated ones: the arithmetic
replaying      one recording through the program itself, in a folder that is removed afterwards
captures       the suite: the figures of each recording, beside what is wanted
sweep          the same figures for other settings
data           where the annotated material lies
"""
