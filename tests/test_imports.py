"""That each import contract notices its violation, hidden in a function or behind TYPE_CHECKING as it may be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

VIOLATIONS = {
    "A document travels one way": ("graph/derive.py", "if TYPE_CHECKING:\n    from kgrag.query.engine import QueryEngine\n"),
    "Backends know ports, records and tasks only": ("backends/limits.py", "import kgrag.ingest.stop\n"),
    "Only build.py imports backends": ("query/fuse.py", "def late():\n    import kgrag.backends.local.stores\n"),
    "Nothing depends on what ships for tests": ("ingest/stop.py", "import kgrag.testing\n"),
    "No core module knows Ray or a vendor": ("graph/rank.py", "def late():\n    import ray\n"),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imports")
    shutil.copytree(ROOT / "kgrag", folder / "kgrag", ignore=shutil.ignore_patterns("__pycache__", "documents/*.pdf"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def lint(folder: Path) -> tuple[int, str]:
    tool = Path(sys.executable).with_name("lint-imports")
    environment = {**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [str(tool), "--no-cache"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_tree_keeps_its_contracts(copy: Path) -> None:
    code, out = lint(copy)
    assert code == 0, out
    for name in VIOLATIONS:
        assert f"{name} KEPT" in out


def test_each_contract_notices_its_violation(copy: Path) -> None:
    texts = {
        path: (copy / "kgrag" / path).read_text(encoding="utf-8") if (copy / "kgrag" / path).exists() else ""
        for path, _ in VIOLATIONS.values()
    }
    try:
        for path, line in VIOLATIONS.values():
            (copy / "kgrag" / path).write_text(texts[path] + "\nfrom typing import TYPE_CHECKING\n" + line, encoding="utf-8")
        code, out = lint(copy)
    finally:
        for path, text in texts.items():
            (copy / "kgrag" / path).write_text(text, encoding="utf-8")
    assert code == 1, out
    for name in VIOLATIONS:
        assert f"{name} BROKEN" in out, out
