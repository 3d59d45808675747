"""GraphStore in SQLite: a vertex's edges stand whole beside each other, so a neighbourhood is one short range of one tree.

Each edge stands at both its ends; what finds it by id names its source only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kgrag.backends.local.database import Database
from kgrag.ports import Edge, Vertex
from kgrag.records import Community, decode, encode

SCHEMA = """
CREATE TABLE vertices (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE edges (id TEXT PRIMARY KEY, source TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE adjacency (vertex TEXT NOT NULL, edge TEXT NOT NULL, other TEXT NOT NULL, body BLOB NOT NULL,
                        PRIMARY KEY (vertex, edge)) WITHOUT ROWID;
CREATE TABLE lineage (unit TEXT NOT NULL, vertex TEXT NOT NULL, PRIMARY KEY (unit, vertex)) WITHOUT ROWID;
CREATE TABLE communities (id TEXT PRIMARY KEY, level INTEGER NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE membership (entity TEXT NOT NULL, level INTEGER NOT NULL, community TEXT NOT NULL,
                         PRIMARY KEY (entity, level, community)) WITHOUT ROWID;
"""

_EDGE = "SELECT body FROM edges JOIN adjacency ON vertex=source AND edge=id"

_pack = msgspec.json.Encoder().encode
_vertices = msgspec.json.Decoder(list[Vertex]).decode
_edges = msgspec.json.Decoder(list[Edge]).decode


class LocalGraph:
    """A cap reads, at each vertex, its edges of smallest id; the result is the union over the vertices asked for."""

    def __init__(self, database: Database) -> None:
        self._db = database

    # ------------------------------------------------------------ writing

    def upsert(self, vertices: Iterable[Vertex], edges: Iterable[Edge]) -> None:
        new_vertices = {vertex.id: vertex for vertex in vertices}
        new_edges = {edge.id: edge for edge in edges}
        with self._db.transaction():
            self._put_vertices(new_vertices)
            self._put_edges(new_edges)

    def delete(self, vertex_ids: Iterable[str], edge_ids: Iterable[str]) -> None:
        vertices, edges = list(vertex_ids), list(edge_ids)
        with self._db.transaction():
            held_vertices, held_edges = self.vertices(vertices), self._edges_by_id(edges)
            self._drop_lineage(held_vertices.values())
            self._db.execute_in("DELETE FROM vertices WHERE id IN (...)", vertices)
            self._drop_adjacency(held_edges.values())
            self._db.execute_in("DELETE FROM edges WHERE id IN (...)", edges)

    def _put_vertices(self, vertices: Mapping[str, Vertex]) -> None:
        held = self.vertices(list(vertices))
        moved = [v for v in held.values() if v.text_unit_ids != vertices[v.id].text_unit_ids]
        self._drop_lineage(moved)
        changed = {v.id for v in moved}
        ordered = [vertices[key] for key in sorted(vertices) if held.get(key) != vertices[key]]
        self._db.executemany("INSERT OR REPLACE INTO vertices VALUES (?,?)", [(v.id, _pack(v)) for v in ordered])
        self._db.executemany(
            "INSERT OR IGNORE INTO lineage VALUES (?,?)",
            sorted((unit, v.id) for v in ordered if v.id in changed or v.id not in held for unit in v.text_unit_ids),
        )

    def _put_edges(self, edges: Mapping[str, Edge]) -> None:
        held = self._edges_by_id(list(edges))
        self._drop_adjacency(
            e for e in held.values() if (e.source_id, e.target_id) != (edges[e.id].source_id, edges[e.id].target_id)
        )
        changed = [(edges[key], _pack(edges[key])) for key in sorted(edges) if held.get(key) != edges[key]]
        self._db.executemany("INSERT OR REPLACE INTO edges VALUES (?,?)", [(e.id, e.source_id) for e, _ in changed])
        places = {(e.source_id, e.id, e.target_id, body) for e, body in changed}
        places |= {(e.target_id, e.id, e.source_id, body) for e, body in changed}
        self._db.executemany("INSERT OR REPLACE INTO adjacency VALUES (?,?,?,?)", sorted(places))

    def _drop_lineage(self, vertices: Iterable[Vertex]) -> None:
        self._db.executemany(
            "DELETE FROM lineage WHERE unit=? AND vertex=?", [(unit, v.id) for v in vertices for unit in v.text_unit_ids]
        )

    def _drop_adjacency(self, edges: Iterable[Edge]) -> None:
        self._db.executemany(
            "DELETE FROM adjacency WHERE vertex=? AND edge=?", [(end, e.id) for e in edges for end in {e.source_id, e.target_id}]
        )

    # ------------------------------------------------------------ reading

    def vertices(self, ids: Sequence[str]) -> dict[str, Vertex]:
        found = self._db.rows_in("SELECT body FROM vertices WHERE id IN (...)", ids)
        return {vertex.id: vertex for vertex in _vertices(_array(found))}

    def incident(self, ids: Sequence[str], *, cap: int | None = None) -> list[Edge]:
        if cap is None:
            found = self._db.rows_in("SELECT body FROM adjacency WHERE vertex IN (...)", ids)
        else:
            found = self._db.rows_each(
                "SELECT body FROM adjacency WHERE vertex=? ORDER BY edge LIMIT ?", [(key, cap) for key in dict.fromkeys(ids)]
            )
        return _in_order(_edges(_array(found)))

    def among(self, ids: Sequence[str], *, cap: int | None = None) -> list[Edge]:
        inside = _pack(list(dict.fromkeys(ids))).decode()
        sql = "SELECT vertex, body FROM adjacency WHERE other IN (SELECT value FROM json_each(?)) AND vertex IN (...) ORDER BY vertex, edge"
        taken: dict[str, int] = {}
        bodies: list[tuple[bytes]] = []
        for vertex, body in self._db.rows_in(sql, ids, inside):
            count = taken[vertex] = taken.get(vertex, 0) + 1
            if cap is None or count <= cap:
                bodies.append((body,))
        return _in_order(_edges(_array(bodies)))

    def expand(self, seeds: Mapping[str, int], *, hops: int, cap: int) -> dict[str, int]:
        reached: dict[str, int] = dict.fromkeys(self.vertices(list(seeds)), 0)
        neighbours: dict[str, list[str]] = {}
        for seed in [s for s in seeds if s in reached]:
            left = seeds[seed]
            seen = {seed}
            frontier = [seed]
            for distance in range(1, hops + 1):
                if left <= 0 or not frontier:
                    break
                missing = [v for v in frontier if v not in neighbours]
                for vertex in missing:
                    neighbours[vertex] = []
                for vertex, other in self._db.rows_each(
                    "SELECT vertex, other FROM adjacency WHERE vertex=? ORDER BY edge LIMIT ?", [(v, cap) for v in missing]
                ):
                    neighbours[vertex].append(other)
                following: list[str] = []
                for vertex in frontier:
                    for other in neighbours[vertex]:
                        if other in seen or left <= 0:
                            continue
                        seen.add(other)
                        following.append(other)
                        left -= 1
                        if distance < reached.get(other, distance + 1):
                            reached[other] = distance
                frontier = following
        return reached

    def citing(self, unit_ids: Sequence[str]) -> dict[str, list[str]]:
        cited: dict[str, list[str]] = {}
        for unit, vertex in self._db.rows_in(
            "SELECT unit, vertex FROM lineage WHERE unit IN (...) ORDER BY unit, vertex", unit_ids
        ):
            cited.setdefault(unit, []).append(vertex)
        return cited

    def scan_edges(self, *, after: str = "", limit: int = 10_000) -> list[Edge]:
        return _edges(_array(self._db.rows(f"{_EDGE} WHERE id>? ORDER BY id LIMIT ?", (after, limit))))

    def scan_vertices(self, *, after: str = "", limit: int = 10_000) -> list[Vertex]:
        return _vertices(_array(self._db.rows("SELECT body FROM vertices WHERE id>? ORDER BY id LIMIT ?", (after, limit))))

    def counts(self) -> tuple[int, int]:
        found = self._db.rows("SELECT (SELECT count(*) FROM vertices), (SELECT count(*) FROM edges)")[0]
        return int(found[0]), int(found[1])

    def _edges_by_id(self, ids: Sequence[str]) -> dict[str, Edge]:
        return {edge.id: edge for edge in _edges(_array(self._db.rows_in(f"{_EDGE} WHERE id IN (...)", ids)))}

    # ------------------------------------------------------------ communities

    def replace_communities(self, communities: Sequence[Community], gone: Iterable[str]) -> None:
        new = {c.id: c for c in communities}
        with self._db.transaction():
            touched = [*new, *gone]
            held = self._db.rows_in("SELECT body FROM communities WHERE id IN (...)", touched)
            self._db.executemany(
                "DELETE FROM membership WHERE entity=? AND level=? AND community=?",
                [(entity, c.level, c.id) for (body,) in held for c in [decode(body, Community)] for entity in c.entity_ids],
            )
            self._db.execute_in("DELETE FROM communities WHERE id IN (...)", touched)
            self._db.executemany(
                "INSERT INTO communities VALUES (?,?,?)", [(c.id, c.level, encode(c)) for _, c in sorted(new.items())]
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO membership VALUES (?,?,?)",
                sorted((entity, c.level, c.id) for c in new.values() for entity in c.entity_ids),
            )

    def communities(self, ids: Sequence[str] | None = None) -> list[Community]:
        sql = "SELECT body FROM communities"
        found = self._db.rows(sql) if ids is None else self._db.rows_in(f"{sql} WHERE id IN (...)", ids)
        return sorted((decode(body, Community) for (body,) in found), key=lambda c: (c.level, c.id))

    def communities_of(self, entity_ids: Sequence[str]) -> dict[str, list[str]]:
        of: dict[str, list[str]] = {}
        found = self._db.rows_in(
            "SELECT entity, community FROM membership WHERE entity IN (...) ORDER BY entity, level, community", entity_ids
        )
        for entity, community in found:
            of.setdefault(entity, []).append(community)
        return of


def _array(rows: Sequence[tuple[bytes]]) -> bytes:
    """One JSON array of many bodies: decoding it at once is several times faster than one by one."""
    return b"[" + b",".join([body for (body,) in rows]) + b"]"


def _in_order(edges: Sequence[Edge]) -> list[Edge]:
    """Each once, by (source, target, id)."""
    return sorted({edge.id: edge for edge in edges}.values(), key=lambda e: (e.source_id, e.target_id, e.id))
