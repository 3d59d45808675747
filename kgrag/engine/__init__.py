"""Every model call is a typed task; an engine answers tasks.

``Task`` declares a question (``kgrag.tasks`` holds them all), ``Engine`` is who answers: ``ModelEngine``,
``backends.local.extractive`` (no model at all) or ``backends.scripted`` (tests).
"""

from kgrag.engine.task import Engine, Outcome, Parsed, Task

__all__ = ["Engine", "Outcome", "Parsed", "Task"]
