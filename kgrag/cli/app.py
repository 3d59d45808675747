"""All commands, and the options of ``kgrag`` itself."""

from __future__ import annotations

from typing import Annotated

import typer

from kgrag import __version__
from kgrag.cli import config as configuration
from kgrag.cli import demo as showing
from kgrag.cli import doctor as checks
from kgrag.cli import ingest as runs
from kgrag.cli import questions
from kgrag.cli import serve as serving
from kgrag.cli import status as state

app = typer.Typer(
    name="kgrag",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich takes longer to load than the rest of a help page takes to show
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 failed, 2 wrong use or configuration, 3 partly done, 130 interrupted.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"kgrag {__version__}")
        raise typer.Exit


@app.callback()
def kgrag(
    version: Annotated[bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)] = False,
) -> None:
    """Knowledge-graph RAG: documents in, a graph and grounded answers out."""


app.command("demo", help=showing.DEMO)(showing.demo)
app.command("init", help=configuration.INIT)(configuration.init)
app.command("ingest", help=runs.INGEST)(runs.ingest)
app.command("ask", help=questions.ASK)(questions.ask)
app.command("search", help=questions.SEARCH)(questions.search)
app.command("serve", help=serving.SERVE)(serving.serve)
app.command("status", help=state.STATUS)(state.status)
app.command("doctor", help=checks.DOCTOR)(checks.doctor)
app.add_typer(configuration.config_app, name="config")
