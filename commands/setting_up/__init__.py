"""`--init`: from a clone to a bot that answers from its operator's documentation, question by question.

steps       the questions, in their order, how each answer is checked, and what comes after them
documents   the question for the documentation, and how folders, sites and pages are tried
answers     a person at a terminal or a file answers; what is kept goes to config.local.yaml, .env and the list of pages
"""

# pyright: reportUnusedImport=false
from commands.setting_up.steps import run, set_up
