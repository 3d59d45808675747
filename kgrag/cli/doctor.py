"""``kgrag doctor``: what would keep kgrag from working here, and what to do about it."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Literal

from kgrag.cli.options import ConfigOption, DebugOption, JsonOption, NamespaceOption, SetOption, settings_of
from kgrag.cli.outcome import DONE, FAILED, command
from kgrag.cli.output import print_json, print_table
from kgrag.errors import KgragError

if TYPE_CHECKING:
    from kgrag.settings import Settings

DOCTOR = """Check this installation.

Looks at Python, packages, the home folder, models and Ray, and says what to do where something would fail.

\b
Examples:
  kgrag doctor
  kgrag doctor --config team.yaml --json

Exits with 1 where something would fail.
"""

_IMPATIENT = {"max_retries": 0, "timeout_seconds": 20.0}
"""A check waits for no outage to end."""

State = Literal["ok", "note", "fail"]


@dataclass(frozen=True)
class Check:
    """What was looked at, how it is, and what to do where it is not well."""

    name: str
    state: State
    found: str
    remedy: str = ""


@command
def doctor(
    config: ConfigOption = None,
    assignments: SetOption = None,
    namespace: NamespaceOption = None,
    json_: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    settings = settings_of(config, assignments, namespace).settings
    checks = [check for run in CHECKS for check in run(settings)]
    failed = any(check.state == "fail" for check in checks)
    if json_:
        print_json({"ok": not failed, "checks": [asdict(check) for check in checks]})
    else:
        print_table("", ("", "check", "found", "what to do"), [(c.state, c.name, c.found, c.remedy) for c in checks])
    return FAILED if failed else DONE


def _python(settings: Settings) -> Iterable[Check]:
    version = platform.python_version()
    fine = sys.version_info >= (3, 11)
    yield Check(
        "python",
        "ok" if fine else "fail",
        f"{version} on {platform.system()} {platform.machine()}",
        "" if fine else "Use Python 3.11 or newer.",
    )
    memory = _memory()
    yield Check("machine", "ok", f"{os.cpu_count()} cores" + (f", {memory:.0f} GiB of memory" if memory else ""))


def _packages(settings: Settings) -> Iterable[Check]:
    try:
        requirements = metadata.requires("kgrag") or []
    except metadata.PackageNotFoundError:
        yield Check("packages", "note", "kgrag runs from its sources without being installed", "Run make venv.")
        return
    wanted: dict[str, list[str]] = {}
    for line in requirements:
        requirement, _, marker = line.partition(";")
        extra = marker.partition("extra ==")[2].strip(" '\"")
        name = requirement.split("[")[0].split("<")[0].split(">")[0].split("=")[0].strip()
        if extra not in ("dev", "viz", "eval"):
            wanted.setdefault(extra, []).append(name)
    for extra, names in wanted.items():
        missing = [name for name in names if _version(name) is None]
        held = ", ".join(f"{name} {_version(name)}" for name in names if name not in missing)
        if not missing:
            yield Check(f"packages: {extra or 'core'}", "ok", held)
        elif extra:
            remedy = f"For what they bring: pip install 'kgrag[{extra}]'"
            yield Check(f"packages: {extra}", "note", f"missing: {', '.join(missing)}", remedy)
        else:
            yield Check("packages: core", "fail", f"missing: {', '.join(missing)}", "Run pip install kgrag again.")


def _home(settings: Settings) -> Iterable[Check]:
    from kgrag import build

    try:
        kind = build.home_filesystem(settings)
    except KgragError as error:
        yield Check("home", "fail", error.message, error.remedy)
        return
    place = settings.home
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        remedy = "Make it writable to index; asking works on a read-only home. Or set KGRAG_HOME to another folder."
        yield Check("home", "note", f"{settings.home} cannot be written: {error.strerror}", remedy)
        return
    names = build.namespaces(settings)
    found = f"{settings.home}" + (f" ({kind})" if kind else "")
    yield Check("home", "ok", f"{found}, " + (f"namespaces: {', '.join(names)}" if names else "no index yet"))


def _ray(settings: Settings) -> Iterable[Check]:
    version = _version("ray")
    if version is None:
        yield Check("ray", "note", "not installed", "For clusters and `kgrag serve`: pip install 'kgrag[ray]'")
    else:
        yield Check("ray", "ok", f"{version} (not started; ask and search never need it)")


def _models(settings: Settings) -> Iterable[Check]:
    """Each chat model is asked for one token, without repeats."""
    import asyncio

    from kgrag import build
    from kgrag.engine.settings import ROLES, ModelSettings
    from kgrag.ports import Message

    async def ask(model: ModelSettings) -> None:
        chat = build.make_chat_model(model.model_copy(update=_IMPATIENT))
        try:
            await chat.complete([Message("user", "Say ok.")], max_tokens=1)
        finally:
            await chat.aclose()

    roles: dict[int, tuple[ModelSettings, list[str]]] = {}
    for role in ROLES:
        model = settings.models.of(role)
        roles.setdefault(id(model), (model, []))[1].append(role)
    for model, asked in roles.values():
        which = "all roles" if len(roles) == 1 else ", ".join(asked)
        if model.provider == build.EXTRACTIVE:
            yield Check("model", "ok", f"text statistics, no model ({which})")
            continue
        try:
            asyncio.run(ask(model))
        except KgragError as error:
            yield Check("model", "fail", error.message, error.remedy)
        else:
            yield Check("model", "ok", f"{model.model} at {model.base_url} answers ({which})")


def _embedding(settings: Settings) -> Iterable[Check]:
    import asyncio

    from kgrag import build

    wanted = settings.models.embedding.model_copy(update=_IMPATIENT)
    patient = settings.model_copy(update={"models": settings.models.model_copy(update={"embedding": wanted})})

    async def embed() -> Check:
        embedder = build.make_embedder(patient)
        if embedder is None:
            return Check("embedding", "note", "none: words alone find passages", "See models.embedding in the configuration.")
        try:
            await embedder.queries(["tide"])
        finally:
            await embedder.aclose()
        strength = "strong" if embedder.strong else "weak: words lead"
        return Check("embedding", "ok", f"{embedder.identity}, {embedder.dimension} numbers, {strength}")

    try:
        yield asyncio.run(embed())
    except KgragError as error:
        yield Check("embedding", "fail", error.message, error.remedy)


CHECKS: tuple[Callable[[Settings], Iterable[Check]], ...] = (_python, _packages, _home, _models, _embedding, _ray)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _memory() -> float:
    """GiB, 0 where the platform does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError, AttributeError):
        return 0.0
