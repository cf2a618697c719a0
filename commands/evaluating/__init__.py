"""`--eval`: the operator's own questions, asked of the knowledge as it is, and judged by what the operator expects.

questions   the file of questions
asking      the questions, put to the answer chain      underway    how far it is
judging     replies, compared with what is right        comparing   two runs
runs        a run as JSON Lines                         showing     a run for people
from_votes  `--from-votes`: a file of questions, made of what people voted
steps       all of it, in its order
"""

# pyright: reportUnusedImport=false
from commands.evaluating.steps import run
