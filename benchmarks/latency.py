"""How near whole ingestions come to the limit that a slow model sets, in process and on Ray.

1,000 units with default settings (read twice, communities and reports), 200 ms per call, every 20th 2 s, 16 in flight, over a
socket to a server in another process. The limit is the sum of the latencies divided by the concurrency. ``queued`` is how long the measuring process waited for a CPU
that others had: shares mean something where it is near nothing.

    python benchmarks/latency.py [--units 1000] [--runners local,ray]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.corpus import write_passages
from benchmarks.measure import in_child, report
from benchmarks.model_calls import model_server, stats

CONCURRENCY = 16
LATENCY, SLOW, EVERY = 0.2, 2.0, 20
TARGET = 0.9


def run(runner: str, units: int) -> dict[str, Any]:
    server = ("--latency", str(LATENCY), "--slow-every", str(EVERY), "--slow-latency", str(SLOW))
    with model_server(*server) as url, tempfile.TemporaryDirectory() as home:
        corpus = write_passages(Path(home) / "corpus.jsonl", units)
        step = ("index", str(corpus), "--home", home, "--url", url, "--dimension", "64", "--runner", runner)
        done = in_child("system.py", *step)
        counted = stats(url)
    read = done["extract_calls"]
    waited = read // EVERY * SLOW + (read - read // EVERY) * LATENCY  # the first calls of a run are those of the extract stage
    return {
        "runner": runner,
        "units": done["passages"],
        "calls": counted["chat"],
        "asked twice": counted["repeated"],
        "in flight": counted["most_active"],
        "extract s": done["stages"]["extract"],
        "extract share": waited / CONCURRENCY / done["stages"]["extract"],
        "run s": done["wall_s"],
        "run share": counted["latency"] / CONCURRENCY / done["wall_s"],
        "CPU s": done["cpu_s"],
        "queued s": done["queued_s"],
        "failed": done["failed"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=1000)
    parser.add_argument("--runners", default="local,ray")
    options = parser.parse_args()
    rows = [run(runner, options.units) for runner in options.runners.split(",")]
    summary = {
        row["runner"]: {
            "extract_share": round(row["extract share"], 3),
            "run_share": round(row["run share"], 3),
            "asked_twice": row["asked twice"],
        }
        for row in rows
    }
    report("Ingestion with a slow model", rows, {**summary, "target": TARGET})


if __name__ == "__main__":
    main()
