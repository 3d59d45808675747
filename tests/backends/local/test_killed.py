from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MEMORY = Path("/dev/shm")


@pytest.mark.parametrize(("how", "count", "least"), [("steps", 1, 150), ("random", 20, 20)])
def test_a_process_killed_at_any_step_loses_nothing_and_leaves_nothing_half(how: str, count: int, least: int) -> None:
    # A killed process loses what it had not written, a dead machine what was not synced; this is about the first, so
    # the files may stand in memory.
    where = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        command = [sys.executable, "-m", "tests.backends.local.killing", folder, how, str(count)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["kills"] >= least
    assert len(set(report["operations"])) > 3
