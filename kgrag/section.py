"""The base of every settings section. A section stands in the module that reads it; ``settings.py`` composes them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Frozen, validated, unknown keys refused. A field is documented by the string below it, which ``settings.keys`` reads
    when a page is written: pydantic would read every source file at every start."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
