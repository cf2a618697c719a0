"""The weights by which it is told whether an earlier answer of the team answers a question
(`services.search.retrieval`).

    python -m benchmarks.evaluation.teaching FOLDER

FOLDER is the FAQ of `benchmarks.evaluation.faq`. Each course is taught several times, with other entries; beside it
come the recordings of `EVAL_DATA`, of which `labels/pairs.jsonl` says what answers what. It prints the weights that all
of them give, and for each source the figures by the weights that the others give.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.evaluation import faq
from benchmarks.evaluation.data import recordings
from benchmarks.evaluation.fitting import Weights, regression
from benchmarks.evaluation.replaying import configured, pairs_in, replayed_apart
from benchmarks.evaluation.signals import asking_in
from services.knowledge import IndexEntry, LibrarySearch, Source
from services.search import PassageStore
from services.search.embedding import PackagedEmbedder
from services.search.retrieval import TeamAnswer, TeamAnswerSignals
from services.team import Pair, exchanges_of

NAMES = ("keywords", "ahead", "near", "missing")
SEEDS = range(1, 7)
LABELS = Path(__file__).with_name("labels") / "pairs.jsonl"
THRESHOLDS = (0.4, 0.45, 0.5)
_WORTH = {"faq": 1 / 6, "chat": 1.0}
"""What a candidate counts: of each question to the FAQ there are six, of which five are hardly ever right."""


@dataclass(frozen=True, slots=True)
class Candidate:
    signals: TeamAnswerSignals
    right: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the answers that may be quoted for it, the surest first. `run`: one teaching of a source."""

    source: str
    run: int
    was_taught: bool
    candidates: tuple[Candidate, ...]

    @property
    def worth(self) -> float:
        return _WORTH["faq" if self.source in faq.COURSES else "chat"]


@dataclass(slots=True)
class Topics:
    """A `Library` of topics in memory."""

    texts: Mapping[str, str]
    entries: tuple[IndexEntry, ...]

    async def index(self) -> Sequence[IndexEntry]:
        return self.entries

    async def load(self, source_id: str) -> Source:
        return Source(source_id, self.texts[source_id])


async def search_over(texts: Mapping[str, str], embedder: PackagedEmbedder) -> LibrarySearch:
    topics = Topics(texts, tuple(IndexEntry(source_id, "A topic.") for source_id in texts))
    search = LibrarySearch(topics, PassageStore(None), PassageStore(None), embedder)
    await search.refresh()
    await search.embed()
    return search


async def of_course(folder: Path, name: str, seed: int, embedder: PackagedEmbedder) -> list[Asked]:
    entries, asked = faq.course(folder, name, seed)
    texts = {
        f"team:{each.id}.txt": _topic(each.id, (("User", each.question), ("Team", each.answer))) for each in entries
    }
    search = await search_over(texts, embedder)
    return [
        Asked(
            name, seed, each.was_taught, _candidates((await search.find(each.text)).team_answers, f"qa_{each.entry_id}")
        )
        for each in asked
    ]


async def of_recording(recording: Path, embedder: PackagedEmbedder) -> list[Asked]:
    """What people say who may be asking, each with the exchanges that were over before."""
    with tempfile.TemporaryDirectory(prefix="millrace-eval-") as made:
        folder, data = Path(made), Path(made) / "replayed"
        code = await asyncio.to_thread(replayed_apart, recording, configured(recording, folder), data)
        if code:
            raise RuntimeError(f"{recording}: the replay ended with exit code {code}")
        pairs = {pair.conversation_id: pair for pair in pairs_in(data)}
    labels = _labels(recording.stem)
    found: list[Asked] = []
    known = {f"team:{pair.id}.txt": pair for pair in pairs.values()}
    search = await search_over({key: _topic(pair.id, _turns(pair)) for key, pair in known.items()}, embedder)
    for query in asking_in(recording):
        message_id, text = int(query.id.rpartition(":")[2]), query.text
        before = {key for key, pair in known.items() if pair.message_ids[-1] < message_id}
        if not before:
            continue
        taught = (await search.find_among(text, before)).team_answers
        candidates = tuple(
            Candidate(each.signals, labels.get((message_id, _first_of(known[each.hit.source_id], each))) in _GOOD)
            for each in taught
            if each.hit.passage.quotable
        )
        found.append(Asked(recording.stem, 0, was_taught=False, candidates=candidates))
    return found


_GOOD = frozenset({"answers", "helps"})


def _labels(recording: str) -> dict[tuple[int, int], str]:
    rows = (json.loads(line) for line in LABELS.read_text(encoding="utf-8").splitlines())
    return {(int(row["asked"]), int(row["answer"])): row["label"] for row in rows if row["recording"] == recording}


def _first_of(pair: Pair, taught: TeamAnswer) -> int:
    """The id of the message with which an exchange begins."""
    return pair.message_ids[[each.turns[0] for each in exchanges_of(pair)][taught.hit.passage.section]]


def _turns(pair: Pair) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in pair.turns]


def _topic(name: str, turns: Sequence[tuple[str, str]]) -> str:
    said = "".join(f"{who}: {text}".replace("\n", "\n  ") + "\n" for who, text in turns)
    return f"--- QA ---\nid: qa_{name.removeprefix('qa_')}\n{said}\n"


def _candidates(taught: Sequence[TeamAnswer], right: str) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(each.signals, each.hit.passage.anchor == right) for each in taught if each.hit.passage.quotable
    )


def fit(asked: Sequence[Asked]) -> Weights:
    """The weights under which what is right is most probable."""
    values = np.array([_values(each) for one in asked for each in one.candidates])
    right = np.array([float(each.right) for one in asked for each in one.candidates])
    return regression(values, right, np.array([one.worth for one in asked for _ in one.candidates]))


def _values(candidate: Candidate) -> list[float]:
    return [float(getattr(candidate.signals, name) or 0.0) for name in NAMES]


def figures(asked: Sequence[Asked], weights: Weights, threshold: float) -> str:
    """Of one run in the mean: right and wrong quotes of what was taught, and quotes of what was not."""
    right = wrong = false = 0
    runs = {one.run for one in asked}
    for one in asked:
        if not one.candidates:
            continue
        likely = weights.probability(np.array([_values(each) for each in one.candidates]))
        best = int(np.argmax(likely))
        if likely[best] >= threshold:
            good = one.candidates[best].right
            right += good
            wrong += one.was_taught and not good
            false += not one.was_taught and not good
    return f"{right / len(runs):.1f} right, {wrong / len(runs):.1f} wrong, {false / len(runs):.1f} false"


async def gathered(folder: Path) -> list[Asked]:
    embedder = PackagedEmbedder(workers=2)
    asked: list[Asked] = []
    for name in faq.COURSES:
        for seed in SEEDS:
            asked += await of_course(folder, name, seed, embedder)
    for recording in recordings():
        asked += await of_recording(recording, embedder)
    return asked


def main(arguments: Sequence[str] | None = None) -> int:
    cli = argparse.ArgumentParser(prog="benchmarks.evaluation.teaching", description="Weights for answers of the team.")
    cli.add_argument("folder", type=Path)
    asked = asyncio.run(gathered(cli.parse_args(arguments).folder))
    weights = fit(asked)
    shown = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(NAMES, weights.each, strict=True))
    print(f"{shown}; offset {weights.offset:.2f}")
    for source in dict.fromkeys(one.source for one in asked):
        others = fit([one for one in asked if one.source != source])
        own = [one for one in asked if one.source == source]
        for threshold in THRESHOLDS:
            print(f"      {source}, left out, from {threshold:.2f} on: {figures(own, others, threshold)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
