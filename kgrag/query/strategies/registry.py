"""Every strategy by name: the built-in ones, then those of other packages.

A third party publishes a ``StrategySpec`` (or a callable returning one) under the entry point group ``kgrag.strategies``,
or passes specs to ``kgrag.connect(strategies=[...])``."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import entry_points

from kgrag.errors import ConfigurationError, UnknownStrategyError
from kgrag.query.strategies.strategy import StrategySpec

BUILT_IN = ("naive", "simple", "local", "global", "hybrid", "mix", "ppr", "bridge")
GROUP = "kgrag.strategies"
_MODULE = {"global": "global_"}


class Registry:
    """Strategies by name and alias. Built-in modules load on first use; a name taken twice is refused."""

    def __init__(self, extra: Iterable[StrategySpec] = ()) -> None:
        self._loaded: dict[str, StrategySpec] = {}
        self._aliases: dict[str, str] = {}
        self._published: dict[str, StrategySpec] | None = None
        added = list(extra)
        if added:  # what is built in comes first, so that a name taken twice is noticed
            for name in BUILT_IN:
                self._add(_built_in(name))
        for spec in added:
            self._add(spec)

    def get(self, name: str) -> StrategySpec:
        """Raises UnknownStrategyError with the nearest names."""
        found = self._loaded.get(self._aliases.get(name, name))
        if found is not None:
            return found
        if name in BUILT_IN:
            return self._add(_built_in(name))
        for spec in self:
            if name == spec.name or name in spec.aliases:
                return spec
        names = [n for spec in self for n in (spec.name, *spec.aliases)]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f'Did you mean "{near[0]}"? ' if near else ""
        raise UnknownStrategyError(
            f'There is no strategy "{name}".', subject=name, remedy=f"{hint}Known: {', '.join(sorted(names))}."
        )

    def __iter__(self) -> Iterator[StrategySpec]:
        """Every strategy, built-in ones first."""
        for name in BUILT_IN:
            if name not in self._loaded:
                self._add(_built_in(name))
        if self._published is None:
            self._published = {}
            for point in entry_points(group=GROUP):
                value = point.load()
                spec = value if isinstance(value, StrategySpec) else value()
                if not isinstance(spec, StrategySpec):
                    raise ConfigurationError(
                        f'The entry point "{point.name}" of {GROUP} gives no StrategySpec.',
                        subject=point.name,
                        remedy="Let it name a StrategySpec, or remove the package that brings it.",
                    )
                self._published[spec.name] = self._add(spec)
        yield from list(self._loaded.values())

    def _add(self, spec: StrategySpec) -> StrategySpec:
        for name in (spec.name, *spec.aliases):
            owner = self._aliases.get(name, name)
            if owner in self._loaded and self._loaded[owner] is not spec:
                raise ConfigurationError(
                    f'Two strategies are called "{name}".', subject=name, remedy="Rename the one that is not built in."
                )
        self._loaded[spec.name] = spec
        self._aliases.update(dict.fromkeys(spec.aliases, spec.name))
        return spec


def _built_in(name: str) -> StrategySpec:
    spec: StrategySpec = import_module(f"kgrag.query.strategies.{_MODULE.get(name, name)}").SPEC
    return spec
