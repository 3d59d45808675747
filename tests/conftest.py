from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kgrag import build, sample
from kgrag.backends import limits
from kgrag.ingest.run import run_ingest
from kgrag.settings import Settings, load


@pytest.fixture(autouse=True)
def _fresh_model_limits() -> None:
    """A port of an earlier test's server may come again; its breaker and rate must not."""
    limits._all.clear()


@pytest.fixture(scope="session")
def built_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose namespace ``demo`` holds the sample, found by words alone (vectors take most of a run's time)."""
    home = tmp_path_factory.mktemp("sample-home")
    settings = load(overrides={"home": home, "namespace": "demo", "models.embedding.provider": "none"}, environment={}).settings
    report = asyncio.run(run_ingest(build.ingest_parts(settings), [str(sample.DOCUMENTS)]))
    assert report.exit_code == 0, report.lines()
    return home


@pytest.fixture
def sample_home(built_sample: Path, tmp_path: Path) -> Path:
    """A copy of it to write to."""
    home = tmp_path / "sample-home"
    shutil.copytree(built_sample, home)
    return home


@pytest.fixture
def settings_in(tmp_path: Path) -> Callable[..., Settings]:
    """Settings of a home of the test's own, with words alone."""

    def make(**overrides: object) -> Settings:
        chosen = {"home": tmp_path / "home", "models.embedding.provider": "none", **overrides}
        return load(overrides=chosen, environment={}).settings

    return make
