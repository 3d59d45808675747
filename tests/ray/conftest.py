"""One cluster of one node for all tests here; a test that needs a second node adds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed")


@pytest.fixture(scope="package")  # tests elsewhere start a Ray of their own
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    os.environ["RAY_AUTH_MODE"] = "disabled"  # processes of this machine only
    made = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": True, "object_store_memory": 150 << 20}
    )
    try:
        ray.init(address=made.address, log_to_driver=False)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()
