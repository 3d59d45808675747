"""What the extractive engine reads, beside a real model's reading of the same passages and a plain rule of capitals.

    python -m benchmarks.extraction [FOLDER]

Recall and precision of entities and of related pairs (unordered), names compared by ``entity_key``. ``listed pair`` counts only
the triples both ends of which the model also lists as entities. The rules were chosen on the passages of half of the titles;
the figures are of the other half. FOLDER is the test data's (default: KGRAG_TEST_DATA, else beside the checkout).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks import measure
from kgrag.backends.local.extractive.extract import extract
from kgrag.ids import digest, entity_key, shard_of
from kgrag.tasks.extraction import ExtractionInput
from kgrag.text import sentences

GRAPH = "graphs/openie_musique_train_gpt35/openie.jsonl"
_CAPITALS = re.compile(
    r"[A-Z][\w'’.-]*(?:\s+(?:(?:of|the|de|von|van|la|le|du|and|for)\s+){0,2}[A-Z][\w'’.-]*)*|\b(?:1\d{3}|20\d\d)\b"
)


@dataclass(slots=True)
class Read:
    """Entity keys, and unordered pairs of keys."""

    entities: set[str]
    pairs: set[frozenset[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("KGRAG_TEST_DATA", str(measure.ROOT.parent / "shared" / "data"))
    parser.add_argument("data", type=Path, nargs="?", default=Path(data), metavar="FOLDER")
    lines = (parser.parse_args().data / GRAPH).read_text(encoding="utf-8").splitlines()
    passages = [passage for line in lines if shard_of(digest((passage := json.loads(line))["title"]), 2) == 1]
    gold = [_model(passage) for passage in passages]
    rows = [
        _row(name, rule, passages, gold) for name, rule in (("capitals and years", _plain_rule), ("extractive engine", _extractive))
    ]
    measure.report("extraction", rows, {"passages": len(passages), **{row.pop("reader"): row for row in map(dict, rows)}})


def _row(name: str, rule: Any, passages: list[dict[str, Any]], gold: list[Read]) -> dict[str, Any]:
    rule(passages[0])  # compiles its patterns
    started = time.process_time()
    found: list[Read] = [rule(passage) for passage in passages]
    cpu = time.process_time() - started
    row: dict[str, Any] = {"reader": name}
    row |= _rates("entity", [(f.entities, g.entities) for f, g in zip(found, gold, strict=True)])
    row |= _rates("pair", [(f.pairs, g.pairs) for f, g in zip(found, gold, strict=True)])
    listed = [{pair for pair in g.pairs if pair <= g.entities} for g in gold]
    row |= _rates("listed pair", [(f.pairs, pairs) for f, pairs in zip(found, listed, strict=True)])
    return {**row, "CPU ms per 600 characters": 1000 * 600 * cpu / sum(len(passage["text"]) for passage in passages)}


def _rates(what: str, sides: list[tuple[set[Any], set[Any]]]) -> dict[str, float]:
    hits = sum(len(found & gold) for found, gold in sides)
    return {
        f"{what} recall": hits / sum(len(gold) for _, gold in sides),
        f"{what} precision": hits / sum(len(found) for found, _ in sides),
    }


def _model(passage: dict[str, Any]) -> Read:
    """What the model read; a triple that is not three strings is left out."""
    triples = [t for t in passage["triples"] if len(t) == 3 and all(isinstance(part, str) for part in t)]
    return Read(_keys(passage["entities"]), _pairs((t[0], t[2]) for t in triples))


def _extractive(passage: dict[str, Any]) -> Read:
    made = extract(ExtractionInput(title=passage["title"], text=passage["text"]))
    return Read(_keys(e.name for e in made.entities), _pairs((r.source, r.target) for r in made.relationships))


def _plain_rule(passage: dict[str, Any]) -> Read:
    """Every run of capitalised words and every year; all that stand in one sentence are related."""
    text = passage["text"]
    names = [[match.group() for match in _CAPITALS.finditer(text[start:end])] for start, end in sentences(text)]
    return Read(
        _keys(name for inside in names for name in inside), _pairs(pair for inside in names for pair in combinations(inside, 2))
    )


def _keys(names: Iterable[str]) -> set[str]:
    return {key for name in names if (key := entity_key(name))}


def _pairs(pairs: Iterable[tuple[str, str]]) -> set[frozenset[str]]:
    made = {frozenset((entity_key(a), entity_key(b))) for a, b in pairs}
    return {pair for pair in made if len(pair) == 2}


if __name__ == "__main__":
    main()
