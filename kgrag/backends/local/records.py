"""RecordStore in SQLite: records by unit, statements found by group through a narrow tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kgrag.backends.local.database import Database
from kgrag.records import Statement, UnitRecord, decode, encode, pack_statements, unpack_statements

SCHEMA = """
CREATE TABLE records (number INTEGER PRIMARY KEY, unit TEXT NOT NULL UNIQUE, body BLOB NOT NULL, groups TEXT NOT NULL);
CREATE TABLE statements (number INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE evidence (item TEXT NOT NULL, unit TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (item, unit)) WITHOUT ROWID;
"""

_GROUPS = 512
"""Groups read by one statement."""


class LocalRecords:
    """Statements of one group in one unit are one row, so a unit's record costs a row per item it states."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, records: Iterable[UnitRecord], statements: Iterable[Statement]) -> None:
        rows: dict[tuple[str, str], list[Statement]] = {}
        for statement in statements:
            rows.setdefault((statement.group, statement.unit_id), []).append(statement)
        records = list(records)
        groups: dict[str, list[str]] = {record.unit_id: [] for record in records}
        for group, unit in rows:
            groups.setdefault(unit, []).append(group)
        with self._db.transaction():
            self._drop_statements(list(groups))
            self._db.execute_in("DELETE FROM records WHERE unit IN (...)", [record.unit_id for record in records])
            self._db.executemany(
                "INSERT INTO records (unit, body, groups) VALUES (?,?,?)",
                [(r.unit_id, encode(r), " ".join(groups[r.unit_id])) for r in records],
            )
            number = int(self._db.rows("SELECT coalesce(max(number), 0) + 1 FROM statements")[0][0])
            self._db.executemany(
                "INSERT INTO statements VALUES (?,?)", ((number + i, pack_statements(s)) for i, s in enumerate(rows.values()))
            )
            self._db.executemany("INSERT INTO evidence VALUES (?,?,?)", sorted((*key, number + i) for i, key in enumerate(rows)))

    def get(self, unit_ids: Sequence[str]) -> dict[str, UnitRecord]:
        found = self._db.rows_in("SELECT unit, body FROM records WHERE unit IN (...)", unit_ids)
        return {unit: decode(body, UnitRecord) for unit, body in found}

    def delete(self, unit_ids: Iterable[str]) -> None:
        units = list(unit_ids)
        with self._db.transaction():
            self._drop_statements(units)
            self._db.execute_in("DELETE FROM records WHERE unit IN (...)", units)

    def groups_of(self, unit_ids: Sequence[str]) -> set[str]:
        found = self._db.rows_in("SELECT groups FROM records WHERE unit IN (...)", unit_ids)
        return {group for (groups,) in found for group in groups.split()}

    def statements(self, groups: Sequence[str]) -> Iterator[Statement]:
        sql = "SELECT body FROM evidence CROSS JOIN statements USING (number) WHERE item=? ORDER BY unit"
        for group in dict.fromkeys(groups):
            for (body,) in self._db.rows(sql, (group,)):
                yield from unpack_statements(body)

    def evidence(self, groups: Sequence[str]) -> Iterator[tuple[str, str, bytes]]:
        sql = "SELECT item, unit, body FROM evidence CROSS JOIN statements USING (number) WHERE item IN (...) ORDER BY item, unit"
        ids = sorted(set(groups))
        for start in range(0, len(ids), _GROUPS):
            yield from self._db.rows_in(sql, ids[start : start + _GROUPS])

    def scan(self, *, after: str = "", limit: int = 1000) -> list[UnitRecord]:
        found = self._db.rows("SELECT body FROM records WHERE unit>? ORDER BY unit LIMIT ?", (after, limit))
        return [decode(body, UnitRecord) for (body,) in found]

    def count(self) -> int:
        return int(self._db.rows("SELECT count(*) FROM records")[0][0])

    def _drop_statements(self, units: list[str]) -> None:
        known = self._db.rows_in("SELECT unit, groups FROM records WHERE unit IN (...)", units)
        keys = [(group, unit) for unit, groups in known for group in groups.split()]
        self._db.executemany("DELETE FROM statements WHERE number=(SELECT number FROM evidence WHERE item=? AND unit=?)", keys)
        self._db.executemany("DELETE FROM evidence WHERE item=? AND unit=?", keys)
