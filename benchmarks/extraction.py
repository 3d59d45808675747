"""What the extractive engine reads, beside a real model's reading of the same passages and a plain rule of capitals.

    python -m benchmarks.extraction [--data FOLDER]

Recall and precision of entities and of related pairs (unordered), names compared by ``entity_key``. Every second passage
was used to choose the rules; the figures are of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks import measure
from kgrag.backends.local.extractive.extract import extract
from kgrag.ids import entity_key
from kgrag.tasks.extraction import ExtractionInput
from kgrag.text import sentences

GRAPH = "graphs/openie_musique_train_gpt35/openie.jsonl"
_CAPITALS = re.compile(
    r"[A-Z][\w'’.-]*(?:\s+(?:(?:of|the|de|von|van|la|le|du|and|for)\s+){0,2}[A-Z][\w'’.-]*)*|\b(?:1\d{3}|20\d\d)\b"
)

Read = tuple[set[str], set[frozenset[str]]]
"""Entity keys, and pairs of them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("KGRAG_TEST_DATA", str(measure.ROOT.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=Path(data))
    passages = [json.loads(line) for line in (parser.parse_args().data / GRAPH).read_text().splitlines()][1::2]
    rows = []
    for name, rule in (("capitals and years", _plain_rule), ("extractive engine", _extractive)):
        started = time.process_time()
        found = [rule(passage) for passage in passages]
        cpu = 1000 * (time.process_time() - started) / len(passages)
        gold = [_model(passage) for passage in passages]
        row: dict[str, Any] = {"reader": name}
        for n, what in enumerate(("entity", "pair")):
            hits = sum(len(f[n] & g[n]) for f, g in zip(found, gold, strict=True))
            row[f"{what} recall"] = hits / sum(len(g[n]) for g in gold)
            row[f"{what} precision"] = hits / sum(len(f[n]) for f in found)
        rows.append({**row, "CPU ms per passage": cpu})
    measure.report("extraction", rows, {"passages": len(passages), **{row.pop("reader"): row for row in map(dict, rows)}})


def _model(passage: dict[str, Any]) -> Read:
    """What the model read; a triple that is not three strings is left out."""
    triples = [t for t in passage["triples"] if len(t) == 3 and all(isinstance(part, str) for part in t)]
    return _keys(passage["entities"]), _pairs((t[0], t[2]) for t in triples)


def _extractive(passage: dict[str, Any]) -> Read:
    made = extract(ExtractionInput(title=passage["title"], text=passage["text"]))
    return _keys(e.name for e in made.entities), _pairs((r.source, r.target) for r in made.relationships)


def _plain_rule(passage: dict[str, Any]) -> Read:
    """Every run of capitalised words and every year; all that stand in one sentence are related."""
    text = passage["text"]
    names = [[match.group() for match in _CAPITALS.finditer(text[start:end])] for start, end in sentences(text)]
    return _keys(name for inside in names for name in inside), _pairs(pair for inside in names for pair in combinations(inside, 2))


def _keys(names: Any) -> set[str]:
    return {key for name in names if (key := entity_key(name))}


def _pairs(pairs: Any) -> set[frozenset[str]]:
    made = {frozenset((entity_key(a), entity_key(b))) for a, b in pairs}
    return {pair for pair in made if len(pair) == 2}


if __name__ == "__main__":
    main()
