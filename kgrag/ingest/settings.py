"""The ``run`` section of the configuration."""

from __future__ import annotations

from pydantic import Field

from kgrag.section import Section


class RunSettings(Section):
    """How a run of ingestion goes about its work."""

    lease_seconds: float = Field(60.0, ge=3)
    """How long a run owns its namespace without a sign of life; renewed every sixth of it."""
    max_deletion_share: float = Field(0.5, ge=0, le=1)
    """Share of a source's documents above which their deletion needs `confirm_deletions`, from 10 documents on."""
    confirm_deletions: bool = False
    """Says yes beforehand to a mass deletion, or to a source that is suddenly empty."""
    rows_per_shard: int = Field(256, ge=1)
    """Rows of one file of a run's tables, and of one unit of work on a cluster."""
    groups_per_shard: int = Field(4096, ge=1)
    """Entities, relationships and claims that are derived together."""
    rows_in_flight: int = Field(512, ge=1)
    """Rows that wait for a model at once, in process. The models' own limits decide how many calls run."""
    model_actors: int = Field(1, ge=1)
    """On a cluster: workers that ask models. Each has the models' whole concurrency."""
    task_cpus: float = Field(1.0, gt=0)
    """On a cluster: cores that a task without model calls counts for."""
    keep_tables: bool = False
    """Keep the tables of a finished run (they hold text of the documents)."""
    tables: str = ""
    """Where a run's tables go: a path or a URI such as `s3://bucket/prefix`. Empty: beside the embedded stores."""
    force_rebuild: bool = False
    """Read every text unit again and ask every question again, whatever is stored."""
    max_document_failures: int = Field(3, ge=1)
    """Runs after which a document that fails for a reason of its own is left alone until it changes."""
