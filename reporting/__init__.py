"""What is told to who runs the bot: what was asked and not answered, what people voted, what the team taught, the cost.

reading     the record of how parts ended, and votes, of some days
gaps        questions that had no answer, by likeness
cost        tokens and money, by step, day and channel
report      all of it, for some days
document    a report as headings, tables and bars; `rendering` makes Markdown, a page, or lines for a terminal of it
"""
