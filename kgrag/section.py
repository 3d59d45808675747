"""The base of every settings section. A section stands in the module that reads it; ``settings.py`` composes them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Frozen, validated, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True)
