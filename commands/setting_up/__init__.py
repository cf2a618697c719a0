"""`--init`: from a clone to a bot that answers from its operator's documentation, question by question.

steps       the questions, in their order, and what comes after them
people      Discord and the team           documents, models      what it answers from, and who writes
answers     who answers: a person at a terminal, or a file
keeping     what is kept: config.local.yaml, .env, the list of pages
"""

# pyright: reportUnusedImport=false
from commands.setting_up.steps import run, set_up
