"""Owning a namespace while a run writes to it."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kgrag.errors import KgragError, LeaseHeldError, LeaseLostError
from kgrag.ports import Lease, Stores

_RENEWALS = 6
"""Renewals per term."""


@contextmanager
def namespace_lease(stores: Stores, seconds: float) -> Iterator[Lease]:
    """Within, this process owns the namespace: a thread renews the lease and every write is fenced by its epoch.

    Raises LeaseHeldError where another run is at work. A holder on this machine whose process is gone is not waited for.
    The lease is given up at the end however the run ended; after kill -9 it runs out by itself."""
    lease = _acquire(stores, seconds)
    stores.fence(lease.epoch)
    heartbeat = _Heartbeat(stores, lease, seconds)
    heartbeat.start()
    try:
        yield lease
    finally:
        heartbeat.end()
        try:
            stores.status.release_lease(heartbeat.lease)
        finally:
            stores.fence(None)


def owner_name() -> str:
    """Machine, process and start of this process, so that another can tell whether it still runs."""
    pid = os.getpid()
    return f"{_machine()}/{pid}/{_started(pid)}/{uuid.uuid4().hex[:8]}"


def gone(owner: str) -> bool:
    """Whether ``owner`` was a process of this machine that has ended. False where that cannot be told."""
    machine, _, rest = owner.partition("/")
    pid, _, rest = rest.partition("/")
    started, _, _ = rest.partition("/")
    if machine != _machine() or not pid.isdigit():
        return False
    now = _started(int(pid))
    if now:
        return bool(started) and now != started
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _acquire(stores: Stores, seconds: float) -> Lease:
    try:
        return stores.status.acquire_lease(owner_name(), seconds)
    except LeaseHeldError:
        held = stores.status.current_lease()
        if stores.remote or held is None or not gone(held.owner):
            raise
        stores.status.release_lease(held)
        return stores.status.acquire_lease(owner_name(), seconds)


class _Heartbeat(threading.Thread):
    """Renews until told to end. Once the lease is lost it stops: the fence refuses the next write."""

    def __init__(self, stores: Stores, lease: Lease, seconds: float) -> None:
        super().__init__(name="kgrag-lease", daemon=True)
        self.lease = lease
        self._stores, self._seconds = stores, seconds
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(self._seconds / _RENEWALS):
            try:
                self.lease = self._stores.status.renew_lease(self.lease, self._seconds)
            except LeaseLostError:
                return
            except KgragError:  # a store that cannot be reached may come back before the term ends
                if time.time() >= self.lease.expires_at:
                    return

    def end(self) -> None:
        self._over.set()
        self.join()


def _machine() -> str:
    """This machine, boot and process namespace: a process id means the same within, and only within, all three."""
    boot = _read(Path("/proc/sys/kernel/random/boot_id"))
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()}+{boot}+{space}".replace("/", "_")


def _started(pid: int) -> str:
    """When a process started, in the kernel's ticks; empty where it does not run or the platform does not say."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    if not fields:
        return ""
    return "ended" if fields[0] in ("Z", "X") else fields[19]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
