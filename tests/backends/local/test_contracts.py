"""The embedded stores keep every port's contract."""

from __future__ import annotations

from tests.ports.answer_store import AnswerStoreContract
from tests.ports.graph_store import GraphStoreContract
from tests.ports.record_store import RecordStoreContract
from tests.ports.search_store import SearchStoreContract
from tests.ports.status_store import StatusStoreContract
from tests.ports.stores import StoresContract


class TestLocalSearch(SearchStoreContract):
    pass


class TestLocalRecords(RecordStoreContract):
    pass


class TestLocalGraph(GraphStoreContract):
    pass


class TestLocalStatus(StatusStoreContract):
    pass


class TestLocalAnswers(AnswerStoreContract):
    pass


class TestLocalStores(StoresContract):
    pass
