"""Communities of the stored graph and the reports about them, beside the stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from kgrag import schemas
from kgrag.graph.communities import CommunitySettings, detect, follow
from kgrag.graph.network import network_of
from kgrag.graph.packing import ReportSettings
from kgrag.graph.reports import ReportPacker
from kgrag.ids import digest
from kgrag.index.write import store_rows
from kgrag.ingest.evidence import read_ids
from kgrag.ingest.items import VectorReader
from kgrag.ingest.side import StoreSide, batched
from kgrag.ingest.tables import Table
from kgrag.ports import Collection, Edge, Vertex
from kgrag.records import Community, Report, decode, encode

_PAGE = 10_000
MADE = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("body", pa.binary(), nullable=False)])


class CommunityScan(msgspec.Struct, frozen=True, kw_only=True):
    """``communities`` of the graph now, and the ``levels`` with reports to look at, finest first."""

    communities: int
    levels: list[int]


class Partition(msgspec.Struct, frozen=True):
    """What the stored communities are of: ``state`` names the graph and the settings."""

    state: str = ""
    communities: int = 0


@dataclass
class ReportRun:
    """The communities and reports of one run. It stays beside the stores from step to step."""

    changed: list[Community]
    gone: list[str]
    partition: Partition
    needed: set[str]
    packer: ReportPacker
    fresh: bool
    anew: bool
    reports: dict[str, Report] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    failed: int = 0


def find_communities(
    side: StoreSide,
    settings: CommunitySettings,
    reports: ReportSettings,
    ends: Table | None,
    affected: Table | None,
    *,
    cold: bool,
    fresh: bool,
    anew: bool = False,
    language: str = "",
) -> CommunityScan:
    """Bring the partition up to date with the stored graph and find the reports that may have to change.

    ``ends`` and ``affected`` are the evidence's. ``cold``: partition the whole graph anew. ``fresh``: no stored report
    counts, whatever it was written from. ``anew``: the rows of reports that stay are made again."""
    edges = list(_edges(side))
    ids, network = network_of((), ((edge.source_id, edge.target_id, edge.weight) for edge in edges))
    before = side.stores.graph.communities()
    side.stop.check()
    state = digest(
        "partition", settings.model_dump_json(), *ids, network.low.tobytes(), network.high.tobytes(), network.weight.tobytes()
    )
    if before and partition(side).state == state:
        now = before  # a run that died after it wrote them, or a change that moved no edge
    elif cold or not before or ends is None:
        now = detect(ids, network, settings)
    else:
        now = follow(ids, network, settings, before, set(read_ids(side, ends)))
    side.stop.check()
    known = {community.id: community for community in before}
    changed = [community for community in now if known.get(community.id) != community]
    moved = None if fresh or anew or affected is None else set(read_ids(side, affected))
    needed = _needed(side, now, {community.id for community in changed}, moved)
    packer = _packer(side, _with_descendants(now, needed), edges, reports, language)
    gone = sorted(known.keys() - {community.id for community in now})
    side.memo["reports"] = ReportRun(changed, gone, Partition(state, len(now)), needed, packer, fresh, anew)
    return CommunityScan(communities=len(now), levels=sorted({c.level for c in now if c.id in needed}))


def _needed(side: StoreSide, now: Sequence[Community], changed: set[str], moved: set[str] | None) -> set[str]:
    """Communities whose report may differ: new or moved in the hierarchy, holding a changed item, without a report, or
    above one of these."""
    parents = {community.id: community.parent_id for community in now}
    found: set[str] = set()
    for part in batched(now):
        stored = side.stores.search.get("reports", [community.id for community in part]) if moved is not None else {}
        for community in part:
            if moved is None or community.id in changed or community.id not in stored or not moved.isdisjoint(community.entity_ids):
                id = community.id
                while id and id not in found:
                    found.add(id)
                    id = parents[id]
    return found


def _with_descendants(now: Sequence[Community], ids: set[str]) -> list[Community]:
    by_id = {community.id: community for community in now}
    found: dict[str, Community] = {}
    waiting = sorted(ids)
    while waiting:
        id = waiting.pop()
        if id not in found:
            found[id] = by_id[id]
            waiting += by_id[id].child_ids
    return list(found.values())


def _packer(
    side: StoreSide, communities: Sequence[Community], edges: Sequence[Edge], settings: ReportSettings, language: str
) -> ReportPacker:
    """The packer over the members of these communities, whose texts it reads from the stores as it goes."""
    members = {id for community in communities for id in community.entity_ids}
    vertices = [vertex for vertex in _vertices(side) if vertex.id in members]
    among = [edge for edge in edges if edge.source_id in members and edge.target_id in members]
    claims = [id for id, subject in _claims(side) if subject in members]
    cited = _documents_of(side, {unit for vertex in vertices for unit in vertex.text_unit_ids})
    documents = [sorted({cited[unit] for unit in vertex.text_unit_ids if unit in cited}) for vertex in vertices]
    kinds = ["entity"] * len(vertices) + ["relationship"] * len(among) + ["claim"] * len(claims)
    ids = [vertex.id for vertex in vertices] + [edge.id for edge in among] + claims
    items = pa.table(
        {
            "kind": kinds,
            "id": ids,
            "source_id": [""] * len(vertices) + [edge.source_id for edge in among] + [""] * len(claims),
            "target_id": [""] * len(vertices) + [edge.target_id for edge in among] + [""] * len(claims),
            "weight": [0.0] * len(vertices) + [edge.weight for edge in among] + [0.0] * len(claims),
            "rank": [vertex.rank for vertex in vertices] + [0] * (len(among) + len(claims)),
            "document_ids": pa.array(documents + [[]] * (len(among) + len(claims)), pa.list_(pa.string())),
        }
    )
    collections: dict[str, Collection] = {"entity": "entities", "relationship": "relationships", "claim": "claims"}

    def bodies(rows: Sequence[int]) -> list[bytes]:
        if not rows:
            return []
        wanted = [ids[row] for row in rows]  # of one kind
        found = side.stores.search.get(collections[kinds[rows[0]]], wanted)
        return [found[id] for id in wanted]

    return ReportPacker(items, communities, settings, language=language, bodies=bodies)


def pack_reports(side: StoreSide, level: int) -> Table:
    """The inputs of one level whose report a model has to write (``REPORT_INPUTS``). A stored report that was written from
    the same input stays, at its new place in the hierarchy."""
    run = _run(side)
    out = side.writer(f"report_inputs_{level}", schemas.REPORT_INPUTS)
    inputs = run.packer.inputs(level, _Reports(side, run))
    for start in range(0, inputs.num_rows, side.settings.rows_per_shard):
        side.stop.check()
        rows = inputs.slice(start, side.settings.rows_per_shard)
        ids = rows["id"].to_pylist()
        stored = {} if run.fresh else side.stores.search.get("reports", ids)
        ask = []
        for index, (id, raw) in enumerate(zip(ids, rows["frame"].to_pylist(), strict=True)):
            if id not in run.needed:
                continue
            frame = decode(raw, Report)
            kept = decode(stored[id], Report) if id in stored else None
            if kept is None or kept.input_digest != frame.input_digest:
                ask.append(index)
                continue
            run.reports[id] = moved = _at(kept, frame)
            if run.anew or encode(moved) != stored[id]:
                run.made.append(id)
        out.add(rows.take(pa.array(ask, pa.int64())))
    return out.close()


def take_reports(side: StoreSide, reports: Table) -> int:
    """Keep the reports of one level for the level above. Returns how many failed."""
    run = _run(side)
    for rows in side.tables.batches(reports):
        for id, body in zip(rows["id"].to_pylist(), rows["body"].to_pylist(), strict=True):
            if body:
                run.reports[id] = decode(body, Report)
                run.made.append(id)
            else:
                run.failed += 1
    return run.failed


def made_reports(side: StoreSide) -> Table:
    """The reports of this run that differ from the stored ones, in id order."""
    run = _run(side)
    out = side.writer("made_reports", MADE)
    for ids in batched(sorted(run.made)):
        out.add(pa.table([list(ids), [encode(run.reports[id]) for id in ids]], schema=MADE))
    return out.close()


def write_communities(side: StoreSide, rows: Table, vectors: Table | None) -> int:
    """Reports and communities in one step, so that a reader sees the old hierarchy or the new one. Returns rows written."""
    run = _run(side)
    made = VectorReader(side, vectors)
    found = [store_rows(part, made.of(part["id"].to_pylist())) for part in side.tables.batches(rows)]
    stale = [id for id in sorted(run.needed) if id not in run.reports]  # their report failed, or nothing but seeds is in them
    if found or run.changed or run.gone or stale or partition(side) != run.partition:
        with side.stores.transaction():
            for page in found:
                side.stores.search.upsert("reports", page)
            for ids in batched([*run.gone, *stale]):
                side.stores.search.delete("reports", ids)
            side.stores.graph.replace_communities(run.changed, run.gone)
            side.stores.status.write_value("partition", msgspec.to_builtins(run.partition))
    del side.memo["reports"]
    return sum(map(len, found))


def partition(side: StoreSide) -> Partition:
    """Of the stored communities; empty where there are none."""
    return msgspec.convert(side.stores.status.read_value("partition") or {}, Partition)


class _Reports(Mapping[str, Report]):
    """Reports written so far in this run, else the stored ones of communities it does not touch."""

    def __init__(self, side: StoreSide, run: ReportRun) -> None:
        self._side, self._run = side, run

    def __getitem__(self, id: str) -> Report:
        if id not in self._run.reports:
            stored = {} if id in self._run.needed else self._side.stores.search.get("reports", [id])
            self._run.reports[id] = decode(stored[id], Report)
        return self._run.reports[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._run.reports)

    def __len__(self) -> int:
        return len(self._run.reports)


def _at(report: Report, frame: Report) -> Report:
    """The text of one report at the place and with the lineage of another."""
    text = {
        name: getattr(report, name) for name in ("title", "summary", "rating", "rating_explanation", "findings", "full_content")
    }
    return msgspec.structs.replace(frame, **text, answers=report.answers)


def _run(side: StoreSide) -> ReportRun:
    run = side.memo["reports"]
    assert isinstance(run, ReportRun)
    return run


def _documents_of(side: StoreSide, units: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in batched(sorted(units)):
        for id, body in side.stores.search.get("text_units", part).items():
            found[id] = decode(body, _Unit).document_id
    return found


def _claims(side: StoreSide) -> Iterator[tuple[str, str]]:
    """Ids of all claims and of their subjects."""
    after = ""
    while page := side.stores.search.scan("claims", after=after):
        side.stop.check()
        yield from ((id, decode(body, _Claim).subject_id) for id, body in page)
        after = page[-1][0]


class _Unit(msgspec.Struct):
    document_id: str


class _Claim(msgspec.Struct):
    subject_id: str


def _edges(side: StoreSide) -> Iterator[Edge]:
    after = ""
    while page := side.stores.graph.scan_edges(after=after, limit=_PAGE):
        side.stop.check()
        yield from page
        after = page[-1].id


def _vertices(side: StoreSide) -> Iterator[Vertex]:
    after = ""
    while page := side.stores.graph.scan_vertices(after=after, limit=_PAGE):
        side.stop.check()
        yield from page
        after = page[-1].id
