"""What every benchmark here shares: CPU and memory of a process, and a table with a JSON line after it.

CPU seconds swing with what else a machine does; quote ratios of one run only.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def cpu_seconds() -> float:
    """User and system time of this process and its finished children."""
    return sum(
        r.ru_utime + r.ru_stime for r in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def seconds_without_cpu() -> float:
    """How long this process's main thread was ready to run while others had the CPUs: wall times of a busy machine hold it."""
    return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9


def peak_megabytes() -> float:
    """Highest resident set of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_megabytes(pid: int | None = None) -> float:
    """Resident set now."""
    for line in Path(f"/proc/{pid or os.getpid()}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def clean_environment() -> dict[str, str]:
    """This process's environment without what would have every import compile its modules again, or slow numpy down."""
    left_out = {"PYTHONDONTWRITEBYTECODE", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}
    return {name: value for name, value in os.environ.items() if name not in left_out and not name.startswith("KGRAG_")}


def in_child(script: str, *arguments: str, environment: Mapping[str, str] | None = None, timeout: float = 1800) -> dict[str, Any]:
    """Run another benchmark script in a fresh process and read the JSON object of its last line."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / script), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**clean_environment(), "PYTHONPATH": str(ROOT), **(environment or {})},
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{script} {' '.join(arguments)} failed:\n{done.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def report(title: str, rows: Sequence[Mapping[str, Any]], summary: Mapping[str, Any]) -> None:
    """Print ``rows`` as a table, then ``summary`` as one JSON line."""
    print(f"\n## {title}\n")
    if rows:
        columns = list(dict.fromkeys(key for row in rows for key in row))
        cells = [[_cell(row.get(column, "")) for column in columns] for row in rows]
        widths = [max(len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)]
        print("  ".join(c.ljust(w) for c, w in zip(columns, widths, strict=True)))
        for line in cells:
            print("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)))
    print(json.dumps({"benchmark": title, **summary}, ensure_ascii=False), flush=True)


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
