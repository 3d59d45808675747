"""Every block of the README does what it shows.

``console`` blocks run in order in one shell with one home, and ``...`` stands for any text; ``python`` and ``yaml``
blocks are run and loaded; ``sh`` blocks are commands that another test, named here, runs.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kgrag import sample
from kgrag.settings import load

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)

ELSEWHERE = {
    "make demo": ("Makefile", "$(BIN)/kgrag demo"),
    "ray job submit --working-dir . -- python jobs/ingest.py FOLDER": ("tests/ray/test_ray_runner.py", "'jobs' / 'ingest.py'"),
}
"""A command, and the file that has it run: ``kgrag demo`` itself is run below."""


def blocks(kind: str) -> list[str]:
    return [body for name, body in BLOCKS if name == kind]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of the blocks: a home with the demo in it, a folder of documents, ``kgrag`` on the path."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "bin").mkdir()
    command = folder / "bin" / "kgrag"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m kgrag "$@"\n')
    command.chmod(0o755)
    work = folder / "work"
    work.mkdir()
    shutil.copytree(sample.DOCUMENTS / "company", work / "company")
    asked = sample.QUESTIONS.read_text(encoding="utf-8").splitlines(keepends=True)
    (work / "questions.jsonl").write_text("".join(asked[:3]), encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "KGRAG_HOME": str(folder / "home"),
        "PWD": str(work),
    }
    environment.pop("KGRAG_CONFIG", None)
    done = subprocess.run(["kgrag", "demo"], cwd=work, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return environment


def pattern(expected: str) -> re.Pattern[str]:
    """What a block shows, with ``...`` for any text. The number of a citation is its passage's rank, which moves with every
    improvement of the ranking: any number will do."""
    pieces = [re.sub(r"\\\[\d+\\\]", r"\\[\\d+\\]", re.escape(piece)) for piece in expected.strip().split("...")]
    return re.compile(r".*?".join(pieces), re.DOTALL)


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.splitlines()[0][2:50])
def test_console(shell: dict[str, str], block: str) -> None:
    if "curl" in block and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    steps = re.split(r"^\$ ", block.replace("8000", port), flags=re.MULTILINE)[1:]
    script = "\n".join(f"printf '\\n<{number}>\\n'\n{step.splitlines()[0]}" for number, step in enumerate(steps))
    done = subprocess.run(
        ["bash", "-c", f"set -m\n{script}\n"], cwd=shell["PWD"], env=shell, capture_output=True, text=True, timeout=250, check=False
    )
    shown = re.split(r"^<\d+>\n", done.stdout, flags=re.MULTILINE)[1:]
    assert len(shown) == len(steps), done.stderr
    for step, out in zip(steps, shown, strict=True):
        command, _, expected = step.partition("\n")
        if not command.endswith("&"):
            find = re.Pattern.search if "&\n" in block else re.Pattern.match  # a server speaks when it likes
            assert find(pattern(expected), out.strip()), f"$ {command}\n{out[:2000]}\n{done.stderr[:2000]}"


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python(shell: dict[str, str], block: str) -> None:
    done = subprocess.run([sys.executable, "-c", block], cwd=shell["PWD"], env=shell, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "region/lower-ravn.txt" in done.stdout


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_yaml(tmp_path: Path, block: str) -> None:
    (tmp_path / "kgrag.yaml").write_text(block, encoding="utf-8")
    assert load(tmp_path / "kgrag.yaml", environment={}).settings.models.default.provider == "openai"


def test_other_commands_are_run_by_other_tests() -> None:
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert sorted(commands) == sorted(ELSEWHERE)
    for path, text in ELSEWHERE.values():
        assert text in (ROOT / path).read_text(encoding="utf-8")


def test_no_block_is_of_another_kind() -> None:
    assert {name for name, _ in BLOCKS} == {"console", "python", "yaml", "sh"}


def test_every_strategy_and_extra_is_named() -> None:
    from kgrag.query.strategies.registry import BUILT_IN

    rows = re.findall(r"^\| `(\w+)`", TEXT, re.MULTILINE)
    assert set(BUILT_IN) <= set(rows)


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / target).exists(), target
