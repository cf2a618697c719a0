"""How well the document tools find and answer: suites of questions, figures, and a table."""
