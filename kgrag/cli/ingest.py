"""``kgrag ingest``: documents to an index."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from kgrag.cli.options import ConfigOption, DebugOption, JsonOption, NamespaceOption, SetOption, settings_of
from kgrag.cli.outcome import command
from kgrag.cli.output import print_json

if TYPE_CHECKING:
    from kgrag.ingest.report import RunReport
    from kgrag.settings import Settings

INGEST = """Read documents and bring the index up to date with them.

\b
Examples:
  kgrag ingest reports/
  kgrag ingest notes.md "minutes/**/*.docx" s3://bucket/papers --namespace team
  kgrag ingest reports/ --address auto
  curl -s https://example.org/page.html | kgrag ingest - --set documents.standard_input=page

Run it again after a change: only what changed is read again, and files that are gone leave the index. Ctrl-C stops
cleanly and the next run goes on. Exits with 3 where some documents failed; the report says which and why.
"""


@command
def ingest(
    sources: Annotated[list[str], typer.Argument(help="Folders, files, globs, s3:// URLs, or - for standard input.")],
    yes: Annotated[bool, typer.Option("--confirm-deletions", help="Go on where most documents of a source are gone.")] = False,
    force: Annotated[bool, typer.Option("--force-rebuild", help="Read everything again and ask models again.")] = False,
    address: Annotated[
        str | None,
        typer.Option(
            "--address", help="Run the stages on a Ray cluster: auto, local for one of its own, or an address.", metavar="RAY"
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No live view.")] = False,
    config: ConfigOption = None,
    assignments: SetOption = None,
    namespace: NamespaceOption = None,
    json_: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    flags = [*(assignments or ())]
    flags += ["run.confirm_deletions=true"] if yes else []
    flags += ["run.force_rebuild=true"] if force else []
    settings = settings_of(config, flags, namespace).settings
    report = run(settings, sources, quiet=quiet, address=address)
    if json_:
        print_json(report.as_json())
    else:
        print("\n".join(report.lines()))
    return report.exit_code


def run(settings: Settings, sources: list[str], *, quiet: bool, address: str | None = None) -> RunReport:
    """One run, with its live view on standard error; a signal stops it cleanly. ``address`` is a Ray cluster, without one
    everything happens in this process."""
    from kgrag import build
    from kgrag.ingest.progress import progress_for
    from kgrag.ingest.run import run_ingest
    from kgrag.ingest.stop import Stop

    stop = Stop()
    parts = build.ingest_parts(settings)
    with ExitStack() as held:
        if address is not None:
            held.enter_context(_cluster(address))
        held.enter_context(stop.on_signals())
        meter = held.enter_context(progress_for(sys.stderr, quiet=quiet))
        if address is None:
            return asyncio.run(run_ingest(parts, sources, progress=meter, stop=stop))

        from kgrag.ingest.ray_runner import run_ingest_on_ray

        return asyncio.run(run_ingest_on_ray(parts, sources, progress=meter, stop=stop))


@contextmanager
def _cluster(address: str) -> Iterator[None]:
    """Within, this process is the driver of a Ray cluster. The driver has to be on the node with the embedded stores."""
    from kgrag.errors import MissingExtraError

    try:
        import ray
    except ImportError:
        raise MissingExtraError("Ray is not installed.", subject="ray", remedy="Run: pip install 'kgrag[ray]'.") from None
    ray.init(address=None if address == "local" else address, log_to_driver=False, include_dashboard=False)
    try:
        yield
    finally:
        ray.shutdown()
