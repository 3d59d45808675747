"""Every error kgrag raises on purpose, in one tree.

    KgragError
    ├── ConfigurationError          wrong use or settings (exit code 2)
    │   ├── MissingExtraError       an optional package is not installed
    │   └── ConfirmationRequired    a destructive step was not confirmed
    ├── DocumentError               one source file or row cannot be read; the run goes on
    │   └── EmptyDocumentError      nothing is wrong with it, but it holds no text
    ├── ModelError
    │   ├── TransientModelError     worth retrying: 408, 429, 5xx, time-outs, cut connections
    │   ├── ItemError               this input's own fault; other inputs are fine
    │   │   ├── OutputError         the reply cannot be parsed, even after one repair
    │   │   ├── TruncatedError      the reply was cut off by a length limit
    │   │   └── RejectedError       400, 413, 422, content filter
    │   └── PermanentModelError     no call to this model can succeed: 401, 403, unknown model
    ├── StoreError
    │   ├── StoreUnavailableError   cannot be reached or opened now
    │   ├── StoreReadOnlyError      a write on a read-only mount or handle
    │   ├── StoreFullError          the disk is full
    │   ├── StoreCorruptError       the files are damaged
    │   ├── StoreVersionError       written by a newer format
    │   └── UnsupportedFilesystemError   embedded stores on a network file system
    ├── LeaseError
    │   ├── LeaseHeldError          another run owns the namespace
    │   └── LeaseLostError          this run no longer owns it and must not write
    ├── RunStopped                  a stop was asked for; all that was written stands (exit code 130)
    └── QueryError
        ├── UnknownNamespaceError
        ├── UnknownStrategyError
        ├── InvalidFilterError
        ├── MethodologyNotIndexedError   the index lacks what the strategy reads
        └── DeadlineExceededError

An error says what happened, to which thing (``subject``), and what to do next (``remedy``).
"""

from __future__ import annotations


class KgragError(Exception):
    """Base of all errors; ``str()`` joins message and remedy."""

    def __init__(self, message: str, *, subject: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.subject = subject
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip() if self.remedy else self.message

    def __reduce__(self) -> tuple[object, ...]:  # keyword-only arguments would be lost between processes
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(cls: type[KgragError], args: tuple[object, ...], state: dict[str, object]) -> KgragError:
    error = cls.__new__(cls)
    Exception.__init__(error, *args)
    error.__dict__.update(state)
    return error


class ConfigurationError(KgragError):
    """The command line, configuration or call is wrong."""


class MissingExtraError(ConfigurationError):
    """An optional dependency is needed; the remedy names the pip command."""


class ConfirmationRequired(ConfigurationError):
    """A destructive step needs an explicit yes."""


class DocumentError(KgragError):
    """A source file or row cannot be read. ``subject`` is its path."""


class EmptyDocumentError(DocumentError):
    """The file or row holds no text: a warning rather than a failure."""


class ModelError(KgragError):
    """A model call failed."""


class TransientModelError(ModelError):
    """Retrying may help. ``retry_after`` is in seconds, None where the server gave none."""

    def __init__(self, message: str, *, subject: str = "", remedy: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, subject=subject, remedy=remedy)
        self.retry_after = retry_after


class ItemError(ModelError):
    """This one input fails; it says nothing about the others."""


class OutputError(ItemError):
    """The reply does not have the task's form. ``reply`` is what the model said."""

    def __init__(self, message: str, *, subject: str = "", remedy: str = "", reply: str = "") -> None:
        super().__init__(message, subject=subject, remedy=remedy)
        self.reply = reply


class TruncatedError(ItemError):
    """The reply was cut off and held no complete item."""


class RejectedError(ItemError):
    """The provider refused this input (400, 413, 422, content filter)."""


class PermanentModelError(ModelError):
    """No call to this model can succeed until someone changes something."""


class StoreError(KgragError):
    """A store failed."""


class StoreUnavailableError(StoreError):
    """The store cannot be reached or opened."""


class StoreReadOnlyError(StoreError):
    """A write was tried on a read-only store."""


class StoreFullError(StoreError):
    """No space is left; nothing was half written."""


class StoreCorruptError(StoreError):
    """The store's files are damaged."""


class StoreVersionError(StoreError):
    """The store was written by a newer version."""


class UnsupportedFilesystemError(StoreError):
    """Embedded stores need a local file system."""


class LeaseError(KgragError):
    """The namespace's lease."""


class LeaseHeldError(LeaseError):
    """Another run is writing to the namespace."""


class LeaseLostError(LeaseError):
    """The lease passed to another run; nothing may be written any more."""


class RunStopped(KgragError):
    """The run stopped cleanly because it was asked to."""


class QueryError(KgragError):
    """A question or search request cannot be served."""


class UnknownNamespaceError(QueryError):
    """No index has this name."""


class UnknownStrategyError(QueryError):
    """No strategy has this name."""


class InvalidFilterError(QueryError):
    """The filter does not parse or names an unknown field or operator."""


class MethodologyNotIndexedError(QueryError):
    """The index was built without what the strategy reads."""


class DeadlineExceededError(QueryError):
    """The query ran out of time."""
