"""Peak memory of an indexing process, and that of Ray's driver as the corpus grows.

2,000 passages in process with default settings against the stand-in model server, above the bare interpreter with the same
imports. Then 2,000 and 20,000 units on Ray with scripted answers: what the driver holds must not follow the corpus.

    python benchmarks/memory.py [--only local,ray]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.corpus import write_passages
from benchmarks.measure import in_child, report
from benchmarks.model_calls import model_server

PASSAGES = 2000
MOST_MEGABYTES = 300
UNITS = (2000, 20_000)
MOST_GROWTH = 0.1


def local() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    with model_server("--dimension", "384") as url, tempfile.TemporaryDirectory() as home:
        corpus = write_passages(Path(home) / "corpus.jsonl", PASSAGES)
        done = in_child("system.py", "index", str(corpus), "--home", home, "--url", url, "--dimension", "384")
    above = done["peak_mb"] - done["imports_mb"]
    row = {
        "passages": done["passages"],
        "entities": done["entities"],
        "relationships": done["relationships"],
        "imports MB": done["imports_mb"],
        "peak MB": done["peak_mb"],
        "above MB": above,
        "target MB": MOST_MEGABYTES,
    }
    return [row], {"above_mb": round(above), "target_mb": MOST_MEGABYTES}


def ray() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    rows = []
    lean = ("--set", "models.embedding.provider=none", "--set", 'index.methodologies=["lightrag"]')
    for units in UNITS:
        with tempfile.TemporaryDirectory() as home:
            corpus = write_passages(Path(home) / "corpus.jsonl", units, sentences=2)
            done = in_child("system.py", "index", str(corpus), "--home", home, "--runner", "ray", "--scripted", *lean)
        rows.append(
            {"units": done["passages"], "driver peak MB": done["peak_mb"], "wall s": done["wall_s"], "failed": done["failed"]}
        )
    growth = rows[1]["driver peak MB"] / rows[0]["driver peak MB"] - 1
    return rows, {"growth": round(growth, 3), "target": MOST_GROWTH}


PARTS = {"local": local, "ray": ray}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts to run, separated by commas")
    options = parser.parse_args()
    for name in options.only.split(","):
        report(f"Memory: {name}", *PARTS[name]())


if __name__ == "__main__":
    main()
