from __future__ import annotations

from kgrag.ports import Stores


class AnswerStoreContract:
    """Needs ``stores``."""

    def test_answers_come_back_as_bytes(self, stores: Stores) -> None:
        stores.answers.put_many({"a": b"1", "b": bytes(range(256)), "c": b""})
        assert stores.answers.get_many(["c", "b", "none"]) == {"b": bytes(range(256)), "c": b""}
        assert stores.answers.get_many([]) == {}

    def test_a_later_answer_replaces_an_earlier(self, stores: Stores) -> None:
        stores.answers.put_many({"a": b"1"})
        stores.answers.put_many({"a": b"2"})
        assert stores.answers.get_many(["a"]) == {"a": b"2"}

    def test_keys_stream_in_order_and_deletes_leave_nothing(self, stores: Stores) -> None:
        stores.answers.put_many({f"{i:04}": b"x" for i in reversed(range(1200))})
        assert stores.answers.keys(after="0009", limit=2) == ["0010", "0011"]
        stores.answers.delete_many([*(f"{i:04}" for i in range(1199)), "none"])
        assert stores.answers.keys() == ["1199"]
        assert list(stores.answers.get_many([f"{i:04}" for i in range(1200)])) == ["1199"]
