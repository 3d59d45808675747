from __future__ import annotations

import threading
import time

import pytest

from kgrag.errors import LeaseHeldError, LeaseLostError
from kgrag.ports import Lease, Stores
from kgrag.records import DocumentStatus, Span


def document(key: str, scope: str = "s", path: str = "p", **fields: object) -> DocumentStatus:
    return DocumentStatus(id=key, scope=scope, path=path, **fields)  # type: ignore[arg-type]


class StatusStoreContract:
    """Needs ``stores``."""

    def test_documents_come_back_equal(self, stores: Stores) -> None:
        given = document("d1", metadata={"x": [1, "a"]}, units=[Span(unit_id="u", start=0, end=9)], state="processed")
        stores.status.put([given, document("d2")])
        assert stores.status.get(["d1", "none"]) == {"d1": given}
        assert stores.status.count() == {"pending": 1, "processed": 1}

    def test_put_replaces_and_delete_removes(self, stores: Stores) -> None:
        stores.status.put([document("d1"), document("d2")])
        stores.status.put([document("d1", scope="t", path="q", state="failed")])
        assert [d.id for d in stores.status.of_scope("s")] == ["d2"]
        assert [d.id for d in stores.status.of_file("t", "q")] == ["d1"]
        stores.status.delete(["d1", "none"])
        assert stores.status.count() == {"pending": 1}
        assert stores.status.scopes() == ["s"]

    def test_scans_stream_in_id_order(self, stores: Stores) -> None:
        stores.status.put([document(f"d{i}", scope="st"[i % 2], path=f"p{i % 3}") for i in reversed(range(8))])
        assert [d.id for d in stores.status.scan(after="d2", limit=3)] == ["d3", "d4", "d5"]
        assert [d.id for d in stores.status.of_scope("t", after="d1", limit=2)] == ["d3", "d5"]
        assert [d.id for d in stores.status.of_file("s", "p0")] == ["d0", "d6"]
        assert stores.status.scopes() == ["s", "t"]

    def test_source_files(self, stores: Stores) -> None:
        stores.status.put_files("s", {"b": "2", "a": "1"})
        stores.status.put_files("t", {"a": "9"})
        stores.status.put_files("s", {"b": "3", "c": "4"}, gone=["a", "none"])
        assert stores.status.files("s") == {"b": "3", "c": "4"}
        assert stores.status.files("t") == {"a": "9"}
        assert stores.status.files("none") == {}

    def test_values_are_json(self, stores: Stores) -> None:
        assert stores.status.read_value("k") is None
        for value in ({"a": [1, None, True, "猫"], "b": 0.1}, [], "x", 0, False):
            stores.status.write_value("k", value)
            assert stores.status.read_value("k") == value

    # ------------------------------------------------------------ lease

    def test_a_lease_keeps_others_out_until_it_is_released(self, stores: Stores) -> None:
        assert stores.status.current_lease() is None
        lease = stores.status.acquire_lease("one", 60)
        assert lease.expires_at == pytest.approx(time.time() + 60, abs=5)
        assert stores.status.current_lease() == lease
        with pytest.raises(LeaseHeldError, match="one"):
            stores.status.acquire_lease("two", 60)
        stores.status.release_lease(lease)
        assert stores.status.current_lease() is None
        assert stores.status.acquire_lease("two", 60).epoch > lease.epoch

    def test_a_lease_that_ran_out_can_be_taken_and_is_lost_to_its_owner(self, stores: Stores) -> None:
        old = stores.status.acquire_lease("one", 0.01)
        time.sleep(0.05)
        new = stores.status.acquire_lease("two", 60)
        assert new.epoch > old.epoch
        with pytest.raises(LeaseLostError):
            stores.status.renew_lease(old, 60)
        stores.status.release_lease(old)
        assert stores.status.current_lease() == new

    def test_renewing_moves_the_end_and_keeps_the_epoch(self, stores: Stores) -> None:
        lease = stores.status.acquire_lease("one", 1)
        renewed = stores.status.renew_lease(lease, 60)
        assert renewed.epoch == lease.epoch
        assert renewed.expires_at > lease.expires_at + 30
        assert stores.status.current_lease() == renewed

    def test_a_released_lease_cannot_be_renewed(self, stores: Stores) -> None:
        lease = stores.status.acquire_lease("one", 60)
        stores.status.release_lease(lease)
        with pytest.raises(LeaseLostError):
            stores.status.renew_lease(lease, 60)

    def test_of_many_at_once_one_gets_it(self, stores: Stores) -> None:
        won: list[Lease] = []
        lost: list[LeaseHeldError] = []

        def attempt(owner: str) -> None:
            try:
                won.append(stores.status.acquire_lease(owner, 60))
            except LeaseHeldError as error:
                lost.append(error)

        threads = [threading.Thread(target=attempt, args=(f"run-{i}",)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(won), len(lost)) == (1, 7)
