"""How full the engine keeps a model's concurrency, and what a call costs in CPU.

1,000 extraction calls of 200 ms, every 20th 2 s, 16 in flight, in process, over a socket to a server in another process.
The limit is the sum of the latencies divided by the concurrency. Every answer goes into a SQLite AnswerStore. The same
requests from a bare client, and the share a perfect schedule reaches, stand beside it.

    python benchmarks/model_calls.py [--calls 1000] [--latency 0.2] [--slow 2.0] [--concurrency 16]
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

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


async def ask(url: str, options: argparse.Namespace, answers: AnswerStore) -> tuple[float, float, int]:
    """(wall seconds, CPU seconds, items read) of different extractions, all asked at once."""
    settings = ModelSettings(provider="openai", base_url=url, model="stub", concurrency=options.concurrency)
    engine = ModelEngine({"default": OpenAIChat(settings)}, answers=answers)
    inputs = [ExtractionInput(title="Ada Lovelace", text=PASSAGE.format(number=i)) for i in range(options.calls)]
    wall, cpu = time.perf_counter(), cpu_seconds()
    outcomes = await asyncio.gather(*(engine.ask(EXTRACT, one) for one in inputs))
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    await engine.aclose()
    return wall, cpu, sum(len(o.value.entities) + len(o.value.relationships) for o in outcomes)


async def ask_bare(url: str, options: argparse.Namespace, answers: AnswerStore) -> tuple[float, float, int]:
    """The same requests from a bare client with a semaphore, which reads nothing: what the machine lets through now."""
    bodies = [
        msgspec.json.encode({"model": "stub", "messages": EXTRACT.messages(ExtractionInput(text=PASSAGE.format(number=i)))})
        for i in range(options.calls)
    ]
    slots = asyncio.Semaphore(options.concurrency)

    async def post(session: aiohttp.ClientSession, body: bytes) -> None:
        async with slots, session.post(f"{url}/chat/completions", data=body) as response:
            await response.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        wall, cpu = time.perf_counter(), cpu_seconds()
        await asyncio.gather(*(post(session, body) for body in bodies))
        return time.perf_counter() - wall, cpu_seconds() - cpu, 0


def schedule(options: argparse.Namespace) -> float:
    """Share of the limit that a perfect client reaches: at the end, slow calls keep some slots waiting."""
    slots = [0.0] * options.concurrency
    latencies = [options.slow if i % 20 == 19 else options.latency for i in range(options.calls)]
    for latency in latencies:
        heapq.heapreplace(slots, slots[0] + latency)
    return sum(latencies) / options.concurrency / max(slots)


Asked = Callable[[str, argparse.Namespace, AnswerStore], Coroutine[Any, Any, tuple[float, float, int]]]


def run(name: str, asked: Asked, options: argparse.Namespace, *, latency: float, slow: float) -> dict[str, Any]:
    server = ("--latency", str(latency), "--slow-every", "20", "--slow-latency", str(slow))
    with model_server(*server) as url, tempfile.TemporaryDirectory() as home:
        stores = open_stores(Path(home), "bench", mode="write", create=True)
        wall, cpu, items = asyncio.run(asked(url, options, stores.answers))
        counted = stats(url)
        stores.close()
    limit = counted["latency"] / options.concurrency
    return {
        "run": name,
        "calls": counted["chat"],
        "asked twice": counted["repeated"],
        "in flight": counted["most_active"],
        "wall s": round(wall, 2),
        "share of limit": round(limit / wall, 3) if limit else "",
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
    waiting = run("engine", ask, options, latency=options.latency, slow=options.slow)
    bare = run("bare client", ask_bare, options, latency=options.latency, slow=options.slow)
    busy = run("engine, no latency", ask, options, latency=0.0, slow=0.0)
    bare_busy = run("bare client, no latency", ask_bare, options, latency=0.0, slow=0.0)
    report(
        "Model calls",
        [waiting, bare, busy, bare_busy],
        {
            "share": waiting["share of limit"],
            "share_of_a_bare_client": bare["share of limit"],
            "share_of_a_perfect_one": round(schedule(options), 3),
            "cpu_ms": busy["CPU ms per call"],
            "cpu_ms_of_a_bare_client": bare_busy["CPU ms per call"],
            "repeated": waiting["asked twice"] + busy["asked twice"],
        },
    )


if __name__ == "__main__":
    main()
