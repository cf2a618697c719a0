"""All suites, one after another, and what holds for all of them: isolation, cache, costs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.documents.figures import Figures, quantile, share, table
from benchmarks.documents.shelves import MIB, Asked, Scripted, Shelves, fill_shelves
from benchmarks.documents.suites import FOLLOW_UP, Question, Suites
from services.documents.asking.rewriting import ConversationContext
from services.documents.limits import FileLimits
from services.documents.reading.preparing import prepare
from services.documents.store.protocol import Collection, NewDocument, Origin
from services.documents.tools.core import DocumentQATool
from services.storage.files import in_thread

Tools = Mapping[str, DocumentQATool]

WANTED = {
    "log_line": ("hit_at_1", 0.98),
    "log_time": ("hit_at_1", 0.98),
    "log_identifier": ("hit_at_1", 0.98),
    "log_severity": ("hit_at_1", 0.95),
    "log_count": ("exact", 0.95),
    "log_absent": ("refused", 0.95),
    "log_paraphrase": ("hit_at_5", 0.70),
    FOLLOW_UP: ("hit_at_5", 0.90),
    f"{FOLLOW_UP}_rewritten": ("hit_at_5", 0.90),
    "config_lookup": ("hit_at_1", 0.95),
    "docs_faq": ("hit_at_5", 0.95),
}


async def evaluate(suites: Suites, folder: Path, out: Path | None, chroma: str | None = None) -> int:
    """Prints everything; 1 when a target is missed."""
    shelves = await fill_shelves(suites, folder, chroma)
    try:
        figures = await _all_suites(shelves, suites)
        print(f"{suites.folder}, embedded by {shelves.embedder.id}\n")
        print(table(figures))
        missed = _judged(figures)
        print()
        for each in figures:
            if each.missed:
                print(f"{each.suite}: not found: {', '.join(each.missed)}")
            if each.later:
                print(f"{each.suite}: not first: {', '.join(each.later)}")
        print(f"\nlines invented in answers to absent things: {sum(each.invented for each in figures)}")
        await _print_rest(shelves, suites, figures)
        if out is not None:
            lines = (json.dumps(each.record()) for each in figures)
            await in_thread(out.write_text, "".join(f"{line}\n" for line in lines), encoding="utf-8")
        return 1 if missed else 0
    finally:
        await shelves.store.close()


async def _all_suites(shelves: Shelves, suites: Suites) -> list[Figures]:
    figures: dict[str, Figures] = {}
    plain = shelves.tools()
    scripted = Scripted({f"{q.history[-1][0]}\n{q.text}": q.standalone for q in suites.questions if q.history})
    rewriting = shelves.tools(scripted)
    await shelves.embedder.embed(["so that the model is loaded"])
    for question in suites.questions:
        asked = await shelves.ask(plain, question, _context(question))
        _figures(figures, question.suite).add(question, asked)
        if question.suite == FOLLOW_UP:
            raw = await shelves.ask(plain, question)
            _figures(figures, f"{FOLLOW_UP}_raw").add(question, raw)
            rewritten = await shelves.ask(rewriting, question, _context(question))
            _figures(figures, f"{FOLLOW_UP}_rewritten").add(question, rewritten)
            cited = await _after_its_own_answer(shelves, plain, question)
            _figures(figures, f"{FOLLOW_UP}_cited").add(question, cited)
    return list(figures.values())


async def _after_its_own_answer(shelves: Shelves, tools: Tools, question: Question) -> Asked:
    """As in the tool loop: the question before was answered by the same tool, with its citations."""
    first = await shelves.ask(tools, replace(question, text=question.history[-1][0]))
    turn = (question.history[-1][0], first.result.answer)
    return await shelves.ask(tools, question, ConversationContext((turn,), first.result.citations))


def _context(question: Question) -> ConversationContext | None:
    return ConversationContext(question.history) if question.history else None


def _figures(figures: dict[str, Figures], suite: str) -> Figures:
    return figures.setdefault(suite, Figures(suite))


def _judged(figures: list[Figures]) -> list[str]:
    missed: list[str] = []
    print()
    for each in figures:
        if each.suite in WANTED:
            figure, wanted = WANTED[each.suite]
            seen = each.record()[figure]
            fine = isinstance(seen, float) and seen >= wanted
            print(f"{'pass' if fine else 'FAIL'}  {each.suite} {figure} {seen} (wanted {wanted})")
            missed += [] if fine else [each.suite]
    return missed


async def _print_rest(shelves: Shelves, suites: Suites, figures: list[Figures]) -> None:
    leaks, asked = await _isolation(shelves, suites)
    print(f"isolation: {asked} questions asked in another case, {leaks} passages of the right one")
    hits, again, stale = await _caching(shelves, suites)
    print(f"cache: {share(hits, again):.3f} of questions asked again were hits; {stale} stale after a write")
    times = [ms for each in figures for ms in each.retrieval_ms]
    print(f"retrieval: p50 {quantile(times, 0.5):.1f} ms, p95 {quantile(times, 0.95):.1f} ms")
    for kind, costs in shelves.costs.items():
        if costs.n_bytes:
            mib = costs.n_bytes / MIB
            print(
                f"{kind}: {costs.lexical_seconds / mib:.2f} s/MiB until searchable by words, "
                f"{costs.dense_seconds / mib:.1f} s/MiB more until embedded, "
                f"{costs.on_disk / max(costs.chunks, 1):.0f} bytes a chunk on disk"
            )


async def _isolation(shelves: Shelves, suites: Suites) -> tuple[int, int]:
    """Every question about one log, asked where another was posted."""
    threads = list(shelves.cases.values())
    leaks = asked = 0
    if len(threads) < 2:  # noqa: PLR2004 (one has no other)
        return 0, 0
    tools = shelves.tools()
    for question in suites.questions:
        if question.file not in shelves.cases:
            continue
        own = shelves.cases[question.file]
        other = threads[(threads.index(own) + 1) % len(threads)]
        result = await shelves.ask(tools, question, _context(question), thread=other)
        leaks += sum(passage.source == question.file for passage in result.passages)
        leaks += sum(citation.source == question.file for citation in result.result.citations)
        asked += 1
    return leaks, asked


async def _caching(shelves: Shelves, suites: Suites) -> tuple[int, int, int]:
    """Hits among questions asked again, their number, and hits after a write to what they are about."""
    tools = shelves.tools()
    some = [question for question in suites.questions if question.file in shelves.cases and not question.history][:50]
    for question in some:
        await shelves.ask(tools, question)
    hits = sum([(await shelves.ask(tools, question)).result.cached for question in some])
    extra = NewDocument(Origin("later.txt"), prepare("later.txt", b"One more note.\n", limits=FileLimits()))
    for thread in {shelves.cases[question.file] for question in some}:
        await shelves.store.add(Collection(f"case_{thread}", "case", thread), [extra])
    stale = sum([(await shelves.ask(tools, question)).result.cached for question in some])
    for thread in {shelves.cases[question.file] for question in some}:
        described = await shelves.store.describe(f"case_{thread}")
        for document in described.documents if described else ():
            if document.filename == "later.txt":
                await shelves.store.delete_document(f"case_{thread}", document.doc_id)
    return hits, len(some), stale
