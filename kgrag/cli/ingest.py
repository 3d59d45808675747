"""``kgrag ingest``: documents to an index."""

from __future__ import annotations

import asyncio
import sys
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
  curl -s https://example.org/page.html | kgrag ingest - --set documents.standard_input=page

Run it again after a change: only what changed is read again, and files that are gone leave the index. Ctrl-C stops
cleanly and the next run goes on. Exits with 3 where some documents failed; the report says which and why.
"""


@command
def ingest(
    sources: Annotated[list[str], typer.Argument(help="Folders, files, globs, s3:// URLs, or - for standard input.")],
    yes: Annotated[bool, typer.Option("--confirm-deletions", help="Go on where most documents of a source are gone.")] = False,
    force: Annotated[bool, typer.Option("--force-rebuild", help="Read everything again and ask models again.")] = False,
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
    report = run(settings, sources, quiet=quiet)
    if json_:
        print_json(report.as_json())
    else:
        print("\n".join(report.lines()))
    return report.exit_code


def run(settings: Settings, sources: list[str], *, quiet: bool) -> RunReport:
    """One run in this process, with its live view on standard error; a signal stops it cleanly."""
    from kgrag import build
    from kgrag.ingest.progress import progress_for
    from kgrag.ingest.run import run_ingest
    from kgrag.ingest.stop import Stop

    stop = Stop()
    with stop.on_signals(), progress_for(sys.stderr, quiet=quiet) as meter:
        return asyncio.run(run_ingest(build.ingest_parts(settings), sources, progress=meter, stop=stop))
