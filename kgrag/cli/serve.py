"""``kgrag serve``: questions over HTTP."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgrag.cli.options import ConfigOption, DebugOption, JsonOption, NamespaceOption, SetOption, settings_of
from kgrag.cli.outcome import command
from kgrag.cli.output import print_json

if TYPE_CHECKING:
    from kgrag.settings import Settings

SERVE = """Answer questions over HTTP.

\b
Examples:
  kgrag serve
  kgrag serve --port 9000 --strategies mix,naive --namespace team
  kgrag serve --one-process

Starts Ray on this machine (or joins the cluster of --address) with one deployment per strategy; --one-process does
without Ray. The interface is described under /docs. On a cluster: serve run serve_apps.search:app
"""


@command
def serve(
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", help="Port to listen on.", min=0, max=65535)] = 8000,
    strategies: Annotated[str, typer.Option("--strategies", help="Only these, separated by commas.", metavar="NAMES")] = "",
    one_process: Annotated[bool, typer.Option("--one-process", help="Serve from this process, without Ray.")] = False,
    address: Annotated[str | None, typer.Option("--address", help="A Ray cluster that runs already.", metavar="ADDRESS")] = None,
    config: ConfigOption = None,
    assignments: SetOption = None,
    namespace: NamespaceOption = None,
    json_: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    settings = settings_of(config, assignments, namespace).settings
    if one_process:
        _in_this_process(settings, host, port, as_json=json_)
    else:
        _on_ray(settings, host, port, strategies, address, as_json=json_)


def _in_this_process(settings: Settings, host: str, port: int, *, as_json: bool) -> None:
    _require("uvicorn")
    import uvicorn

    from serve_apps.local import local_app

    app = local_app(settings)
    _ready(host, port, ["all"], _resident([os.getpid()]), as_json=as_json)
    uvicorn.run(app, host=host, port=port, log_level="warning")


def _on_ray(settings: Settings, host: str, port: int, strategies: str, address: str | None, *, as_json: bool) -> None:
    _require("ray")
    import ray
    from ray import serve as ray_serve

    from kgrag.query.strategies.registry import Registry
    from serve_apps.search import deploy

    registry = Registry()
    names = [registry.get(name.strip()).name for name in strategies.split(",") if name.strip()] or [s.name for s in registry]
    stop = threading.Event()
    ray.init(address=address, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        for number in (signal.SIGINT, signal.SIGTERM):  # Ray has set its own by now
            signal.signal(number, lambda *_: stop.set())
        ray_serve.start(http_options={"host": host, "port": port})
        ray_serve.run(deploy(settings, names), name="kgrag", route_prefix="/")
        _ready(host, port, names, _resident(_descendants(os.getpid())) if address is None else 0.0, as_json=as_json)
        stop.wait()
    finally:
        ray_serve.shutdown()
        ray.shutdown()


def _ready(host: str, port: int, names: list[str], gibibytes: float, *, as_json: bool) -> None:
    url = f"http://{host}:{port}"
    if as_json:
        print_json({"url": url, "strategies": names, "memory_gib": round(gibibytes, 2)})
        return
    print(f"Serving {', '.join(names)} on {url} (interface: {url}/docs)", flush=True)
    if gibibytes:
        print(f"Memory: {gibibytes:.1f} GiB resident, shared pages counted once per process", flush=True)
    print(f"Try: curl -s {url}/v1/answer -H 'content-type: application/json' -d '{{\"question\": \"...\"}}'", flush=True)


def _require(package: str) -> None:
    from importlib.util import find_spec

    from kgrag.errors import MissingExtraError

    for name in (package, "fastapi"):
        if find_spec(name) is None:
            raise MissingExtraError(f'"{name}" is not installed.', subject=name, remedy="Run: pip install 'kgrag[ray]'.")


def _descendants(pid: int) -> list[int]:
    """This process and all below it, where the platform lists them."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            fields = entry.read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += parents.get(found[-1], [])
    return found


def _resident(pids: list[int]) -> float:
    """GiB of resident memory, 0 where the platform does not say."""
    kilobytes = 0
    for pid in pids:
        with suppress(OSError, ValueError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    kilobytes += int(line.split()[1])
    return kilobytes / 2**20
