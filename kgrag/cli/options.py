"""Options that several commands share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kgrag.settings import Loaded

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="Configuration file, YAML or TOML. Default: the variable KGRAG_CONFIG, else kgrag.yaml in this folder.",
        metavar="FILE",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="One setting, such as search.top_k=5; repeatable.", metavar="KEY=VALUE"),
]
NamespaceOption = Annotated[str | None, typer.Option("--namespace", "-n", help="Which index.", metavar="NAME")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show where an error came from.")]

LOCAL_FILE = "kgrag.yaml"
"""Read from the folder a command runs in, where no other file is named."""


def settings_of(config: Path | None, assignments: list[str] | None, namespace: str | None) -> Loaded:
    """The settings in effect for a command. Raises ConfigurationError."""
    import os

    from kgrag.settings import load

    if config is None and not os.environ.get("KGRAG_CONFIG") and Path(LOCAL_FILE).is_file():
        config = Path(LOCAL_FILE)
    flags = [*(assignments or ()), *([f"namespace={namespace}"] if namespace else ())]
    return load(config, flags=flags)
