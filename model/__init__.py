"""The vocabulary: what the streams carry. Frozen, typed, and importing nothing of the rest.

events         what the gateway or a recording said: posted, edited, deleted, a place came or went, a reaction
messages       one message, its author, its place; what one author wrote until falling quiet, and the parts of that
bounded        a dictionary of bounded size
conversations  the history that the answering steps see; the kinds of captured conversations, and their ids
outcomes       what became of each part
servers        values that servers of Discord may have of their own
steps          the steps of the graph: one table of what is told of each
words          numbers in words, and text from outside without what nobody sees
processes      what a process reports of itself, and the version of the program
"""
