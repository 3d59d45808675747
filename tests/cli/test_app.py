"""What holds for every command: help, exit codes, errors."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from kgrag import errors
from kgrag.cli.app import app
from kgrag.cli.outcome import command, exit_code
from tests.cli.conftest import Kgrag

ROOT = str(Path(__file__).parents[2])


def run_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kgrag", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ROOT, **environment},
        check=False,
    )


def commands() -> list[list[str]]:
    group = typer.main.get_command(app)
    found = []
    for name, inner in sorted(group.commands.items()):  # type: ignore[attr-defined]
        found += [[name, sub] for sub in sorted(inner.commands)] if hasattr(inner, "commands") else [[name]]
    return found


@pytest.mark.parametrize("path", commands(), ids=" ".join)
class TestEveryCommand:
    def test_help_has_examples(self, kgrag: Kgrag, path: list[str]) -> None:
        run = kgrag(*path, "--help")
        assert run.code == 0
        assert f"\n    kgrag {' '.join(path)}" in run.out
        assert "--json" in run.out
        assert "--debug" in run.out

    def test_an_unknown_option_is_wrong_use(self, kgrag: Kgrag, path: list[str]) -> None:
        run = kgrag(*path, "--no-such-option")
        assert run.code == 2
        assert "No such option" in run.err


def test_help_is_instant() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run_process("--help").returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 0.5


def test_help_loads_nothing_heavy() -> None:
    script = "import sys; from kgrag.cli.app import app; print([m for m in ('numpy','pyarrow','pydantic','ray','rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_command_shows_help(kgrag: Kgrag) -> None:
    run = kgrag()
    assert run.code == 2
    assert "Commands:" in run.out + run.err


def test_version(kgrag: Kgrag) -> None:
    from kgrag import __version__

    assert kgrag("--version").out == f"kgrag {__version__}\n"


def test_completion_is_there() -> None:
    script = run_process("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert script.returncode == 0
    assert "_KGRAG_COMPLETE" in script.stdout or "complete" in script.stdout


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigurationError("x"), 2),
        (errors.MissingExtraError("x"), 2),
        (errors.ConfirmationRequired("x"), 2),
        (errors.UnknownNamespaceError("x"), 2),
        (errors.MethodologyNotIndexedError("x"), 2),
        (errors.InvalidFilterError("x"), 2),
        (errors.DeadlineExceededError("x"), 1),
        (errors.PermanentModelError("x"), 1),
        (errors.StoreCorruptError("x"), 1),
        (errors.LeaseHeldError("x"), 1),
        (errors.RunStopped("x"), 130),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_exit_codes(error: errors.KgragError, code: int) -> None:
    assert exit_code(error) == code


class TestErrors:
    def run(self, error: BaseException, capsys: pytest.CaptureFixture[str], **options: bool) -> tuple[int, str, str]:
        @command
        def fails(json_: bool = False, debug: bool = False) -> None:
            raise error

        with pytest.raises(typer.Exit) as caught:
            fails(**options)
        out, err = capsys.readouterr()
        return caught.value.exit_code, out, err

    def test_a_message_and_a_remedy_without_a_traceback(self, capsys: pytest.CaptureFixture[str]) -> None:
        error = errors.StoreFullError("The disk is full.", remedy="Make room.")
        assert self.run(error, capsys) == (1, "", "Error: The disk is full.\nMake room.\n")

    def test_debug_shows_the_traceback(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, _, err = self.run(errors.StoreFullError("The disk is full."), capsys, debug=True)
        assert code == 1
        assert "Traceback" in err

    def test_json_for_programs(self, capsys: pytest.CaptureFixture[str]) -> None:
        error = errors.UnknownStrategyError("No such.", subject="x", remedy="Use y.")
        code, out, err = self.run(error, capsys, json_=True)
        told = {"type": "UnknownStrategyError", "message": "No such.", "remedy": "Use y.", "subject": "x"}
        assert (code, out, json.loads(err)) == (2, "", {"error": told})

    def test_an_interrupt(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.run(KeyboardInterrupt(), capsys) == (130, "", "Error: Interrupted.\n")

    def test_a_fault_says_it_is_one(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, _, err = self.run(ZeroDivisionError("by zero"), capsys)
        assert code == 1
        assert "ZeroDivisionError: by zero" in err
        assert "fault of kgrag" in err


def test_a_reader_that_leaves_early_is_no_error(kgrag: Kgrag) -> None:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m kgrag config show | head -1"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ROOT},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_misspelt_setting_stops_every_command(kgrag: Kgrag) -> None:
    run = kgrag("status", "--set", "run.lease_second=3")
    assert run.code == 2
    assert "Did you mean run.lease_seconds?" in run.err
