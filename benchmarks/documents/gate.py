"""Where the relevance gate stands, derived for the embedder in use.

Positives: each question of the prose suite, with the cosine of its right article's best passage. Negatives: questions
about other things (below), and each question with the article's own passages taken away, with the best cosine that is
left. The threshold is the highest that keeps at least 97 in 100 of the positives.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.documents.figures import quantile
from benchmarks.documents.shelves import Shelves, fill_shelves
from benchmarks.documents.suites import DOCS, Suites
from services.search.retrieval import QueryVector

KEPT = 0.97

ELSEWHERE = (
    "What should I feed a kitten that refuses dry food?",
    "How long do I roast a chicken of two kilos?",
    "Who won the football game last night?",
    "What is the best season to plant tulips?",
    "How do I get a red wine stain out of a carpet?",
    "Which train goes from Vienna to Venice overnight?",
    "My sourdough does not rise, what is wrong?",
    "Can you recommend a hotel near the beach?",
    "How much does a new bicycle tyre cost?",
    "What time does the pharmacy close on Sundays?",
    "Is it safe to swim after eating?",
    "How do I tune a guitar by ear?",
    "Why is the sky red in the evening?",
    "What is the capital of Mongolia?",
    "How do I renew my passport?",
    "Which vaccinations do I need for Kenya?",
)


async def show_gate(suites: Suites, folder: Path) -> int:
    shelves = await fill_shelves(suites, folder)
    try:
        right, next_best, elsewhere = await _cosines(shelves, suites)
    finally:
        await shelves.store.close()
    if not right:
        print("there are no questions about prose in these suites")
        return 2
    threshold = quantile(right, 1 - KEPT)
    print(f"embedder {shelves.embedder.id}")
    for name, values in (("right", right), ("best wrong", next_best), ("elsewhere", elsewhere)):
        spread = ", ".join(f"{at:.0%} {quantile(values, at):.3f}" for at in (0.0, 0.03, 0.1, 0.5, 0.9, 0.97))
        print(f"{name:<12} n {len(values):>4}  {spread}")
    refused = sum(value < threshold for value in elsewhere) / len(elsewhere)
    print(f"threshold {threshold:.3f} keeps {KEPT:.0%} of the right ones, refuses {refused:.0%} of questions elsewhere")
    for tried in (0.20, 0.25, 0.30, 0.35, 0.40):
        kept = sum(value >= tried for value in right) / len(right)
        gone = sum(value < tried for value in elsewhere) / len(elsewhere)
        print(f"  at {tried:.2f}: {kept:.1%} kept, {gone:.1%} refused")
    return 0


async def _cosines(shelves: Shelves, suites: Suites) -> tuple[list[float], list[float], list[float]]:
    right: list[float] = []
    wrong: list[float] = []
    for question in suites.questions:
        if question.suite != DOCS:
            continue
        scores = await _scores(shelves, question.text)
        own = [score for name, score in scores if name in question.gold_docs]
        others = [score for name, score in scores if name not in question.gold_docs]
        right += [max(own)] if own else []
        wrong += [max(others)] if others else []
    elsewhere = [max(score for _, score in await _scores(shelves, text)) for text in ELSEWHERE]
    return right, wrong, elsewhere


async def _scores(shelves: Shelves, text: str) -> Sequence[tuple[str, float]]:
    meaning = QueryVector((await shelves.embedder.embed([text]))[0], shelves.embedder.id, calibrated=False)
    hits = await shelves.search.find_in("kb", text, meaning)
    return [(Path(hit.source_id.removeprefix("kb:")).stem, hit.cosine) for hit in hits if hit.cosine is not None]
