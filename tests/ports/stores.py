from __future__ import annotations

import threading

import pytest

from kgrag.errors import LeaseLostError
from kgrag.ports import Edge, Row, Stores, Vertex
from kgrag.records import Community, DocumentStatus, Statement, UnitRecord


def write_everywhere(stores: Stores, tag: str) -> None:
    stores.search.upsert("entities", [Row(tag, b"{}", "ant")])
    stores.records.put(
        [UnitRecord(unit_id=tag, document_id="d")], [Statement(kind="entity", group=tag, unit_id=tag, document_id="d")]
    )
    stores.graph.upsert([Vertex(tag, tag, "", 0, [])], [])
    stores.status.put([DocumentStatus(id=tag, scope="s", path="p")])
    stores.status.write_value(tag, 1)


def held_everywhere(stores: Stores, tag: str) -> list[bool]:
    return [
        bool(stores.search.get("entities", [tag])),
        bool(stores.records.get([tag])),
        bool(list(stores.records.statements([tag]))),
        bool(stores.graph.vertices([tag])),
        bool(stores.status.get([tag])),
        stores.status.read_value(tag) is not None,
    ]


def write_and_fail(stores: Stores, *tags: str) -> None:
    with stores.transaction():
        for tag in tags:
            with stores.transaction():
                write_everywhere(stores, tag)
        raise RuntimeError


class StoresContract:
    """Needs ``stores`` whose ``transaction`` is atomic."""

    def test_a_transaction_is_one_step_across_all_stores(self, stores: Stores) -> None:
        with stores.transaction():
            write_everywhere(stores, "a")
            with stores.transaction():
                write_everywhere(stores, "b")
            assert all(held_everywhere(stores, "b"))
        assert all(held_everywhere(stores, "a"))
        assert all(held_everywhere(stores, "b"))

    def test_a_failed_transaction_leaves_nothing(self, stores: Stores) -> None:
        with pytest.raises(RuntimeError):
            write_and_fail(stores, "a", "b")
        assert not any(held_everywhere(stores, "a"))
        assert not any(held_everywhere(stores, "b"))

    def test_a_failed_inner_step_leaves_the_outer_one(self, stores: Stores) -> None:
        with stores.transaction():
            write_everywhere(stores, "a")
            with pytest.raises(RuntimeError):
                write_and_fail(stores, "b")
        assert all(held_everywhere(stores, "a"))
        assert not any(held_everywhere(stores, "b"))

    def test_other_threads_see_a_transaction_only_when_it_is_done(self, stores: Stores) -> None:
        seen: list[list[bool]] = []
        with stores.transaction():
            write_everywhere(stores, "a")
            reader = threading.Thread(target=lambda: seen.append(held_everywhere(stores, "a")))
            reader.start()
            reader.join()
        assert not any(seen[0])

    def test_threads_write_one_after_the_other(self, stores: Stores) -> None:
        def work(n: int) -> None:
            for i in range(5):
                with stores.transaction():
                    count = stores.status.read_value("count") or 0
                    write_everywhere(stores, f"{n}-{i}")
                    stores.status.write_value("count", count + 1)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert stores.status.read_value("count") == 20
        assert stores.search.count("entities") == 20

    def test_a_lost_lease_stops_every_write(self, stores: Stores) -> None:
        lease = stores.status.acquire_lease("one", 60)
        stores.fence(lease.epoch)
        write_everywhere(stores, "a")
        stores.status.release_lease(lease)
        stores.status.acquire_lease("two", 60)
        writes = (
            lambda: stores.search.upsert("entities", [Row("b", b"{}")]),
            lambda: stores.search.delete("entities", ["a"]),
            lambda: stores.search.refresh(),
            lambda: stores.records.put([UnitRecord(unit_id="b", document_id="d")], []),
            lambda: stores.records.delete(["a"]),
            lambda: stores.graph.upsert([Vertex("b", "b", "", 0, [])], [Edge("e", "a", "b", 1.0, [])]),
            lambda: stores.graph.delete(["a"], []),
            lambda: stores.graph.replace_communities([Community(id="c", level=0, entity_ids=["a"])], []),
            lambda: stores.status.put([DocumentStatus(id="b", scope="s", path="p")]),
            lambda: stores.status.delete(["a"]),
            lambda: stores.status.put_files("s", {"p": "d"}),
            lambda: stores.status.write_value("b", 1),
            lambda: stores.answers.put_many({"b": b""}),
            lambda: stores.answers.delete_many(["b"]),
        )
        for write in writes:
            with pytest.raises(LeaseLostError):
                write()
        with pytest.raises(LeaseLostError), stores.transaction():
            pass
        assert all(held_everywhere(stores, "a"))
        assert not any(held_everywhere(stores, "b"))
        assert stores.status.scopes() == ["s"]
        stores.fence(None)
        write_everywhere(stores, "b")
