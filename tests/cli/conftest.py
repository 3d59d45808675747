from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kgrag.cli.app import app


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Kgrag = Callable[..., Ran]


@pytest.fixture
def kgrag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kgrag:
    """The command line in this process, with a home and a working folder of its own."""
    monkeypatch.setenv("KGRAG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KGRAG_CONFIG", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))  # for the processes that a command starts
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def run(*arguments: str, input: str | None = None) -> Ran:
        result = CliRunner().invoke(app, list(arguments), input=input)
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run
