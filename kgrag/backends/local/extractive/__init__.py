"""Answers to every task by text statistics: no model, no server, no cost, any script, always the same.

Not a model and never called one: it copies and counts, it does not understand."""

from kgrag.backends.local.extractive.engine import ExtractiveEngine

__all__ = ["ExtractiveEngine"]
