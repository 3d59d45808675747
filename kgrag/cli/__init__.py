"""``kgrag ...``: the command line. Commands import what they need when they run, so that help is instant."""

from __future__ import annotations


def main() -> None:
    """Entry point of the ``kgrag`` script."""
    from kgrag.cli.app import app

    app()
