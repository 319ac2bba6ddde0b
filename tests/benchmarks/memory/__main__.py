"""`python -m tests.benchmarks.memory`: how much of what answers a question is among the first ten entries found.

It needs the model of `make model`; `--simple` measures with the one that comes with Errand. Each split has a table by
kind of question for each style, with the baselines (vectors alone, full text alone, and both merged by their ranks),
and one with its short histories as long turns and one with its long ones among pages, each in one store. `--tune` fits
the weights of the ranking on all these of the split `tune` together.
"""

import asyncio
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import ENGLISH
from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index import WordIndex
from errand.engine.memory.passages import embed_entries, vectors_of
from errand.engine.memory.ranking.question import read_question
from errand.engine.memory.ranking.ranking import READ, WEIGHTS, Features, Ranked, rank
from errand.engine.memory.search import NEAREST, proposed
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from errand.engine.memory.words.hits import word_hits
from tests.benchmarks.memory.histories import QUESTION_KINDS, SPLITS, STYLES, History, Split, Style, all_histories
from tests.benchmarks.memory.long_pages import long_pages
from tests.benchmarks.memory.long_turns import long_turns
from tests.support.minilm import embedder_for

_FIRST = 10
_FUSION = 60
# Of each question, the candidates that the fit sees: those that score best before it.
_FITTED = 80
_STEPS = 300
_RATE = 0.3
_CALM = 0.01


@dataclass(frozen=True, slots=True)
class Case:
    """A question with what was found: ranked entries with their features, and the scores that the baselines use."""

    split: Split
    style: Style
    kind: str
    gold: frozenset[int]
    ranked: Sequence[Ranked]
    nearness: Mapping[int, float]
    word_scores: Mapping[int, float]


async def cases_of(history: History, embedder: Embedder) -> list[Case]:
    entries = [
        MemoryEntry(number, entry.id, entry.session, entry.speaker, entry.role, entry.at.astimezone(), entry.text)
        for number, entry in enumerate(history.entries, 1)
    ]
    numbers = {entry.id: entry.number for entry in entries}
    questions = [gold_question for gold_question in history.questions if gold_question.gold]
    points = await embed_entries(entries, embedder)
    asked = await embedder.embed(tuple(gold_question.text for gold_question in questions), CancelSignal())
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        index = WordIndex(folder / "memory.db")
        kind = embedder.kind or ENGLISH
        vectors = EmbeddedVectors(folder / "vectors", kind.dimensions, vectors_of(kind))
        stack.callback(index.close)
        stack.push_async_callback(vectors.close)
        index.add(entries)
        await vectors.upsert(points)
        cases: list[Case] = []
        for gold_question, vector in zip(questions, asked, strict=True):
            nearness = {hit.number: hit.score for hit in await vectors.search(vector, NEAREST)}
            question = read_question(gold_question.text, entries[-1].at.date())
            word_matches = word_hits(question.terms, index, None, question.text, question.language)
            heads = proposed(question, index, word_matches, nearness)
            ranked = rank(
                question,
                heads,
                word_matches,
                nearness,
                index.traits,
                max(READ, _FITTED),
                stated=index.stated_days(head.number for head in heads),
            )
            gold = frozenset(numbers[key] for key in gold_question.gold)
            cases.append(
                Case(history.split, history.style, gold_question.kind, gold, ranked, nearness, word_matches.own)
            )
    return cases


def by_ranking(case: Case) -> list[int]:
    return [ranked.number for ranked in case.ranked]


def by_vectors(case: Case) -> list[int]:
    return _best(case.nearness)


def by_words(case: Case) -> list[int]:
    return _best(case.word_scores)


def by_ranks(case: Case) -> list[int]:
    """Reciprocal rank fusion."""
    scores = dict[int, float]()
    for order in (by_vectors(case), by_words(case)):
        for position, number in enumerate(order, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (_FUSION + position)
    return _best(scores)


ENGINES: dict[str, Callable[[Case], list[int]]] = {
    "vectors": by_vectors,
    "full text": by_words,
    "merged by rank": by_ranks,
    "Errand": by_ranking,
}


def recall(cases: Sequence[Case], engine: Callable[[Case], list[int]], first: int = _FIRST) -> float:
    """Return the recall in percent, as the mean over the questions."""
    return 100 * fmean(len(case.gold.intersection(engine(case)[:first])) / len(case.gold) for case in cases)


def reciprocal_rank(cases: Sequence[Case], engine: Callable[[Case], list[int]]) -> float:
    return fmean(
        next((1 / position for position, number in enumerate(engine(case), 1) if number in case.gold), 0.0)
        for case in cases
    )


def table(cases: Sequence[Case]) -> Iterator[str]:
    yield f"| questions of | {' | '.join(ENGINES)} |"
    yield f"|---|{'---|' * len(ENGINES)}"
    for kind in (*QUESTION_KINDS, "all kinds"):
        chosen = [case for case in cases if kind in (case.kind, "all kinds")]
        if chosen:
            yield _line(f"{kind} ({len(chosen)})", (f"{recall(chosen, engine):.1f}" for engine in ENGINES.values()))
    yield _line("all kinds, first 20", (f"{recall(cases, engine, 20):.1f}" for engine in ENGINES.values()))
    yield _line("all kinds, MRR", (f"{reciprocal_rank(cases, engine):.2f}" for engine in ENGINES.values()))


def fitted(cases: Sequence[Case]) -> Features:
    """The weights under which what answers a question is most likely to be drawn first, held small.

    Those of identifiers and of futile tasks are no matter of degree: they stay.
    """
    signs = [-1.0 if weight < 0 else 1.0 for weight in WEIGHTS]
    samples = [sample for case in cases if (sample := _sample(case)) and any(is_gold for _, is_gold in sample)]
    weights = list(signs)
    for step in range(1, _STEPS + 1):
        slope = [_CALM * weight for weight in weights]
        for sample in samples:
            for index, part in enumerate(_slope(sample, weights)):
                slope[index] += part / len(samples)
        rate = _RATE * 20 / max(20, step)
        moved = (weight - 10 * rate * part for weight, part in zip(weights, slope, strict=True))
        weights = [sign * max(0.0, sign * weight) for sign, weight in zip(signs, moved, strict=True)]
    return Features(*(round(weight / weights[0], 2) for weight in weights))._replace(
        futile=WEIGHTS.futile, exact=WEIGHTS.exact
    )


def _sample(case: Case) -> list[tuple[tuple[float, ...], bool]]:
    return [
        (ranked.features, ranked.number in case.gold)
        for position, ranked in enumerate(case.ranked)
        if position < _FITTED or ranked.number in case.gold
    ]


def _slope(sample: list[tuple[tuple[float, ...], bool]], weights: list[float]) -> list[float]:
    """Return the gradient of the negative logarithm of the answers' share, by weight."""
    scores = [sum(map(float.__mul__, weights, features)) for features, _ in sample]
    shares = [math.exp(score - max(scores)) for score in scores]
    total = sum(shares)
    answers = sum(share for share, (_, is_gold) in zip(shares, sample, strict=True) if is_gold)
    slope = [0.0] * len(weights)
    for share, (features, is_gold) in zip(shares, sample, strict=True):
        pull = share / total - (share / answers if is_gold else 0.0)
        slope = [part + pull * feature for part, feature in zip(slope, features, strict=True)]
    return slope


def _best(scores: Mapping[int, float]) -> list[int]:
    return sorted(scores, key=lambda number: -scores[number])


def _line(head: str, cells: Iterator[str]) -> str:
    return f"| {head} | {' | '.join(cells)} |"


async def main(arguments: Sequence[str]) -> int:
    embedder = embedder_for(arguments)
    if embedder is None:
        return 1
    histories = all_histories()
    try:
        cases = [case for history in histories for case in await cases_of(history, embedder)]
        joined = [case for split in SPLITS for case in await cases_of(long_turns(histories, split), embedder)]
        pages = [case for split in SPLITS for case in await cases_of(long_pages(histories, split), embedder)]
    finally:
        await embedder.close()
    if "--tune" in arguments:
        fitted_weights = fitted([case for case in (*cases, *joined, *pages) if case.split == "tune"])
        pairs = zip(Features._fields, fitted_weights, WEIGHTS, strict=True)
        sys.stdout.write("".join(f"{name}: {weight:g} (now {now:g})\n" for name, weight, now in pairs))
    styled = {f"style `{style}`": [case for case in cases if case.style == style] for style in STYLES}
    remade = {"style `short` as long turns": joined, "style `long` with pages": pages}
    for split in SPLITS:
        for name, every in (styled | remade).items():
            lines = "\n".join(table([case for case in every if case.split == split]))
            sys.stdout.write(f"\nRecall of the first {_FIRST}, in percent, split `{split}`, {name}\n\n{lines}\n")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
