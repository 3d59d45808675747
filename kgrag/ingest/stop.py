"""Asking a run to stop, and hearing of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from kgrag.errors import RunStopped


def stopped() -> RunStopped:
    return RunStopped("The run was stopped; all that was written stands.", remedy="Run the same command again to go on.")


class Stop:
    """A flag that a run looks at wherever it can stop cleanly."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def ask(self) -> None:
        self._asked.set()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def check(self) -> None:
        """Raises RunStopped once a stop was asked for."""
        if self._asked.is_set():
            raise stopped()

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Within, the first Ctrl-C or SIGTERM asks to stop and a second Ctrl-C interrupts at once. Main thread only."""

        def ask(number: int, frame: FrameType | None) -> None:
            if self.asked and number == signal.SIGINT:
                raise KeyboardInterrupt
            self.ask()

        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
