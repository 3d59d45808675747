from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kgrag import sample
from tests.cli.conftest import Kgrag

ROOT = str(Path(__file__).parents[2])
WORDS = ("--set", "models.embedding.provider=none")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample.DOCUMENTS / "people", tmp_path / "people"))


def test_the_report_on_screen_and_the_exit_code(kgrag: Kgrag, people: Path) -> None:
    run = kgrag("ingest", str(people), *WORDS)
    assert run.code == 0
    assert "Documents: 6 new" in run.out
    assert "text units" in run.out
    assert "extract:" in run.err  # the live view, as lines where there is no terminal
    assert "nothing to do" in kgrag("ingest", str(people), *WORDS, "--quiet").out


def test_json_is_one_object(kgrag: Kgrag, people: Path) -> None:
    report = kgrag("ingest", str(people), *WORDS, "--json").json
    assert (report["new"], report["failed"], report["exit_code"]) == (6, 0, 0)
    assert {"units", "entities", "relationships", "communities", "usage", "seconds", "stages", "failures"} <= set(report)


def test_a_failed_file_makes_it_partly_done(kgrag: Kgrag, people: Path) -> None:
    (people / "broken.json").write_text("{")
    run = kgrag("ingest", str(people), *WORDS)
    assert run.code == 3
    assert "broken.json: " in run.out
    assert kgrag("status", "--json").json["documents"] == {"processed": 6}


def test_nothing_but_failures_is_a_failure(kgrag: Kgrag, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    assert kgrag("ingest", str(tmp_path / "broken.json"), *WORDS).code == 1


def test_a_source_that_is_not_there(kgrag: Kgrag) -> None:
    run = kgrag("ingest", "no/such/folder", *WORDS)
    assert run.code == 2
    assert "no/such/folder" in run.err


def test_a_mass_deletion_needs_a_yes(kgrag: Kgrag, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sample.DOCUMENTS, tmp_path / "all"))
    kgrag("ingest", str(folder), *WORDS)
    for name in ("company", "people", "region", "research"):
        shutil.rmtree(folder / name)
    assert kgrag("ingest", str(folder), *WORDS).code == 2
    assert kgrag("ingest", str(folder), *WORDS, "--confirm-deletions").code == 0


def test_status_says_what_there_is(kgrag: Kgrag, people: Path) -> None:
    assert "no index yet" in kgrag("status").out
    kgrag("ingest", str(people), *WORDS)
    shown = kgrag("status").out
    assert "Documents:   6 processed" in shown
    assert "Last run:" in shown
    assert "6 new" in shown
    held = kgrag("status", "--json").json
    assert held["namespaces"] == ["default"]
    assert held["counts"]["text_units"] == 6
    assert held["running"] is None
    assert held["last_run"]["new"] == 6


def test_standard_input(people: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kgrag", "ingest", "-", *WORDS, "--json", "--set", "documents.standard_input=note"]
    done = subprocess.run(
        command,
        input="Zebulon Quark keeps bees in Ulm.",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ROOT, "KGRAG_HOME": str(tmp_path / "home")},
        check=True,
    )
    assert json.loads(done.stdout)["new"] == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_cleanly_and_the_next_run_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for place in range(600):
        (folder / f"{place}.txt").write_text(f"Ada Lovelace met Charles Babbage in London on day {place}. They spoke of engines.")
    environment = {**os.environ, "PYTHONPATH": ROOT, "KGRAG_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "kgrag", "ingest", str(folder), "--set", "models.embedding.provider=none"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        assert process.stderr.readline()  # it is at work
        process.send_signal(number)
        rest = process.stderr.read()
        assert process.wait(60) == 130, rest
        assert "Error: The run was stopped" in rest
    started = time.monotonic()
    again = subprocess.run([*command, "--json", "--quiet"], capture_output=True, text=True, env=environment, check=True)
    assert json.loads(again.stdout)["new"] == 600
    assert time.monotonic() - started < 60
