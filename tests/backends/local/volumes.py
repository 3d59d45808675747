"""File systems for tests: small ones, read-only ones. Both need the right to mount."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


def _mount(*arguments: str) -> None:
    if shutil.which("mount") is None or subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system is not allowed here")


@contextlib.contextmanager
def small_volume(where: Path, size: str) -> Iterator[None]:
    where.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(where))
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


def resize(where: Path, size: str) -> None:
    _mount("-o", f"remount,size={size}", str(where))


@contextlib.contextmanager
def read_only_view(of: Path, where: Path) -> Iterator[None]:
    where.mkdir(exist_ok=True)
    _mount("--bind", str(of), str(where))
    try:
        _mount("-o", "remount,ro,bind", str(where))
        yield
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)
