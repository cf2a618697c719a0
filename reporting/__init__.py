"""What is told to who runs the bot: what was asked and not answered, what people voted, what the team taught, the cost.

reading     the record of how parts ended, and votes, of some days
cost        tokens and money, by step, day and channel
report      all of it, for some days, with groups of similar questions that had no answer
document    a report as headings, tables and bars: as Markdown, as a page, or as lines for a terminal
"""
