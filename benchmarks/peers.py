"""Indexing, retrieval and cold start beside the fastest other systems, on the same passages and the same model server.

    python benchmarks/peers.py --peers FOLDER [--peers-home DIR] [--only index,query,cold]

``FOLDER`` holds the harness that installs and drives them (``run.py``); ``fast`` and ``hippo`` have to be installed, the
corpora built, and both to have an index of wiki500 (see its README). Each system keeps its own defaults for chunks, passes,
summaries and prompts, with one exception: kgrag reads each unit once (``extraction.gleaning=false``), as ``fast`` does.
CPU seconds are each process's own after imports and opening (cold start: all of them); only the ratios mean anything.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, clean_environment, in_child, report

STRATEGIES = {"naive": 1 / 5, "hybrid": 1 / 5, "local": 1 / 3, "mix": 1 / 3, "ppr": 1 / 3}
"""Strategies measured, and the share of hippo's CPU each may take."""

ONE_PASS = "extraction.gleaning=false"
NO_COMMUNITIES = 'index.methodologies=["lightrag"]'
RUNS: dict[str, tuple[str, list[str]]] = {
    "without": ("wiki500", [NO_COMMUNITIES]),
    "with": ("wiki500", []),
    "large without": ("wiki2000", [NO_COMMUNITIES]),
    "large": ("wiki2000", []),
}
REPEATS = 2
"""Runs of each; the cheaper one counts, as what else a machine does only ever adds."""


class Harness:
    """The peers' own runner."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home

    def corpus(self, name: str) -> Path:
        return self.home / "work" / "corpora" / name

    def missing(self) -> str:
        """What is not there, empty where all is."""
        wanted = {
            "the harness (run.py)": self.folder / "run.py",
            "its stub": self.home / "venvs" / "stub",
            "fast": self.home / "venvs" / "fast",
            "hippo": self.home / "venvs" / "hippo",
            "the corpora": self.corpus("wiki2000.jsonl"),
            "hippo's index of wiki500": self.home / "work" / "idx" / "hippo.wiki500.0",
        }
        return ", ".join(what for what, path in wanted.items() if not path.exists())

    def run(self, *arguments: str) -> list[dict[str, Any]]:
        """Results that one call of ``run.py`` added."""
        results = self.home / "results" / f"{arguments[1]}.jsonl"
        before = len(results.read_text().splitlines()) if results.exists() else 0
        subprocess.run(
            [sys.executable, str(self.folder / "run.py"), *arguments],
            check=True,
            stdout=sys.stderr,
            env={**clean_environment(), "PEERS_HOME": str(self.home)},
        )
        added = [json.loads(line) for line in results.read_text().splitlines()[before:]]
        failed = [result.get("error") for result in added if not result.get("ok")]
        if failed or not added:
            raise RuntimeError(f"run.py {' '.join(arguments)} failed: {failed}")
        return added

    @contextmanager
    def stub(self, *options: str) -> Iterator[str]:
        """URL of the same model server, taught kgrag's prompts."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [self.home / "venvs" / "stub" / "bin" / "python", ROOT / "benchmarks" / "peer_stub.py"]
        with subprocess.Popen([*command, "--peers", str(self.folder), "--port", str(port), *options]) as process:
            try:
                _wait_for(f"http://127.0.0.1:{port}/stats")
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                process.terminate()


def index(harness: Harness, homes: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """CPU per chunk of indexing. Leaves an index of each corpus under ``homes``."""
    _ours(harness, homes / "warm", "wiki30", [ONE_PASS])  # writes byte code
    ours: dict[str, dict[str, Any]] = {}
    peer = []
    for _ in range(REPEATS):
        peer += harness.run("index", "fast", "wiki500")
        for name, (corpus, methods) in RUNS.items():
            home = homes / name
            shutil.rmtree(home, ignore_errors=True)
            ours[name] = min([_ours(harness, home, corpus, [ONE_PASS, *methods]), *filter(None, [ours.get(name)])], key=_cpu)
    fast = min(peer, key=_cpu)
    theirs = 1000 * fast["cpu_s"] / fast["counts"]["chunks"]
    rows = [
        {
            "system": "fast",
            "corpus": "wiki500",
            "CPU ms/chunk": theirs,
            "chunks": fast["counts"]["chunks"],
            "calls": fast["llm_calls"],
            "entities": fast["counts"]["entities"],
            "relationships": fast["counts"]["relations"],
        }
    ]
    rows += [
        {
            "system": f"kgrag {'without' if 'without' in name else 'with'} communities",
            "corpus": RUNS[name][0],
            "CPU ms/chunk": _per_chunk(one),
            "chunks": one["passages"],
            "calls": one["calls"],
            "entities": one["entities"],
            "relationships": one["relationships"],
            "reports": one["reports"],
            "of fast": _per_chunk(one) / theirs,
        }
        for name, one in ours.items()
    ]
    return rows, {
        "without_of_fast": round(_per_chunk(ours["without"]) / theirs, 3),
        "without_target": 0.5,
        "with_of_fast": round(_per_chunk(ours["with"]) / theirs, 3),
        "with_target": 1.0,
        "growth_without": round(ours["large without"]["cpu_s"] / ours["without"]["cpu_s"], 2),
        "growth_with": round(ours["large"]["cpu_s"] / ours["with"]["cpu_s"], 2),
        "growth_target": 4.2,
    }


def query(harness: Harness, homes: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """CPU of one retrieval, the embedding of the question and what else a strategy asks a model over HTTP included."""
    small = _asked(harness, _indexed(harness, homes, "with"))
    large = _asked(harness, _indexed(harness, homes, "large"))
    theirs = harness.run("query", "hippo", "wiki500", "--modes", "retrieve")[0]["cpu_ms_per_query"]
    rows = [{"strategy": "hippo retrieve", "CPU ms": float(theirs)}]
    summary: dict[str, Any] = {}
    for name, target in STRATEGIES.items():
        share, growth = small[name]["cpu_ms"] / theirs, large[name]["cpu_ms"] / small[name]["cpu_ms"]
        rows.append(
            {
                "strategy": name,
                "CPU ms": small[name]["cpu_ms"],
                "p50 ms": small[name]["p50_ms"],
                "found something": small[name]["answered"],
                "CPU ms at 2,000": large[name]["cpu_ms"],
                "of hippo": share,
                "target": target,
                "growth": growth,
                "growth target": 1.5,
            }
        )
        summary[name] = {"of_hippo": round(share, 3), "target": round(target, 3), "growth": round(growth, 2)}
    return rows, {**summary, "growth_target": 1.5}


def cold(harness: Harness, homes: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """CPU of a process that imports, opens and asks one question; the peer's only imports and opens."""
    home = _indexed(harness, homes, "with")
    with harness.stub() as url:
        step = ("cold", str(harness.corpus("questions.json")), "--home", str(home), "--url", url)
        ours = [in_child("system.py", *step) for _ in range(4)][1:]  # the first writes byte code
    theirs = [one["cpu_s"] for one in harness.run("cold", "fast", "wiki500")]
    mine = min(one["cpu_s"] for one in ours)
    share = mine / min(theirs)
    rows = [
        {"system": "fast: import, open", "CPU s": min(theirs)},
        {"system": "kgrag: import, open, first query", "CPU s": mine, "of fast": share, "target": 1 / 3},
    ]
    return rows, {"of_fast": round(share, 3), "target": 0.333, "cpu_s": round(mine, 3)}


PARTS = {"index": index, "query": query, "cold": cold}


def _ours(harness: Harness, home: Path, corpus: str, overrides: list[str]) -> dict[str, Any]:
    with harness.stub() as url:
        given = [argument for override in overrides for argument in ("--set", override)]
        step = ("index", str(harness.corpus(f"{corpus}.jsonl")), "--home", str(home), "--url", url)
        return in_child("system.py", *step, *given)


def _indexed(harness: Harness, homes: Path, name: str) -> Path:
    home = homes / name
    if not home.exists():
        corpus, methods = RUNS[name]
        _ours(harness, home, corpus, [ONE_PASS, *methods])
    return home


def _cpu(result: dict[str, Any]) -> float:
    return float(result["cpu_s"])


def _asked(harness: Harness, home: Path) -> dict[str, Any]:
    with harness.stub() as url:
        step = ("query", str(harness.corpus("questions.json")), "--home", str(home), "--url", url)
        return in_child("system.py", *step, "--strategies", ",".join(STRATEGIES))


def _per_chunk(step: dict[str, Any]) -> float:
    return float(1000 * step["cpu_s"] / step["passages"])


def _wait_for(url: str, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).read()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def default_home() -> Path:
    """Where the harness keeps environments, corpora and results unless told otherwise."""
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    return Path(os.environ.get("PEERS_HOME") or f"{cache}/kgrag-peers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--peers-home", type=Path, default=default_home(), metavar="DIR")
    parser.add_argument("--only", default=",".join(PARTS), help="parts to run, separated by commas")
    options = parser.parse_args()
    harness = Harness(options.peers.resolve(), options.peers_home)
    if missing := harness.missing():
        sys.exit(f"Not there: {missing}. See {harness.folder / 'README.md'}.")
    with tempfile.TemporaryDirectory() as homes:
        for name in re.split(r"\W+", options.only):
            report(f"Peers: {name}", *PARTS[name](harness, Path(homes)))


if __name__ == "__main__":
    main()
