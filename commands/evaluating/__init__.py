"""`--eval`: the operator's own questions, asked of the knowledge as it is, and judged by what the operator expects.

questions   the file of questions: read, or made of what people voted (`--from-votes`)
runs        a run: replies graded and compared, kept as JSON Lines, and told to people
steps       all of it, from options to exit code
"""

# pyright: reportUnusedImport=false
from commands.evaluating.steps import run
