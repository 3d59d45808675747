from __future__ import annotations

from kgrag.ports import Stores
from kgrag.records import EntityStatement, Statement, UnitRecord, unpack_statements


def record(unit: str, *names: str) -> UnitRecord:
    return UnitRecord(unit_id=unit, document_id="d", entities=[EntityStatement(name=n) for n in names])


def states(group: str, unit: str, text: str = "") -> Statement:
    return Statement(kind="entity", group=group, unit_id=unit, document_id="d", description=text)


class RecordStoreContract:
    """Needs ``stores``."""

    def test_records_come_back_equal(self, stores: Stores) -> None:
        given = record("u1", "Ann", "王")
        stores.records.put([given, record("u2")], [states("g", "u1")])
        assert stores.records.get(["u1", "u3"]) == {"u1": given}
        assert stores.records.count() == 2

    def test_statements_come_group_by_group_with_all_fields(self, stores: Stores) -> None:
        full = Statement(
            kind="relationship",
            group="g1",
            unit_id="u1",
            document_id="d",
            name="n",
            type="t",
            description="x\ny",
            score=0.1,
            source_id="a",
            target_id="b",
            source_name="A",
            target_name="B",
            other_id="o",
            start_date="2020",
            end_date="2021",
        )
        given = [full, states("g2", "u1", "one"), states("g1", "u1"), states("g2", "u2", "two"), states("g2", "u2", "three")]
        stores.records.put([record("u1"), record("u2")], given)
        found = list(stores.records.statements(["g2", "g1", "g2", "none"]))
        assert [s.group for s in found] == ["g2"] * 3 + ["g1"] * 2
        assert sorted(map(repr, found)) == sorted(map(repr, given))
        evidence = list(stores.records.evidence(["g2", "g1", "none"]))
        assert [(group, unit) for group, unit, _ in evidence] == [("g1", "u1"), ("g2", "u1"), ("g2", "u2")]
        assert sorted(repr(s) for *_, packed in evidence for s in unpack_statements(packed)) == sorted(map(repr, given))

    def test_put_replaces_a_units_statements(self, stores: Stores) -> None:
        stores.records.put([record("u1")], [states("g1", "u1"), states("g2", "u1")])
        stores.records.put([record("u1", "B")], [states("g2", "u1", "new"), states("g3", "u1")])
        assert list(stores.records.statements(["g1"])) == []
        assert [s.description for s in stores.records.statements(["g2"])] == ["new"]
        assert stores.records.groups_of(["u1"]) == {"g2", "g3"}
        assert stores.records.count() == 1

    def test_a_record_put_without_statements_loses_those_it_had(self, stores: Stores) -> None:
        stores.records.put([record("u1")], [states("g1", "u1")])
        stores.records.put([record("u1")], [])
        assert list(stores.records.statements(["g1"])) == []
        assert stores.records.groups_of(["u1"]) == set()

    def test_groups_of_units(self, stores: Stores) -> None:
        stores.records.put([record("u1"), record("u2")], [states("g1", "u1"), states("g2", "u1"), states("g2", "u2")])
        assert stores.records.groups_of(["u1", "u2", "u3"]) == {"g1", "g2"}
        assert stores.records.groups_of(["u2"]) == {"g2"}

    def test_delete_leaves_other_units_statements(self, stores: Stores) -> None:
        stores.records.put([record("u1"), record("u2")], [states("g", "u1", "one"), states("g", "u2", "two")])
        stores.records.delete(["u1", "missing"])
        assert [s.description for s in stores.records.statements(["g"])] == ["two"]
        assert stores.records.get(["u1"]) == {}
        stores.records.delete(["u2"])
        assert list(stores.records.statements(["g"])) == []
        assert stores.records.count() == 0

    def test_scan_streams_in_unit_order(self, stores: Stores) -> None:
        keys = [f"{i:02}" for i in range(7)]
        stores.records.put([record(key) for key in reversed(keys)], [])
        found: list[str] = []
        while page := stores.records.scan(after=found[-1] if found else "", limit=3):
            found += [r.unit_id for r in page]
        assert found == keys

    def test_many_units_at_once(self, stores: Stores) -> None:
        keys = [f"{i:05}" for i in range(2500)]
        stores.records.put([record(key) for key in keys], [states(f"g{key}", key) for key in keys])
        assert len(stores.records.get(keys)) == 2500
        assert len(list(stores.records.statements([f"g{key}" for key in keys]))) == 2500
        stores.records.delete(keys)
        assert stores.records.count() == 0
