from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kgrag.backends.local.stores import LocalStores
from tests.query.library import WordEmbedder, write_index


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest_asyncio.fixture
async def films(tmp_path: Path, embedder: WordEmbedder) -> AsyncIterator[LocalStores]:
    """The film index with vectors everywhere."""
    stores = await write_index(tmp_path, embedder=embedder)
    yield stores
    stores.close()
