"""From settings to working parts. The only module that knows the backends; each is imported when it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from kgrag.ports import Stores
    from kgrag.settings import Settings


def open_stores(settings: Settings, *, mode: Literal["read", "write"] = "read", create: bool = False) -> Stores:
    """The stores of ``settings.namespace``. ``create`` makes them where there are none.
    Raises UnknownNamespaceError, ConfigurationError, StoreError."""
    from kgrag.backends.local.stores import open_stores

    return open_stores(settings.home, settings.namespace, mode=mode, create=create)


def namespaces(settings: Settings) -> list[str]:
    """Names of the namespaces that hold an index, sorted."""
    from kgrag.backends.local.stores import namespaces

    return namespaces(settings.home)


def home_filesystem(settings: Settings) -> str:
    """What kind of file system ``settings.home`` is on, empty where the platform does not say.
    Raises UnsupportedFilesystemError where embedded stores would lose data."""
    from kgrag.backends.local.filesystem import filesystem_of, require_local

    require_local(settings.home)
    return filesystem_of(settings.home)
