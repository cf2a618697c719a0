"""How good it is, measured against what people have annotated.

conversations  captured conversations against annotated ones: the arithmetic
replaying      one recording through the program itself, in a folder that is removed afterwards
following      the suite: conversations as they are followed message by message, without the program around it
keeping_out    the suite: where a bot that has an answer to every question would speak, among people and their staff
captures       the suite: the figures of each recording, beside what is wanted
sweep          the same figures for other settings
questions      questions about a documentation, and a chat in which they are asked
asking         such a chat through the program itself
judging        replies against what answers the questions: the arithmetic
answers        the suite: the figures of real documentations, beside what is wanted
signals        what the search shows of each question
fitting        the weights by which its confidence is told from that
data           where the annotated material lies
"""
