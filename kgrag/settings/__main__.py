"""``python -m kgrag.settings`` prints the reference page."""

from __future__ import annotations

from kgrag.settings.reference import render

print(render(), end="")
