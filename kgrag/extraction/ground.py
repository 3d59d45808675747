"""Whether a unit's text bears out what a model says it read there."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from kgrag.ids import entity_key
from kgrag.records import EntityStatement, RelationshipStatement

_BETWEEN_WORDS = re.compile(r"[\W_]+")


class Grounding:
    """The text of one unit, searched for names and quotes. Case, width, spaces and punctuation do not matter."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._bare: str | None = None

    def holds(self, passage: str) -> bool:
        """Whether the text has this passage; never for one without a letter or digit."""
        if not passage:
            return False
        if passage in self._text and not passage.isspace():
            return True
        if self._bare is None:
            self._bare = _bare(self._text)
        wanted = _bare(passage)
        return bool(wanted) and wanted in self._bare

    def entity(self, entity: EntityStatement) -> bool:
        """Whether the text has the entity's name, or the passage quoted for it."""
        return self.holds(entity.name) or self.holds(entity.span)

    def relationship(self, relationship: RelationshipStatement) -> bool:
        """Whether the text has the passage quoted for it, or the names of both ends."""
        return self.holds(relationship.span) or (self.holds(relationship.source) and self.holds(relationship.target))


def without_rejected(
    entities: Sequence[EntityStatement],
    relationships: Iterable[RelationshipStatement],
    accepts: Callable[[EntityStatement], bool],
) -> tuple[list[EntityStatement], list[RelationshipStatement]]:
    """Accepted entities, and the relationships that name no rejected one: a name that was rejected must not come back as
    the end of an edge. A name is accepted if any statement of it is."""
    kept = [entity for entity in entities if accepts(entity)]
    if len(kept) == len(entities):
        return kept, list(relationships)
    rejected = {entity_key(e.name) for e in entities} - {entity_key(e.name) for e in kept}
    return kept, [r for r in relationships if entity_key(r.source) not in rejected and entity_key(r.target) not in rejected]


def _bare(text: str) -> str:
    return _BETWEEN_WORDS.sub("", unicodedata.normalize("NFKC", text).casefold())
