"""A small bot of the same shape, without what makes ours one: the yardstick.

The same library, a virtual loop, a quiet window, five asynchronous steps, a lessons branch; but no edits, deletions,
deduplication, routing, context, order per asker, deadlines, cancellation, citations, threads or accounting.
"""
