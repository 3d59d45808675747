"""Reports of communities, finest level first, so that a parent can take in its children's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgrag import schemas
from kgrag.engine import Engine
from kgrag.graph.network import Ints
from kgrag.graph.packing import Costs, ReportSettings, pack, roll_up
from kgrag.ids import digest, is_seed
from kgrag.records import Claim, Community, Entity, Relationship, Report, decode, encode
from kgrag.stage import CallStage, RowError
from kgrag.tasks.reports import REPORT, ReportInput, ReportText

Bodies = Callable[[Sequence[int]], list[bytes]]
"""Bodies of items of one kind by their position in the item table."""

_AT_ONCE = 256
"""Communities whose items are read together."""


class ReportPacker:
    """Packs the report inputs of a hierarchy, level by level.

    ``items`` are rows of ``schemas.ITEMS``; their ``body`` column may be left out when ``bodies`` reads it elsewhere, so that
    only arrays of ids, degrees and edges are held for the whole graph."""

    def __init__(
        self,
        items: pa.Table,
        communities: Sequence[Community],
        settings: ReportSettings | None = None,
        *,
        language: str = "",
        bodies: Bodies | None = None,
    ) -> None:
        self.settings = settings or ReportSettings()
        self.communities = {c.id: c for c in communities}
        self._language = language
        self._bodies = bodies or (lambda rows: items["body"].take(pa.array(rows, pa.int64())).to_pylist())
        self._costs = Costs()
        self._lineage: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self._documents = items["document_ids"]
        ids = items["id"].to_pylist()
        kinds = items["kind"]
        self._row = {ids[i]: i for i in _positions(kinds, "entity").tolist()}
        self._rank = items["rank"].to_numpy()
        self._edge_rows = _positions(kinds, "relationship")
        edges = items.select(["source_id", "target_id", "weight", "id"]).take(pa.array(self._edge_rows))
        self._source = self._rows_of(edges["source_id"].to_pylist())
        self._target = self._rows_of(edges["target_id"].to_pylist())
        # one order serves every community: weight, then id; combined degree goes before them
        degree = self._rank[self._source] + self._rank[self._target]
        by_id = np.argsort(np.asarray(edges["id"].to_pylist(), dtype="S32"), kind="stable")
        place = np.empty(len(by_id), dtype=np.int64)
        place[by_id] = np.arange(len(by_id))
        order = np.lexsort((place, -edges["weight"].to_numpy(), -degree))
        self._edge_rows, self._source, self._target = self._edge_rows[order], self._source[order], self._target[order]
        self._claims = self._claims_of(_positions(kinds, "claim"))

    @property
    def levels(self) -> list[int]:
        """Levels from the finest; the inputs of one need the reports of those before it."""
        return sorted({c.level for c in self.communities.values()})

    def inputs(self, level: int, reports: Mapping[str, Report], only: Collection[str] | None = None) -> pa.Table:
        """Rows of ``schemas.REPORT_INPUTS`` for the communities of a level (of ``only``, where given), in id order.
        ``reports`` are those written so far; a child without one is left out of its parent's. A community that only
        imported graphs know gets no report."""
        own = sorted(
            (c for c in self.communities.values() if c.level == level and (only is None or c.id in only)), key=lambda c: c.id
        )
        rows: list[tuple[str, bytes, bytes]] = []
        for start in range(0, len(own), _AT_ONCE):
            part = own[start : start + _AT_ONCE]
            chosen = [self._chosen(c) for c in part]
            edges = list(self._edges_among(chosen))
            read = _Read(self._bodies, [*chosen, *(self._members(c) for c in part if not c.child_ids)], edges)
            for community, members, among in zip(part, chosen, edges, strict=True):
                units, documents = self._lineage_of(community, read)
                if all(map(is_seed, units)):
                    continue
                packed = encode(self._packed(community, members, among, reports, read))
                rows.append((community.id, packed, encode(self._frame(community, units, documents, packed))))
        ids, packs, frames = zip(*rows, strict=True) if rows else ((), (), ())
        return pa.table([ids, [level] * len(ids), packs, frames], schema=schemas.REPORT_INPUTS)

    def _packed(
        self, community: Community, members: Sequence[int], edges: Ints, reports: Mapping[str, Report], read: _Read
    ) -> ReportInput:
        entities = [decode(read.body(row), Entity) for row in members]
        relationships = [decode(read.body(row), Relationship) for row in edges.tolist()]
        claims = {e.id: self._claims[e.id] for e in entities if e.id in self._claims}
        packed, cut = pack(community.name, entities, relationships, claims, self.settings, self._costs, self._language)
        cut = cut or len(members) < len(community.entity_ids)
        if cut and self.settings.enable_sub_community_rollup:
            written = [(len(self.communities[id].entity_ids), reports[id]) for id in community.child_ids if id in reports]
            packed = msgspec.structs.replace(packed, children=roll_up(written, self.settings.max_report_context_tokens))
        return packed

    def _frame(self, community: Community, units: frozenset[str], documents: frozenset[str], packed: bytes) -> Report:
        most = self.settings.max_lineage_text_units
        return Report(
            id=community.id,
            title="",
            summary="",
            rank=int(self._rank[self._members(community)].sum()),
            level=community.level,
            depth=community.depth,
            parent_id=community.parent_id,
            child_ids=community.child_ids,
            entity_ids=community.entity_ids,
            text_unit_ids=sorted(units)[:most],
            document_ids=sorted(documents)[:most],
            input_digest=digest(packed),
        )

    def _chosen(self, community: Community) -> list[int]:
        """Rows of the members of highest degree, best first; ties by id."""
        rows = np.array([self._row[id] for id in sorted(community.entity_ids)], dtype=np.int64)
        best = np.argsort(-self._rank[rows], kind="stable")[: self.settings.max_entities_per_report]
        return rows[best].tolist()  # type: ignore[no-any-return]

    def _edges_among(self, groups: Sequence[Sequence[int]]) -> Iterator[Ints]:
        """Per group the rows of the edges among its members, best first."""
        label = np.full(len(self._rank), -1, dtype=np.int64)
        for number, rows in enumerate(groups):
            label[rows] = number
        owner = label[self._source]
        inside = np.flatnonzero((owner >= 0) & (owner == label[self._target]))
        inside = inside[np.argsort(owner[inside], kind="stable")]
        bounds = np.searchsorted(owner[inside], np.arange(len(groups) + 1))
        for number in range(len(groups)):
            yield self._edge_rows[inside[bounds[number] : bounds[number + 1]]]

    def _lineage_of(self, community: Community, read: _Read) -> tuple[frozenset[str], frozenset[str]]:
        """Text units and documents of all members: a parent's are its children's."""
        found = self._lineage.get(community.id)
        if found is None:
            if community.child_ids:
                parts = [self._lineage_of(self.communities[id], read) for id in community.child_ids]
                units, documents = (frozenset().union(*(part[i] for part in parts)) for i in (0, 1))
                for id in community.child_ids:  # a child's inputs are made before its parent's
                    del self._lineage[id]
            else:
                rows = self._members(community)
                units = frozenset(u for row in rows for u in decode(read.body(row), _Lineage).text_unit_ids)
                documents = frozenset(d for row in rows for d in self._documents[row].as_py())
            found = self._lineage[community.id] = (units, documents)
        return found

    def _members(self, community: Community) -> list[int]:
        return [self._row[id] for id in community.entity_ids]

    def _rows_of(self, ids: Sequence[str]) -> Ints:
        return np.fromiter((self._row[id] for id in ids), np.int64, len(ids))

    def _claims_of(self, rows: Ints) -> dict[str, list[Claim]]:
        found: dict[str, list[Claim]] = {}
        for body in self._bodies(rows.tolist()):
            claim = decode(body, Claim)
            found.setdefault(claim.subject_id, []).append(claim)
        for claims in found.values():
            claims.sort(key=lambda claim: claim.id)
        return found


class _Read:
    """Bodies of the items that a batch of communities needs, read in two calls: entities, then relationships."""

    def __init__(self, bodies: Bodies, entities: Iterable[Sequence[int]], edges: Iterable[Ints]) -> None:
        self._bodies = bodies
        self._held: dict[int, bytes] = {}
        for rows in ({row for group in entities for row in group}, {row for group in edges for row in group.tolist()}):
            self._hold(sorted(rows))

    def body(self, row: int) -> bytes:
        if row not in self._held:
            self._hold([row])
        return self._held[row]

    def _hold(self, rows: list[int]) -> None:
        self._held.update(zip(rows, self._bodies(rows), strict=True))


class ReportStage(CallStage):
    """One report per packed community."""

    name: ClassVar[str] = "reports"
    reads: ClassVar[pa.Schema] = schemas.REPORT_INPUTS
    writes: ClassVar[pa.Schema] = schemas.REPORTS
    role: ClassVar[str] = REPORT.role
    tasks = (REPORT,)

    async def row(self, row: dict[str, Any], engine: Engine) -> dict[str, Any]:
        outcome = await engine.ask(REPORT, decode(row["input"], ReportInput))
        text = outcome.value
        report = msgspec.structs.replace(
            decode(row["frame"], Report),
            title=text.title,
            summary=text.summary,
            rating=text.rating,
            rating_explanation=text.rating_explanation,
            findings=text.findings,
            full_content=full_content(text),
            answers=list(outcome.answers),
        )
        return {"id": row["id"], "body": encode(report), "usage": encode(outcome.usage).decode(), "error": ""}

    def failed(self, row: dict[str, Any], error: RowError) -> dict[str, Any]:
        return {"id": row["id"], "body": b"", "usage": "", "error": msgspec.json.encode(error).decode()}


def full_content(text: ReportText) -> str:
    """A report as Markdown: title, summary, findings, and the rating where one was given."""
    parts = [f"# {text.title}", text.summary]
    for finding in text.findings:
        parts += [f"## {finding.summary}", finding.explanation]
    if text.rating or text.rating_explanation:
        parts.append(f"Rating: {text.rating:g}/10. {text.rating_explanation}".rstrip())
    return "\n\n".join(part for part in parts if part)


def _positions(kinds: pa.ChunkedArray, kind: str) -> Ints:
    return np.flatnonzero(pc.equal(kinds, kind).to_numpy())


class _Lineage(msgspec.Struct):
    text_unit_ids: list[str] = []
