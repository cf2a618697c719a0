"""Reports for the operator: unanswered questions, votes, captured conversations, and cost.

reading     reads the outcomes and votes of some days; the questions that were dismissed
cost        tokens and money, by step, day and channel
report      the report of some days, with groups of similar questions that had no answer
document    a report as headings, tables and bars: as Markdown, as a page, or as lines for a terminal
"""
