"""The types of the items that the streams carry: frozen, typed, and independent of the rest of the program.

events         the events of the gateway or a recording: posted, edited, deleted, a place came or went, a reaction
messages       messages, authors and places; batches of messages, and the parts that batches are cut into
bounded        a dictionary of bounded size
conversations  the history that the answering steps see; the kinds of captured conversations, and their ids
outcomes       the result of each message and part
servers        values that may differ between servers of Discord
steps          the table of the steps of the graph
words          numbers in words, and text from outside without invisible characters
processes      the status of a process, and the version of the program
"""
