"""Parsing in a separate process, bounded in time and memory.

A file can be made to loop for ever or to unfold into gigabytes in the library that reads it, and no check beforehand finds
all such files. The process is started with the first file that needs it, reads one file after another, and is killed and
started again when a file is over a limit. It ends with its parent.
"""

from __future__ import annotations

import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from kgrag.documents.content import Content
from kgrag.documents.parse.formats import Parsed, Refused
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import ConfigurationError, DocumentError, EmptyDocumentError, KgragError, MissingExtraError

_ERRORS = {e.__name__: e for e in (DocumentError, EmptyDocumentError, MissingExtraError, ConfigurationError)}


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One file to parse. ``settings`` is JSON; passwords stand apart since they do not show in it."""

    name: str
    path: bytes
    size: int
    format: str
    settings: str
    passwords: list[str]


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """The end of a file. ``error`` names the class of what was raised, empty where all went well."""

    error: str = ""
    message: str = ""
    remedy: str = ""


Frame = Parsed | Refused | Done
encode_frame = msgspec.msgpack.Encoder().encode
_decode_frame = msgspec.msgpack.Decoder(Frame).decode


class ParserProcess:
    """Use as a context manager, or ``close`` it. Not for several threads at once."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection[Any, Any] | None = None
        self._end: Callable[[], object] | None = None

    def __enter__(self) -> ParserProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process at once; the next file starts another."""
        self._pipe = self._process = None
        if self._end is not None:
            self._end()

    def parse(self, content: Content, format_name: str, settings: DocumentSettings) -> Iterator[Parsed | Refused]:
        """What the format's parser yields. Raises DocumentError, also where a limit is reached; MissingExtraError."""
        pipe = self._started(settings)
        passwords = [p.get_secret_value() for p in settings.passwords]
        job = Job(
            name=content.name,
            path=content.path,
            size=content.size,
            format=format_name,
            settings=settings.model_dump_json(exclude={"passwords"}),
            passwords=passwords,
        )
        left = settings.max_seconds
        finished = False
        try:
            pipe.send_bytes(encode_frame(job))
            while not finished:
                begin = time.monotonic()
                frame = self._received(pipe, left, content.name, settings)
                left -= time.monotonic() - begin  # what the caller does with a row is not the file's time
                if isinstance(frame, Done):
                    finished = True
                    _raise(frame, content.name)
                else:
                    yield frame
        except (EOFError, OSError) as error:
            raise DocumentError(
                "The parser's process died of this file.",
                subject=content.name,
                remedy="Exclude it, or save it anew with its program.",
            ) from error
        finally:
            if not finished:
                self.close()

    def _received(self, pipe: Connection[Any, Any], left: float, name: str, settings: DocumentSettings) -> Frame:
        if not pipe.poll(max(0.0, left)):
            raise DocumentError(
                f"The file was not parsed within {settings.max_seconds:g} seconds.",
                subject=name,
                remedy="Raise documents.max_seconds if it is an honest file.",
            )
        return _decode_frame(pipe.recv_bytes())

    def _started(self, settings: DocumentSettings) -> Connection[Any, Any]:
        if self._pipe is None or self._process is None or self._process.poll() is not None:
            self.close()
            here, there = Pipe()
            command = [sys.executable, "-m", "kgrag.documents.parse.worker", str(there.fileno()), str(settings.max_memory_bytes)]
            with there:
                self._process = subprocess.Popen(  # noqa: S603
                    command,
                    pass_fds=[there.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            self._pipe = here
            self._end = weakref.finalize(self, _end, self._process, here)
        return self._pipe

    def __getstate__(self) -> dict[str, object]:
        return {}

    def __setstate__(self, state: dict[str, object]) -> None:
        self._process, self._pipe, self._end = None, None, None


def _end(process: subprocess.Popen[bytes], pipe: Connection[Any, Any]) -> None:
    pipe.close()
    process.kill()
    process.wait()


def _raise(done: Done, name: str) -> None:
    if done.error:
        kind: type[KgragError] = _ERRORS.get(done.error, DocumentError)
        raise kind(done.message, subject=name, remedy=done.remedy)
