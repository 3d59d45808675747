"""bridge: passages by words and meaning, rescored over what the best of them name (``kgrag.query.bridge``).

No model call but the answer's. Entities come from the graph (which text units cite which), homes from the index term that
every passage of a titled document carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from kgrag.index.texts import about_token
from kgrag.ports import Scored, Vertex
from kgrag.query import walk
from kgrag.query.bridge import BridgeSettings, bridged, shared_out
from kgrag.query.found import Found
from kgrag.query.fuse import Fused, Leg, by_place, fuse
from kgrag.query.question import Question
from kgrag.query.strategies.strategy import StrategySpec
from kgrag.records import decode
from kgrag.text import is_dense, words

if TYPE_CHECKING:
    from kgrag.query.settings import SearchSettings

_LONGEST_NAME = 6
"""Words of the longest title looked for in a question."""
_LONGEST_DENSE_NAME = 8
"""The same in characters, for scripts without spaces."""
_MOST_HOMES = 100
"""Text units of titled documents looked up per question."""
_EDGES_PER_ENTITY = 20


class _Title(msgspec.Struct, frozen=True):
    """The part of a text unit's body that says what it is about."""

    title: str = ""


class Bridge:
    """``candidates`` text units per ranking make the base. To its rankings come ``bridges`` and ``named_homes``, weighed so
    that a unit's score is the base's plus what it gains."""

    def __init__(self, settings: BridgeSettings, candidates: int) -> None:
        self._settings = settings
        self._candidates = candidates

    async def find(self, question: Question) -> Found:
        own = self._settings
        await question.embed()
        calls = question.rankings("text_units", max(self._candidates, question.top_k), name="text_units")
        legs = await question.access.together(*calls)
        base = fuse(legs)
        best = {item.id: item.score for item in base[: own.top_passages]} if own.weight else {}
        cited = await question.access.one(lambda: question.access.graph.citing(list(best))) if best else {}
        entities = await walk.vertices(question, (entity for found in cited.values() for entity in found))
        asked = [about_token(name) for name in _names_in(question.text)] if own.asked_weight else []
        homes = await self._homes(question, [*(about_token(e.name) for e in entities.values()), *asked], base)
        titled = {id: homes[token] for id, e in entities.items() if (token := about_token(e.name)) in homes}
        gained = bridged(best, cited, {id: e.text_unit_ids for id, e in entities.items()}, titled, own)
        weight = sum(leg.weight for leg in legs if leg.ranked)
        found = Found(legs=list(legs))
        found.legs.append(await self._leg(question, "bridges", gained, weight * own.weight))
        found.legs.append(await self._leg(question, "named_homes", shared_out(homes, asked), weight * own.asked_weight))
        await self._facts(question, cited, entities, found)
        return found

    async def _leg(self, question: Question, name: str, gained: Mapping[str, float], weight: float) -> Leg:
        passing = await walk.passing_units(question, gained)
        ranked = [Scored(id, gain) for id, gain in gained.items() if id in passing]
        ranked.sort(key=lambda item: (-item.score, item.id))
        return Leg(name, "text_unit", ranked, weight, full=1.0)

    async def _homes(self, question: Question, tokens: Iterable[str], base: Sequence[Fused]) -> dict[str, list[str]]:
        """Text units of the documents titled with each name, by its term: best ranked first, a few each."""
        wanted = sorted(set(tokens))
        if not wanted:
            return {}
        search, where = question.access.search, question.filter
        hits = await question.access.one(lambda: search.lexical("text_units", wanted, _MOST_HOMES, filter=where))
        ids = [hit.id for hit in hits]
        bodies = await question.access.one(lambda: search.get("text_units", ids))
        score = {item.id: item.score for item in base}
        homes: dict[str, list[str]] = {}
        for id in sorted(bodies, key=lambda id: (-score.get(id, 0.0), id)):
            of = homes.setdefault(about_token(decode(bodies[id], _Title).title), [])
            if len(of) < self._settings.homes_per_entity:
                of.append(id)
        return homes

    async def _facts(
        self, question: Question, cited: Mapping[str, list[str]], entities: Mapping[str, Vertex], found: Found
    ) -> None:
        """The entities of the best passages in their order, and the relationships between them, as far as asked for."""
        ids = list(dict.fromkeys(id for unit in cited for id in cited[unit] if id in entities))
        if "entity" in question.kinds and ids:
            found.legs.append(Leg("cited_entities", "entity", by_place(ids)))
        if "relationship" in question.kinds and ids:
            edges = await walk.edges_among(question, ids, _EDGES_PER_ENTITY)
            edges.sort(key=lambda edge: (-edge.weight, edge.id))
            found.legs.append(Leg("cited_relationships", "relationship", by_place([edge.id for edge in edges])))


def _names_in(question: str) -> list[str]:
    """Every run of words (or of characters, in a dense script) of a question that may be a document's title, sorted."""
    found: set[str] = set()
    spoken = words(question)
    for start in range(len(spoken)):
        for end in range(start + 1, min(start + _LONGEST_NAME, len(spoken)) + 1):
            found.add(" ".join(spoken[start:end]))
    for word in spoken:
        if is_dense(word[0]):
            for start in range(len(word)):
                found.update(word[start : start + length] for length in range(2, _LONGEST_DENSE_NAME + 1))
    return sorted(name for name in found if len(name) > 1)


def _make(settings: SearchSettings) -> Bridge:
    return Bridge(settings.bridge, settings.candidates)


SPEC = StrategySpec(
    name="bridge",
    summary="Text units by words and meaning, rescored over the entities that the best of them name.",
    methodology="lightrag",
    artifacts=frozenset({"text_units", "entities", "graph"}),
    make=_make,
)
