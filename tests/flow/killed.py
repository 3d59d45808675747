"""A process that runs an ingestion to be killed in: ``python -m tests.flow.killed ROOT SOURCE``. It says when it begins."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.ingest.pieces import Bench

if __name__ == "__main__":
    bench = Bench(Path(sys.argv[1]), Path(sys.argv[2]))
    print("begins", flush=True)
    asyncio.run(bench.ingest())
    print("ends", flush=True)
