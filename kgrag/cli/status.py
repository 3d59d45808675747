"""``kgrag status``: what an index holds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgrag.cli.options import ConfigOption, DebugOption, JsonOption, NamespaceOption, SetOption, settings_of
from kgrag.cli.outcome import command
from kgrag.cli.output import print_json, print_table

if TYPE_CHECKING:
    from kgrag.ports import Stores
    from kgrag.settings import Settings

STATUS = """Show what an index holds.

Namespaces, documents by state, counts, the last run and the embedding in use.

\b
Examples:
  kgrag status
  kgrag status --namespace team --failed
  kgrag status --json
"""

MOST_FAILURES = 100
"""Failed documents that are listed; the counts name them all."""


@command
def status(
    failed: Annotated[bool, typer.Option("--failed", help="List documents that could not be processed, and why.")] = False,
    config: ConfigOption = None,
    assignments: SetOption = None,
    namespace: NamespaceOption = None,
    json_: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    from kgrag import build

    settings = settings_of(config, assignments, namespace).settings
    names = build.namespaces(settings)
    if settings.namespace not in names and not namespace:
        _nothing_yet(settings, names, as_json=json_)
        return
    stores = build.open_stores(settings)
    try:
        held = _held(stores)
        failures = _failures(stores) if failed else []
    finally:
        stores.close()
    if json_:
        extra = {"failures": failures} if failed else {}
        print_json({"home": str(settings.home), "namespaces": names, "namespace": settings.namespace, **held, **extra})
        return
    _print(settings, names, held)
    if failures:
        print()
        print_table("", ("failed document", "reason"), [(f["document"], f["reason"]) for f in failures])


def _held(stores: Stores) -> dict[str, Any]:
    vertices, edges = stores.graph.counts()
    run = stores.status.read_value("last_run")
    build = stores.status.read_value("build") or {}
    lease = stores.status.current_lease()
    return {
        "documents": stores.status.count(),
        "counts": {
            "text_units": stores.search.count("text_units"),
            "entities": vertices,
            "relationships": edges,
            "claims": stores.search.count("claims"),
            "communities": len(stores.graph.communities()),
            "reports": stores.search.count("reports"),
        },
        "embedding": build.get("embedding", ""),
        "methodologies": build.get("methodologies", []),
        "last_run": run,
        "running": None if lease is None else {"owner": lease.owner, "until": lease.expires_at},
    }


def _failures(stores: Stores) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    after = ""
    while page := stores.status.scan(after=after):
        for document in page:
            if document.state in ("failed", "quarantined"):
                where = document.path if document.row is None else f"{document.path}, row {document.row}"
                found.append({"document": where, "state": document.state, "reason": document.error})
        after = page[-1].id
        if len(found) >= MOST_FAILURES:
            break
    return found[:MOST_FAILURES]


def _print(settings: Settings, names: list[str], held: dict[str, Any]) -> None:
    print(f"Home:        {settings.home}")
    print(f"Namespace:   {settings.namespace}" + (f"  (of {', '.join(names)})" if len(names) > 1 else ""))
    print(f"Documents:   {_counts(held['documents']) or 'none'}")
    print(f"Index:       {_counts(held['counts']) or 'empty'}")
    print(f"Embedding:   {held['embedding'] or 'none: words alone find passages'}")
    print(f"Methods:     {', '.join(held['methodologies']) or 'none'}")
    if held["running"]:
        print(f"Running:     {held['running']['owner']}")
    if held["last_run"]:
        print(f"Last run:    {_run(held['last_run'])}")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items() if number)


def _run(run: dict[str, Any]) -> str:
    parts = [datetime.fromtimestamp(run["ended"], UTC).strftime("%Y-%m-%d %H:%M UTC")] if run.get("ended") else []
    parts += [f"{run[name]} {name}" for name in ("new", "changed", "deleted", "failed") if run.get(name)]
    if run.get("seconds"):
        parts.append(f"{run['seconds']:.1f} s")
    return ", ".join(parts)


def _nothing_yet(settings: Settings, names: list[str], *, as_json: bool) -> None:
    if as_json:
        print_json({"home": str(settings.home), "namespaces": names, "namespace": settings.namespace})
        return
    print(f"Home:        {settings.home}")
    if names:
        print(f"Namespaces:  {', '.join(names)}")
        print(f"There is no index named {settings.namespace}; choose one with --namespace.")
    else:
        print("There is no index yet. Make one: kgrag ingest FOLDER, or see it at work: kgrag demo")
