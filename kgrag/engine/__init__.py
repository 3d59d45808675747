"""Every model call is a typed task; an engine answers tasks.

``Task`` declares a question (``kgrag.tasks`` holds them all), ``Engine`` is who answers: ``ModelEngine``,
``backends.local.extractive`` (no model at all) or ``backends.scripted`` (tests).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgrag.engine.task import Engine, Outcome, Parsed, Task

if TYPE_CHECKING:
    from kgrag.engine.model import ModelEngine

__all__ = ["Engine", "ModelEngine", "Outcome", "Parsed", "Task"]


def __getattr__(name: str) -> object:
    """The model engine needs the repair task, and tasks need this package: it loads when it is asked for."""
    if name == "ModelEngine":
        from kgrag.engine.model import ModelEngine

        return ModelEngine
    raise AttributeError(name)
