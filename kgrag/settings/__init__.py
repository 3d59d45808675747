"""The configuration: one tree, its layers, and where each value came from."""

from __future__ import annotations

from kgrag.settings.layers import Loaded, load
from kgrag.settings.tree import Settings

__all__ = ["Loaded", "Settings", "load"]
