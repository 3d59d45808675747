"""kgrag: knowledge-graph retrieval-augmented generation over one index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgrag.client import Client, connect

__version__ = "0.1.0"
__all__ = ["Client", "__version__", "connect"]


def __getattr__(name: str) -> Any:
    if name in ("Client", "connect"):  # importing kgrag alone loads nothing heavy
        from kgrag import client

        return getattr(client, name)
    raise AttributeError(f"module 'kgrag' has no attribute {name!r}")
