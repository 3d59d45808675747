"""How full the engine keeps a model's concurrency, and what a call costs in CPU.

1,000 extraction calls of 200 ms, every 20th 2 s, 16 in flight, in process, over a socket to a server in another process.
The limit is the sum of the latencies divided by the concurrency. Every answer goes into a SQLite AnswerStore.

    python benchmarks/model_calls.py [--calls 1000] [--latency 0.2] [--slow 2.0] [--concurrency 16]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measure import cpu_seconds, report
from kgrag.backends.local.openai import OpenAIChat
from kgrag.backends.local.stores import open_stores
from kgrag.engine import ModelEngine
from kgrag.engine.settings import ModelSettings
from kgrag.ports import AnswerStore
from kgrag.tasks.extraction import EXTRACT, ExtractionInput

PASSAGE = (
    "Ada Lovelace wrote about the Analytical Engine of Charles Babbage in 1843. Augusta Ada King was the only child of Lord Byron "
    "and Anne Isabella Milbanke. Mary Somerville introduced Ada Lovelace to Charles Babbage in 1833. The Analytical Engine was "
    "never finished, although Charles Babbage and Joseph Clement built parts of the Difference Engine. Luigi Federico Menabrea "
    "described the machine in Geneva, and Ada Lovelace translated his paper for Taylor's Scientific Memoirs. Case {number}."
)


@contextmanager
def model_server(*options: str) -> Iterator[str]:
    """URL of the stand-in server, in a process of its own so that its CPU is not counted."""
    command = [sys.executable, "-m", "kgrag.testing.openai_server", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def stats(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as response:
        return json.load(response)


async def ask(url: str, calls: int, concurrency: int, answers: AnswerStore) -> tuple[float, float, int]:
    """(wall seconds, CPU seconds, entities read) of ``calls`` different extractions asked at once."""
    settings = ModelSettings(provider="openai", base_url=url, model="stub", concurrency=concurrency)
    engine = ModelEngine({"default": OpenAIChat(settings)}, answers=answers)
    inputs = [ExtractionInput(title="Ada Lovelace", text=PASSAGE.format(number=i)) for i in range(calls)]
    await engine.ask(EXTRACT, ExtractionInput(text="Warm up."))
    wall, cpu = time.perf_counter(), cpu_seconds()
    outcomes = await asyncio.gather(*(engine.ask(EXTRACT, one) for one in inputs))
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    await engine.aclose()
    return wall, cpu, sum(len(o.value.entities) + len(o.value.relationships) for o in outcomes)


def run(name: str, options: argparse.Namespace, *, latency: float, slow: float) -> dict[str, Any]:
    server = ("--latency", str(latency), "--slow-every", "20", "--slow-latency", str(slow))
    with model_server(*server) as url, tempfile.TemporaryDirectory() as home:
        stores = open_stores(Path(home), "bench", mode="write", create=True)
        wall, cpu, items = asyncio.run(ask(url, options.calls, options.concurrency, stores.answers))
        counted = stats(url)
        stores.close()
    limit = counted["latency"] / options.concurrency
    return {
        "run": name,
        "calls": counted["chat"] - 1,
        "asked twice": counted["repeated"],
        "in flight": counted["most_active"],
        "wall s": round(wall, 2),
        "share of limit": round(limit / wall, 3) if limit else None,
        "items per call": round(items / options.calls, 1),
        "CPU ms per call": round(1000 * cpu / options.calls, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--slow", type=float, default=2.0)
    parser.add_argument("--concurrency", type=int, default=16)
    options = parser.parse_args()
    waiting = run("with latency", options, latency=options.latency, slow=options.slow)
    busy = run("without", options, latency=0.0, slow=0.0)
    report(
        "Model calls",
        [waiting, busy],
        {
            "share": waiting["share of limit"],
            "cpu_ms": busy["CPU ms per call"],
            "repeated": waiting["asked twice"] + busy["asked twice"],
        },
    )


if __name__ == "__main__":
    main()
