"""`--eval`: the operator's own questions, asked of the knowledge as it is, and judged by what the operator expects.

questions   the file of questions: read, or made of what people voted (`--from-votes`)
judging     replies, compared with what is right, and two runs with each other
runs        a run as JSON Lines, how far it is, and its report for people
steps       all of it, from options to exit code
"""

# pyright: reportUnusedImport=false
from commands.evaluating.steps import run
