"""Optional packages, named where one is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kgrag.errors import MissingExtraError


def package(module: str, kind: str) -> Any:
    """The module that reads ``kind``. Raises MissingExtraError naming the pip command."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise MissingExtraError(
            f"Reading {kind} needs the package {error.name}.", subject=kind, remedy='Install it: pip install "kgrag[formats]".'
        ) from error
