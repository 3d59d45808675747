"""A configuration file to start from: every default, as a comment."""

from __future__ import annotations

import textwrap

from pydantic import BaseModel

from kgrag.settings.keys import descriptions, fields_of, sections_in
from kgrag.settings.tree import Settings

_HEADER = """\
# Configuration of kgrag. Every setting is shown with its default; remove the # of those you change.
# The variable KGRAG__SECTION__KEY and --set section.key=value win over this file.
"""


def template() -> str:
    """YAML in which everything but the section names is a comment."""
    return _HEADER + "\n".join(_section(Settings, 0)) + "\n"


def _section(section: type[BaseModel], depth: int) -> list[str]:
    import yaml

    pad = "  " * depth
    lines: list[str] = []
    said = descriptions(section)
    for name, field in fields_of(section).items():
        inner = sections_in(field.annotation)
        about = said[name] or " ".join(((inner[0].__doc__ if inner else "") or "").split())
        lines += ["", *(f"{pad}# {line}" for line in textwrap.wrap(about, 118 - len(pad)))]
        if inner and field.default is not None:
            lines += [f"{pad}{name}:", *_section(inner[0], depth + 1)]
        elif inner:
            lines.append(f"{pad}# {name}: null  # a section like the one above")
        else:
            plain = section.model_fields[next(n for n, f in section.model_fields.items() if f is field)]
            value = plain.get_default(call_default_factory=True)
            shown = yaml.safe_dump(_plain(value), default_flow_style=True, allow_unicode=True, width=10_000)
            lines.append(f"{pad}# {name}: {shown.removesuffix(chr(10)).removesuffix('...').strip()}")
    return lines


def _plain(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool, list, dict, type(None))) else str(value)
