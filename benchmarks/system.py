"""kgrag as the benchmarks set it up, and one measured step of it in a process of its own.

    python benchmarks/system.py index CORPUS --home DIR --url http://127.0.0.1:8123/v1 [--set index.methodologies=["lightrag"]]
    python benchmarks/system.py query QUESTIONS --home DIR --url ... --strategies naive,mix
    python benchmarks/system.py cold QUESTIONS --home DIR --url ...

Each prints one JSON object. CPU counts from after the imports and opening, but for ``cold``, where it is the whole process's.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import re
import statistics
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.measure import cpu_seconds, peak_megabytes, seconds_without_cpu
from kgrag.backends.scripted import ScriptedEngine
from kgrag.records import EntityStatement, RelationshipStatement
from kgrag.settings import Settings, load
from kgrag.tasks.extraction import Extraction, ExtractionInput

NAMESPACE = "bench"


def settings_for(home: Path | str, url: str = "", *, dimension: int = 384, overrides: list[str] | None = None) -> Settings:
    """Defaults, with every model call going to ``url`` (16 in flight); no url: no model at all."""
    flags = [f"home={home}", f"namespace={NAMESPACE}"]
    if url:
        for model in ("default", "embedding"):
            given = {"provider": "openai", "base_url": url, "model": "stub", "concurrency": 16}
            flags += [f"models.{model}.{key}={value}" for key, value in given.items()]
        flags.append(f"models.embedding.dimension={dimension}")
    return load(None, flags=[*flags, *(overrides or [])], environment={}).settings


def index(settings: Settings, corpus: Path, *, runner: str = "local", scripted: bool = False, profile: str = "") -> dict[str, Any]:
    """One whole ingestion. ``runner`` is ``local`` or ``ray``; ``scripted`` replaces the model by made-up answers."""
    import kgrag.backends.local.embeddings
    import kgrag.backends.local.openai
    import kgrag.backends.local.stores
    import kgrag.build
    import kgrag.documents.stages
    import kgrag.ingest.run

    kgrag.build.open_stores(settings, mode="write", create=True).close()
    parts = kgrag.build.ingest_parts(settings)
    if scripted:
        parts = replace(parts, open_engine=ScriptedReader)
    run = _connected_to_ray() if runner == "ray" else kgrag.ingest.run.run_ingest
    imported = peak_megabytes()
    cpu, wall, queued = cpu_seconds(), time.perf_counter(), seconds_without_cpu()
    with _profiled(profile):
        report = asyncio.run(run(parts, [str(corpus)]))
    return {
        "cpu_s": cpu_seconds() - cpu,
        "wall_s": time.perf_counter() - wall,
        "queued_s": seconds_without_cpu() - queued,
        "imports_mb": imported,
        "peak_mb": peak_megabytes(),
        "passages": report.units,
        "entities": report.entities,
        "relationships": report.relationships,
        "reports": report.reports,
        "failed": report.failures_total,
        "calls": report.usage.calls,
        "extract_calls": sum(stage.usage.calls for stage in report.stages if stage.name == "extract"),
        "stages": {stage.name: stage.seconds for stage in report.stages},
    }


async def query(settings: Settings, questions: list[str], warm: str, strategies: list[str], profile: str) -> dict[str, Any]:
    """CPU and median wall milliseconds per search, by strategy."""
    from kgrag.build import open_query_engine

    engine = await open_query_engine(settings)
    found: dict[str, Any] = {}
    for strategy in strategies:
        await engine.search(warm, strategy=strategy)
        cpu, times, hits = cpu_seconds(), [], 0
        with _profiled(profile):
            for question in questions:
                started = time.perf_counter()
                context = await engine.search(question, strategy=strategy)
                times.append(time.perf_counter() - started)
                hits += bool(context.sections and context.sections[0].hits)
        cpu = cpu_seconds() - cpu
        found[strategy] = {
            "cpu_ms": 1000 * cpu / len(questions),
            "p50_ms": 1000 * statistics.median(times),
            "answered": hits / len(questions),
        }
    await engine.aclose()
    return found


async def first(settings: Settings, question: str) -> dict[str, Any]:
    """What a process that asks one question spends in all."""
    from kgrag.build import open_query_engine

    engine = await open_query_engine(settings)
    opened = cpu_seconds()
    context = await engine.search(question)
    spent = cpu_seconds()
    await engine.aclose()
    return {"cpu_s": spent, "opened_cpu_s": opened, "hits": len(context.sections[0].hits) if context.sections else 0}


class ScriptedReader(ScriptedEngine):
    """Reads the title and the first two names of a passage; needs no model and no time."""

    def __init__(self, answers: object = None, *, threads: bool = False) -> None:
        super().__init__({"extract": _three_names, "glean": Extraction()})


def _three_names(unit: ExtractionInput) -> Extraction:
    names = list(dict.fromkeys([unit.title, *re.findall(r"[A-Z]\w+ [A-Z]\w+", unit.text)]))[:3]
    entities = [EntityStatement(name=name, type="person", description=f"{name} of {unit.title}", confidence=9) for name in names]
    pairs = [
        RelationshipStatement(source=unit.title, target=name, type="knows", description=f"{unit.title} knew {name}", strength=5)
        for name in names[1:]
    ]
    return Extraction(entities=entities, relationships=pairs)


def _connected_to_ray() -> Any:
    """Start Ray on this machine, for as long as this process lives; the runner for it."""
    import ray

    from kgrag.ingest.ray_runner import run_ingest_on_ray

    ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    return run_ingest_on_ray


def _profiled(path: str) -> Any:
    return _Profile(path) if path else nullcontext()


class _Profile:
    def __init__(self, path: str) -> None:
        self._path, self._profile = path, cProfile.Profile()

    def __enter__(self) -> None:
        self._profile.enable()

    def __exit__(self, *_: object) -> None:
        self._profile.disable()
        self._profile.dump_stats(self._path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["index", "query", "cold"])
    parser.add_argument("file", type=Path, help="corpus, or questions as the peers' harness keeps them")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--url", default="")
    parser.add_argument("--dimension", type=int, default=384, help="length of the server's vectors")
    parser.add_argument("--runner", choices=["local", "ray"], default="local")
    parser.add_argument("--scripted", action="store_true", help="made-up answers in place of a model")
    parser.add_argument("--strategies", default="naive")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides")
    parser.add_argument("--profile", default="", help="write cProfile's statistics here")
    options = parser.parse_args()
    settings = settings_for(options.home, options.url, dimension=options.dimension, overrides=options.overrides)
    if options.step == "index":
        result = index(settings, options.file, runner=options.runner, scripted=options.scripted, profile=options.profile)
    else:
        asked = json.loads(options.file.read_text(encoding="utf-8"))
        if options.step == "cold":
            result = asyncio.run(first(settings, asked["warm"][0]))
        else:
            questions = [q["q"] for q in asked["latency"]]
            strategies = options.strategies.split(",")
            result = asyncio.run(query(settings, questions, asked["warm"][0], strategies, options.profile))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
