"""When two names are one entity."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from kgrag.errors import ConfigurationError
from kgrag.ids import compact_key, digest, entity_id, schema_key
from kgrag.records import UnitRecord
from kgrag.section import Section

_MEMO_ENTRIES = 1 << 17


class ResolutionSettings(Section):
    """When two names are one entity."""

    identity: Literal["name", "name_and_type"] = "name"
    """Whether entities of one name and different types are one (`name`) or several (`name_and_type`)."""
    fold_accents: bool = True
    """Whether "São Paulo" and "Sao Paulo" are one. Turn off where accents tell names apart, as in Vietnamese."""
    aliases: dict[str, str] = {}
    """Hand-made: each name is taken for the name on the right."""
    fuzzy: bool = False
    """Whether similar spellings are joined too. Off: it also joins different things that share most of their name."""
    similarity_threshold: float = Field(default=0.6, ge=0, le=1)
    """With `fuzzy`: the least similarity (0-1) of two names that are joined. From the July 2026 release of the reference."""


class Resolver:
    """Names to group keys and entity ids. ``joined`` maps group keys to the one that stands for them
    (``aliases.fuzzy_aliases``, hand edits) and is applied after the hand-made aliases of the settings.

    Raises ConfigurationError for aliases in a circle, and where ``fuzzy`` is on but nothing was joined for it."""

    def __init__(self, settings: ResolutionSettings | None = None, joined: Mapping[str, str] | None = None) -> None:
        self.settings = settings or ResolutionSettings()
        if self.settings.fuzzy and joined is None:
            raise ConfigurationError(
                "Fuzzy name resolution needs the names of the whole corpus, and none were given.",
                subject="resolution.fuzzy",
                remedy="Turn resolution.fuzzy off, or pass the aliases that were found.",
            )
        self.joined = dict(joined or {})
        self._typed = self.settings.identity == "name_and_type"
        self._aliases = self._closed(self.settings.aliases)
        self._keys: dict[str, str] = {}
        self._ids: dict[tuple[str, str], str] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (Resolver, (self.settings, self.joined))

    @property
    def digest(self) -> str:
        """Changes when the same name may get another key."""
        return digest(json.dumps([self.settings.identity, self.settings.fold_accents, self._aliases, self.joined], sort_keys=True))

    def bare_key(self, name: str) -> str:
        """The name's key before any alias."""
        return compact_key(name, fold_accents=self.settings.fold_accents)

    def key(self, name: str) -> str:
        """The group key of a name; empty where the name has no visible character."""
        key = self._keys.get(name)
        if key is None:
            if len(self._keys) >= _MEMO_ENTRIES:
                self._keys.clear()
            key = self.bare_key(name)
            key = self._aliases.get(key, key)
            key = self._keys[name] = self.joined.get(key, key)
        return key

    def entity(self, name: str, type: str = "") -> str:
        """The id of the entity with this name (and type, where types tell entities apart); empty for an empty name."""
        part = type if self._typed else ""
        found = self._ids.get((name, part))
        if found is None:
            if len(self._ids) >= _MEMO_ENTRIES:
                self._ids.clear()
            key = self.key(name)
            found = self._ids[name, part] = entity_id(key, schema_key(part)) if key else ""
        return found

    def types(self, record: UnitRecord) -> dict[str, str]:
        """Per group key the type that a bare mention in this unit means: the one it states most often for that name
        (smallest on a tie). Empty where types are no part of identity."""
        if not self._typed:
            return {}
        votes: dict[str, Counter[str]] = {}
        for entity in record.entities:
            if entity.type:
                votes.setdefault(self.key(entity.name), Counter())[schema_key(entity.type)] += 1
        return {key: min(count, key=lambda type: (-count[type], type)) for key, count in votes.items()}

    def _closed(self, aliases: Mapping[str, str]) -> dict[str, str]:
        """Aliases between keys, chains followed to their end."""
        step = {self.bare_key(name): self.bare_key(target) for name, target in aliases.items()}
        step = {start: target for start, target in step.items() if start != target}
        closed = {}
        for start in step:
            seen, key = {start}, step[start]
            while key in step:
                if key in seen:
                    raise ConfigurationError(
                        f'The aliases of "{start}" form a circle.', subject=start, remedy="Let each name lead to one final name."
                    )
                seen.add(key)
                key = step[key]
            closed[start] = key
        return closed
