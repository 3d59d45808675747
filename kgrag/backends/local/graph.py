"""GraphStore in SQLite. Bodies stand in the order they came; only narrow keys stand in trees of random order, where every
transaction rewrites pages all over. A vertex is a number there, so that its neighbours are a short range of a small tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from kgrag.backends.local.database import Database
from kgrag.ports import Edge, Vertex
from kgrag.records import Community, decode, encode

# A vertex without a body is only the end of an edge.
SCHEMA = """
CREATE TABLE vertices (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body BLOB);
CREATE TABLE edges (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body BLOB NOT NULL);
CREATE TABLE adjacency (vertex INTEGER NOT NULL, edge TEXT NOT NULL, number INTEGER NOT NULL, other INTEGER NOT NULL,
                        PRIMARY KEY (vertex, edge)) WITHOUT ROWID;
CREATE TABLE lineage (unit TEXT NOT NULL, vertex INTEGER NOT NULL, PRIMARY KEY (unit, vertex)) WITHOUT ROWID;
CREATE TABLE communities (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, level INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE membership (entity TEXT NOT NULL, level INTEGER NOT NULL, community TEXT NOT NULL,
                         PRIMARY KEY (entity, level, community)) WITHOUT ROWID;
"""

# A vertex's first edges by id, as one range: up to the id of the last that counts, or all (a blob is above any text).
_CUT = "AND a.edge <= ifnull((SELECT edge FROM adjacency WHERE vertex=v.number ORDER BY edge LIMIT 1 OFFSET ?), x'')"

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
        with self._db.transaction():
            edges = self._held_edges(list(edge_ids))
            self._drop_adjacency([edge for _, edge in edges.values()])
            self._db.execute_in("DELETE FROM edges WHERE number IN (...)", [number for number, _ in edges.values()])
            vertices = {number: held for number, held in self._held_vertices(list(vertex_ids)).values() if held is not None}
            self._drop_lineage(vertices.items())
            self._db.execute_in("UPDATE vertices SET body=NULL WHERE number IN (...)", list(vertices))
            ends = {end for _, edge in edges.values() for end in (edge.source_id, edge.target_id)}
            loose = [*vertices, *self._numbers(list(ends)).values()]
            unused = "body IS NULL AND NOT EXISTS (SELECT 1 FROM adjacency WHERE vertex=vertices.number)"
            self._db.execute_in(f"DELETE FROM vertices WHERE {unused} AND number IN (...)", loose)

    def _put_vertices(self, vertices: Mapping[str, Vertex]) -> None:
        held = self._held_vertices(list(vertices))
        free = self._free_number("vertices")
        fresh, changed, traced = [], [], []
        for key in sorted(vertices):
            vertex = vertices[key]
            number, old = held.get(key, (0, None))
            if not number:
                number, free = free, free + 1
                fresh.append((number, key, _pack(vertex)))
            elif old != vertex:
                changed.append((_pack(vertex), number))
            if old is None:
                traced += [(unit, number) for unit in vertex.text_unit_ids]
            elif old.text_unit_ids != vertex.text_unit_ids:
                self._drop_lineage([(number, old)])
                traced += [(unit, number) for unit in vertex.text_unit_ids]
        self._db.executemany("INSERT INTO vertices VALUES (?,?,?)", fresh)
        self._db.executemany("UPDATE vertices SET body=? WHERE number=?", changed)
        self._db.executemany("INSERT OR IGNORE INTO lineage VALUES (?,?)", sorted(traced))

    def _put_edges(self, edges: Mapping[str, Edge]) -> None:
        held = self._held_edges(list(edges))
        numbers = self._numbers(list({end for edge in edges.values() for end in (edge.source_id, edge.target_id)}), make=True)
        free = self._free_number("edges")
        fresh, changed, placed, moved = [], [], [], []
        for key in sorted(edges):
            edge = edges[key]
            number, old = held.get(key, (0, None))
            if old == edge:
                continue
            if old is None:
                number, free = free, free + 1
                fresh.append((number, key, _pack(edge)))
            else:
                changed.append((_pack(edge), number))
            if old is None or (old.source_id, old.target_id) != (edge.source_id, edge.target_id):
                if old is not None:
                    moved.append(old)
                source, target = numbers[edge.source_id], numbers[edge.target_id]
                placed += [(source, key, number, target), (target, key, number, source)]
        self._drop_adjacency(moved)
        self._db.executemany("INSERT INTO edges VALUES (?,?,?)", fresh)
        self._db.executemany("UPDATE edges SET body=? WHERE number=?", changed)
        self._db.executemany("INSERT OR REPLACE INTO adjacency VALUES (?,?,?,?)", sorted(placed))

    def _drop_lineage(self, vertices: Iterable[tuple[int, Vertex]]) -> None:
        self._db.executemany(
            "DELETE FROM lineage WHERE unit=? AND vertex=?", [(unit, number) for number, v in vertices for unit in v.text_unit_ids]
        )

    def _drop_adjacency(self, edges: Sequence[Edge]) -> None:
        numbers = self._numbers(list({end for edge in edges for end in (edge.source_id, edge.target_id)}))
        self._db.executemany(
            "DELETE FROM adjacency WHERE vertex=? AND edge=?",
            [(numbers[end], edge.id) for edge in edges for end in {edge.source_id, edge.target_id}],
        )

    def _numbers(self, ids: Sequence[str], *, make: bool = False) -> dict[str, int]:
        """Numbers of these vertices; ``make`` gives one to those that have none."""
        numbers = dict(self._db.rows_in("SELECT id, number FROM vertices WHERE id IN (...)", ids))
        if make and len(numbers) < len(ids):
            missing = sorted(key for key in ids if key not in numbers)
            fresh = dict(zip(missing, range(self._free_number("vertices"), 2**63), strict=False))
            self._db.executemany("INSERT INTO vertices VALUES (?,?,NULL)", [(number, key) for key, number in fresh.items()])
            numbers |= fresh
        return numbers

    def _free_number(self, table: str) -> int:
        return int(self._db.rows(f"SELECT coalesce(max(number), 0) + 1 FROM {table}")[0][0])

    def _held_vertices(self, ids: Sequence[str]) -> dict[str, tuple[int, Vertex | None]]:
        """Per id its number, and the vertex unless it is only the end of an edge."""
        found = self._db.rows_in("SELECT id, number, body FROM vertices WHERE id IN (...)", ids)
        return {key: (number, None if body is None else _vertices(b"[" + body + b"]")[0]) for key, number, body in found}

    def _held_edges(self, ids: Sequence[str]) -> dict[str, tuple[int, Edge]]:
        found = self._db.rows_in("SELECT number, body FROM edges WHERE id IN (...)", ids)
        edges = _edges(_array([(body,) for _, body in found]))
        return {edge.id: (number, edge) for (number, _), edge in zip(found, edges, strict=True)}

    # ------------------------------------------------------------ reading

    def vertices(self, ids: Sequence[str]) -> dict[str, Vertex]:
        found = self._db.rows_in("SELECT body FROM vertices WHERE body IS NOT NULL AND id IN (...)", ids)
        return {vertex.id: vertex for vertex in _vertices(_array(found))}

    def incident(self, ids: Sequence[str], *, cap: int | None = None) -> list[Edge]:
        join = "FROM vertices v CROSS JOIN adjacency a ON a.vertex=v.number"
        cut, before = (_CUT, (cap - 1,)) if cap else ("", ())
        sql = f"SELECT e.body {join} {cut} CROSS JOIN edges e ON e.number=a.number WHERE v.id IN (...)"
        return _in_order(_edges(_array(self._db.rows_in(sql, ids, *before)))) if cap != 0 else []

    def among(self, ids: Sequence[str], *, cap: int | None = None) -> list[Edge]:
        numbers = list(self._numbers(ids).values())
        sql = (
            "SELECT vertex, number FROM adjacency WHERE other IN (SELECT value FROM json_each(?)) AND vertex IN (...)"
            " ORDER BY vertex, edge"
        )
        taken: dict[int, int] = {}
        kept: dict[int, None] = {}
        for vertex, edge in self._db.rows_in(sql, numbers, _pack(numbers).decode()):
            count = taken[vertex] = taken.get(vertex, 0) + 1
            if cap is None or count <= cap:
                kept[edge] = None
        return _in_order(_edges(_array(self._db.rows_in("SELECT body FROM edges WHERE number IN (...)", list(kept)))))

    def expand(self, seeds: Mapping[str, int], *, hops: int, cap: int) -> dict[str, int]:
        names = {
            number: key
            for key, number in self._db.rows_in(
                "SELECT id, number FROM vertices WHERE body IS NOT NULL AND id IN (...)", list(seeds)
            )
        }
        reached = dict.fromkeys(names, 0)
        walks = {seed: _Walk(seeds[key], {seed}, [seed]) for seed, key in names.items()}
        neighbours: dict[int, list[int]] = {}
        for distance in range(1, hops + 1):
            walking = [walk for walk in walks.values() if walk.left > 0 and walk.frontier]
            self._read_neighbours(list({vertex for walk in walking for vertex in walk.frontier}), cap, neighbours)
            for walk in walking:
                for other in walk.step(neighbours):
                    reached.setdefault(other, distance)
        found = self._db.rows_in("SELECT number, id FROM vertices WHERE body IS NOT NULL AND number IN (...)", list(reached))
        return {key: reached[number] for number, key in found}

    def _read_neighbours(self, vertices: Sequence[int], cap: int, into: dict[int, list[int]]) -> None:
        missing = [vertex for vertex in vertices if vertex not in into]
        into.update((vertex, []) for vertex in missing)
        join = f"FROM vertices v CROSS JOIN adjacency a ON a.vertex=v.number {_CUT}"
        sql = f"SELECT a.vertex, a.other {join} WHERE v.number IN (...) ORDER BY a.vertex, a.edge"
        for vertex, other in self._db.rows_in(sql, missing, cap - 1) if cap > 0 else ():
            into[vertex].append(other)

    def citing(self, unit_ids: Sequence[str]) -> dict[str, list[str]]:
        cited: dict[str, list[str]] = {}
        sql = "SELECT unit, id FROM lineage JOIN vertices ON number=vertex WHERE unit IN (...) ORDER BY unit, id"
        for unit, key in self._db.rows_in(sql, unit_ids):
            cited.setdefault(unit, []).append(key)
        return cited

    def scan_edges(self, *, after: str = "", limit: int = 10_000) -> list[Edge]:
        return _edges(_array(self._db.rows("SELECT body FROM edges WHERE id>? ORDER BY id LIMIT ?", (after, limit))))

    def scan_vertices(self, *, after: str = "", limit: int = 10_000) -> list[Vertex]:
        sql = "SELECT body FROM vertices WHERE id>? AND body IS NOT NULL ORDER BY id LIMIT ?"
        return _vertices(_array(self._db.rows(sql, (after, limit))))

    def counts(self) -> tuple[int, int]:
        found = self._db.rows("SELECT (SELECT count(body) FROM vertices), (SELECT count(*) FROM edges)")[0]
        return int(found[0]), int(found[1])

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
                "INSERT INTO communities (id, level, body) VALUES (?,?,?)",
                [(c.id, c.level, encode(c)) for _, c in sorted(new.items())],
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


@dataclass(slots=True)
class _Walk:
    """From one seed: how many vertices it may still reach, which it has, and those reached last."""

    left: int
    seen: set[int]
    frontier: list[int]

    def step(self, neighbours: Mapping[int, Sequence[int]]) -> list[int]:
        """Go one hop further; returns the vertices reached by it."""
        following: list[int] = []
        for vertex in self.frontier:
            for other in neighbours[vertex]:
                if other not in self.seen and self.left > 0:
                    self.seen.add(other)
                    following.append(other)
                    self.left -= 1
        self.frontier = following
        return following


def _array(rows: Sequence[tuple[bytes]]) -> bytes:
    """One JSON array of many bodies: decoding it at once is several times faster than one by one."""
    return b"[" + b",".join([body for (body,) in rows]) + b"]"


def _in_order(edges: Sequence[Edge]) -> list[Edge]:
    """Each once, by (source, target, id)."""
    return sorted({edge.id: edge for edge in edges}.values(), key=lambda e: (e.source_id, e.target_id, e.id))
