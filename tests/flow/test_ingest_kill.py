"""SIGKILL of the process at any moment of a run: the next run takes the lease at once and comes to the same rows."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.ingest.pieces import Bench, different, snapshot
from tests.ingest.test_crash import corpus

KILLS = int(os.environ.get("KGRAG_KILLS", "4"))
"""How many runs are killed per test."""

ROOT = Path(__file__).parents[2]


def killed(bench: Bench, seconds: float) -> bool:
    """Runs an ingestion in a process of its own and kills it after so long. Returns whether it was still at work."""
    command = [sys.executable, "-m", "tests.flow.killed", str(bench.home.parent), str(bench.source)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n", process.stderr and process.stderr.read()
        time.sleep(seconds)
        process.kill()
        return process.stdout.read() == ""


@pytest.mark.parametrize("version", [0, 1], ids=["first build", "delta"])
async def test_a_killed_process_leaves_what_the_next_run_finishes(tmp_path: Path, version: int) -> None:
    calm = Bench(tmp_path / "calm")
    corpus(calm, 0)
    before = tmp_path / "before"
    if version:
        await calm.ingest()
        shutil.copytree(calm.home, before)
        corpus(calm, 1)
    began = time.monotonic()
    await calm.ingest()
    length = time.monotonic() - began
    expected = snapshot(calm)
    moments = random.Random(version)
    at_work = 0
    for number in range(KILLS):
        bench = Bench(tmp_path / f"killed{number}", calm.source)
        if version:
            shutil.copytree(before, bench.home)
        for _ in range(1 + number % 2):
            at_work += killed(bench, moments.uniform(0.0, 1.5 * length))
        await bench.ingest()
        assert different(snapshot(bench), expected) == []
    assert at_work > 0
