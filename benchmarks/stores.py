"""CPU of the embedded stores: writing, refreshing, searching, walking, opening.

    python benchmarks/stores.py [--rows 20000] [--dimension 384]

Prints a table and one JSON line. Times are process CPU (user and system), bytes are those written to files.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kgrag.backends.local.stores import LocalStores, open_stores
from kgrag.filters import parse
from kgrag.ids import digest
from kgrag.ports import Edge, Row, Vertex

WORDS = 20_000
TOKENS = 60
TAGS = 100

_OPEN = """
import sys, time
from pathlib import Path
start = time.process_time()
from kgrag.backends.local.stores import open_stores
imported = time.process_time()
stores = open_stores(Path(sys.argv[1]), "bench", mode="read")
opened = time.process_time()
stores.search.lexical("relationships", ["w1", "w7"], 40)
lexical = time.process_time()
import numpy as np
stores.search.nearest("relationships", np.ones(int(sys.argv[2]), np.float32), 40)
print(imported - start, opened - imported, lexical - opened, time.process_time() - lexical)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dimension", type=int, default=384)
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="kgrag-stores-"))
    try:
        figures = measure(home, options.rows, options.dimension)
    finally:
        shutil.rmtree(home)
    for name, value in figures.items():
        print(f"{name:<46} {value:>12,.3f}")
    print(json.dumps(figures))


def measure(home: Path, rows: int, dimension: int) -> dict[str, float]:
    rng = np.random.default_rng(7)
    data = made(rows, dimension, rng)
    stores = open_stores(home, "bench", mode="write", create=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    written = bytes_written()
    start = time.process_time()
    for at in range(0, rows, 1000):
        stores.search.upsert("relationships", data[at : at + 1000])
    upserted = time.process_time()
    stores.search.refresh()
    refreshed = time.process_time()
    figures = {
        "upsert us per row": (upserted - start) / rows * 1e6,
        "refresh us per row": (refreshed - upserted) / rows * 1e6,
        "write us per row": (refreshed - start) / rows * 1e6,
        "peak memory MB above imports and data": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024,
    }
    start = time.process_time()
    stores.search.upsert("relationships", data[:100])
    stores.search.upsert(
        "relationships", [Row(f"new{i}", r.body, r.tokens, r.metadata, r.vector) for i, r in enumerate(data[:100])]
    )
    stores.search.refresh()
    figures["100 updates + 100 additions + refresh ms"] = (time.process_time() - start) * 1e3
    figures |= graph(stores, rows)
    stores.close()
    size = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    figures["index MB"] = size / 1e6
    figures["bytes written / index size"] = (bytes_written() - written) / size
    reader = open_stores(home, "bench", mode="read")
    figures |= searches(reader, data, rng)
    figures |= walks(reader, rows)
    reader.close()
    command = [sys.executable, "-c", _OPEN, str(home), str(dimension)]
    cold = [float(x) for x in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]
    names = ("import ms", "open for reading ms", "first lexical ms", "first nearest ms")
    return figures | {f"cold {name}": seconds * 1e3 for name, seconds in zip(names, cold, strict=True)}


def made(rows: int, dimension: int, rng: np.random.Generator) -> list[Row]:
    chooser = random.Random(7)
    weights = [1 / (i + 1) for i in range(WORDS)]
    words = [f"w{i}" for i in range(WORDS)]
    vectors = rng.standard_normal((rows, dimension), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    body = b'{"description":"' + b"x" * 400 + b'"}'
    return [
        Row(
            digest("row", str(i)),
            body,
            " ".join(chooser.choices(words, weights, k=TOKENS)),
            {"document_id": [digest("d", str(i % TAGS))], "year": 1900 + i % TAGS, "kind": "text"},
            vectors[i],
            digest("v", str(i)),
        )
        for i in range(rows)
    ]


def graph(stores: LocalStores, rows: int) -> dict[str, float]:
    chooser = random.Random(11)
    count = rows // 3
    ids = [digest("vertex", str(i)) for i in range(count)]
    vertices = [Vertex(key, f"Name {i}", "person", 3, [digest("u", str(i % 500))]) for i, key in enumerate(ids)]
    edges = [
        Edge(
            digest("edge", str(i)),
            ids[int(count * chooser.random() ** 3)],
            ids[chooser.randrange(count)],
            1.0,
            [digest("u", str(i % 500))],
        )
        for i in range(rows)
    ]
    start = time.process_time()
    for at in range(0, rows, 1000):
        stores.graph.upsert(vertices[at : at + 1000], edges[at : at + 1000])
    return {"graph us per edge (and a third of a vertex)": (time.process_time() - start) / rows * 1e6}


def searches(stores: LocalStores, data: list[Row], rng: np.random.Generator) -> dict[str, float]:
    search = stores.search
    asked = [rng.choice(row.tokens.split(), 10).tolist() for row in data[:: len(data) // 50]]
    vectors = [row.vector for row in data[:: len(data) // 50]]
    some = [row.id for row in data[:800]]
    tenth = parse({"year": {"gte": 1900, "lt": 1910}})
    half = parse({"year": {"gte": 1900, "lt": 1950}})
    ids = [row.id for row in data[100:140]]
    calls: dict[str, Callable[[int], Any]] = {
        "lexical top 40 ms": lambda i: search.lexical("relationships", asked[i], 40),
        "lexical top 40, 10 % filter ms": lambda i: search.lexical("relationships", asked[i], 40, filter=tenth),
        "lexical top 40, 50 % filter ms": lambda i: search.lexical("relationships", asked[i], 40, filter=half),
        "lexical top 40 among 800 ms": lambda i: search.lexical("relationships", asked[i], 40, ids=some),
        "nearest top 40 ms": lambda i: search.nearest("relationships", vectors[i], 40),
        "nearest top 40, 10 % filter ms": lambda i: search.nearest("relationships", vectors[i], 40, filter=tenth),
        "nearest top 40, 50 % filter ms": lambda i: search.nearest("relationships", vectors[i], 40, filter=half),
        "nearest top 40 among 800 ms": lambda i: search.nearest("relationships", vectors[i], 40, ids=some),
        "get 40 bodies ms": lambda i: search.get("relationships", ids),
        "vectors of 40 ms": lambda i: search.vectors("relationships", ids),
        "passing of 40 ms": lambda i: search.passing("relationships", ids, half),
    }
    return {name: per_call(call, len(asked)) for name, call in calls.items()}


def walks(stores: LocalStores, rows: int) -> dict[str, float]:
    chooser = random.Random(5)
    count = rows // 3
    picks = [[digest("vertex", str(chooser.randrange(count))) for _ in range(100)] for _ in range(20)]
    graph = stores.graph
    calls: dict[str, Callable[[int], Any]] = {
        "incident of 100, cap 20 ms": lambda i: graph.incident(picks[i], cap=20),
        "incident of 100 ms": lambda i: graph.incident(picks[i]),
        "among 100, cap 20 ms": lambda i: graph.among(picks[i], cap=20),
        "expand 5 seeds, 2 hops, cap 20 ms": lambda i: graph.expand(dict.fromkeys(picks[i][:5], 20), hops=2, cap=20),
        "expand 100 seeds, 1 hop, cap 20 ms": lambda i: graph.expand(dict.fromkeys(picks[i], 20), hops=1, cap=20),
        "vertices of 100 ms": lambda i: graph.vertices(picks[i]),
    }
    return {name: per_call(call, len(picks)) for name, call in calls.items()}


def per_call(call: Callable[[int], Any], count: int) -> float:
    """CPU milliseconds of one call, after a round that warms the caches."""
    for i in range(count):
        call(i)
    start = time.process_time()
    for i in range(count):
        call(i)
    return (time.process_time() - start) / count * 1e3


def bytes_written() -> int:
    """By this process, to any file (``/proc/self/io``)."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["wchar"])


if __name__ == "__main__":
    main()
