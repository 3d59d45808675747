"""The process that ``ParserProcess`` starts: ``python -m kgrag.documents.parse.worker FD BYTES``."""

from __future__ import annotations

import ctypes
import logging
import resource
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

import msgspec
from pydantic import SecretStr

from kgrag.documents.content import Content
from kgrag.documents.parse.formats import formats
from kgrag.documents.parse.isolated import Done, Job, encode_frame
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import KgragError

_PR_SET_PDEATHSIG = 1


def main(descriptor: int, max_memory_bytes: int) -> None:
    """Serves files until the parent closes the pipe."""
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    resource.setrlimit(resource.RLIMIT_AS, (max_memory_bytes, max_memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)  # libraries report every oddity of a damaged file
    pipe: Connection[Any, Any] = Connection(descriptor)
    decode = msgspec.msgpack.Decoder(Job).decode
    while True:
        try:
            data = pipe.recv_bytes()
        except EOFError:
            return
        pipe.send_bytes(encode_frame(_serve(pipe, decode(data))))


def _serve(pipe: Connection[Any, Any], job: Job) -> Done:
    content = Content(job.name, job.path, job.size)
    settings = DocumentSettings.model_validate_json(job.settings).model_copy(
        update={"passwords": [SecretStr(p) for p in job.passwords]}
    )
    try:
        for found in formats()[job.format].load()(content, settings):
            pipe.send_bytes(encode_frame(found))
    except KgragError as error:
        return Done(error=type(error).__name__, message=error.message, remedy=error.remedy)
    except MemoryError:
        remedy = "Raise documents.max_memory_bytes if it is an honest file."
        return Done(
            error="DocumentError", message=f"It needs more than {settings.max_memory_bytes >> 20} MiB to parse.", remedy=remedy
        )
    except Exception as error:  # noqa: BLE001 a library fails in any way on a damaged file; it is reported, and is this file's alone
        reason = f"{type(error).__name__}: {error}"[:300]
        return Done(error="DocumentError", message=f"The file is damaged ({reason}).", remedy="Save it anew with its program.")
    return Done()


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
