from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgrag.backends.local.stores import LocalStores, open_stores

pytest.register_assert_rewrite("tests.ports")


@pytest.fixture
def fresh_stores(tmp_path: Path) -> Iterator[Callable[[], LocalStores]]:
    opened: list[LocalStores] = []

    def fresh() -> LocalStores:
        opened.append(open_stores(tmp_path, f"n{len(opened)}", mode="write", create=True))
        return opened[-1]

    yield fresh
    for stores in opened:
        stores.close()


@pytest.fixture
def stores(fresh_stores: Callable[[], LocalStores]) -> LocalStores:
    return fresh_stores()
