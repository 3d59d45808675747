"""How a command ends: exit codes, and errors as a message and a remedy."""

from __future__ import annotations

import functools
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec

import typer

from kgrag.errors import (
    ConfigurationError,
    DeadlineExceededError,
    KgragError,
    QueryError,
    RunStopped,
)

DONE, FAILED, WRONG_USE, PARTLY, INTERRUPTED = 0, 1, 2, 3, 130

P = ParamSpec("P")


def exit_code(error: KgragError) -> int:
    """2 where another command line would help, 130 for a stop, 1 for the rest."""
    if isinstance(error, RunStopped):
        return INTERRUPTED
    if isinstance(error, ConfigurationError) or (isinstance(error, QueryError) and not isinstance(error, DeadlineExceededError)):
        return WRONG_USE
    return FAILED


def command(function: Callable[P, int | None]) -> Callable[P, None]:
    """Make a function a command: what it returns is the exit code (None is 0), and every error is told on standard error.
    Its options ``json_`` and ``debug`` decide how."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        as_json, debug = bool(kwargs.get("json_")), bool(kwargs.get("debug") or os.environ.get("KGRAG_DEBUG"))
        try:
            code = function(*args, **kwargs) or DONE
            sys.stdout.flush()
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt:
            _tell("Interrupted.", "", "Interrupted", as_json=as_json, debug=False)
            code = INTERRUPTED
        except BrokenPipeError:  # the reader (head, less) has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = DONE
        except KgragError as error:
            _tell(error.message, error.remedy, type(error).__name__, as_json=as_json, debug=debug, subject=error.subject)
            code = exit_code(error)
        except Exception as error:  # noqa: BLE001  # the last line of defence of a process: told, then exit 1
            remedy = "This is a fault of kgrag. Run the command again with --debug and report what it prints."
            _tell(f"{type(error).__name__}: {error}", remedy, "InternalError", as_json=as_json, debug=debug)
            code = FAILED
        raise typer.Exit(code)

    return run


def _tell(message: str, remedy: str, kind: str, *, as_json: bool, debug: bool, subject: str = "") -> None:
    if debug:
        traceback.print_exc()
    if as_json:
        told = {"error": {"type": kind, "message": message, "remedy": remedy, "subject": subject}}
        print(json.dumps(told, ensure_ascii=False), file=sys.stderr)
        return
    print(typer.style("Error: ", fg="red", bold=True) + message if sys.stderr.isatty() else f"Error: {message}", file=sys.stderr)
    if remedy:
        print(remedy, file=sys.stderr)
