"""``ray job submit -- python jobs/ingest.py SOURCES...``: documents to an index, with the stages on the cluster.

Options and exit codes are those of ``kgrag ingest``. The embedded stores are opened on the node that this runs on.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from kgrag.cli.options import ConfigOption, DebugOption, JsonOption, NamespaceOption, SetOption, settings_of
from kgrag.cli.outcome import command
from kgrag.cli.output import print_json

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@command
def ingest(
    sources: Annotated[list[str], typer.Argument(help="Folders, files, globs, or s3:// URLs, as this node sees them.")],
    address: Annotated[str, typer.Option(help="The cluster: auto for the one this runs on, local for one of its own.")] = "auto",
    yes: Annotated[bool, typer.Option("--confirm-deletions", help="Go on where most documents of a source are gone.")] = False,
    force: Annotated[bool, typer.Option("--force-rebuild", help="Read everything again and ask models again.")] = False,
    config: ConfigOption = None,
    assignments: SetOption = None,
    namespace: NamespaceOption = None,
    json_: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    """Bring an index up to date with these sources."""
    import ray

    from kgrag import build
    from kgrag.ingest.progress import progress_for
    from kgrag.ingest.ray_runner import run_ingest_on_ray
    from kgrag.ingest.stop import Stop

    flags = [*(assignments or ())]
    flags += ["run.confirm_deletions=true"] if yes else []
    flags += ["run.force_rebuild=true"] if force else []
    parts = build.ingest_parts(settings_of(config, flags, namespace).settings)
    ray.init(address=None if address == "local" else address, log_to_driver=False, include_dashboard=False)
    stop = Stop()
    try:
        with stop.on_signals(), progress_for(sys.stderr) as meter:
            report = asyncio.run(run_ingest_on_ray(parts, sources, progress=meter, stop=stop))
    finally:
        ray.shutdown()
    if json_:
        print_json(report.as_json())
    else:
        print("\n".join(report.lines()))
    return report.exit_code


if __name__ == "__main__":
    app()
