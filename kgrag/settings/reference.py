"""The reference page of the configuration, generated from the tree."""

from __future__ import annotations

import json
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from kgrag.settings.keys import descriptions, fields_of, sections_in
from kgrag.settings.tree import Settings

_INTRODUCTION = """# Configuration

Written by `make reference` from the fields themselves; a test keeps it current.

Later layers win: the defaults below, the preset of the `backend`, a file (`--config`, else the variable `KGRAG_CONFIG`,
else `kgrag.yaml` where the command runs), variables `KGRAG__SECTION__KEY`, `--set section.key=value`.
Lists and objects are written as JSON in variables and flags. An unknown key is an error that names the nearest valid
one. `kgrag config show` prints the values in effect and where each came from.
"""


def render() -> str:
    """The page as Markdown."""
    return "\n".join([_INTRODUCTION, *_section(Settings, "", "", {})]).rstrip() + "\n"


def _section(section: type[BaseModel], path: str, note: str, written: dict[type[BaseModel], str]) -> list[str]:
    if section in written:
        return [f"## `{path}`", "", f"{note} Keys as in `{written[section]}`.", ""]
    written[section] = path
    fields, said = fields_of(section), descriptions(section)
    inner = {name: sections_in(field.annotation) for name, field in fields.items()}
    plain = [(name, field) for name, field in fields.items() if not inner[name]]
    lines = [f"## `{path}`" if path else "## Top level", ""]
    about = " ".join(filter(None, [note, _one_line(section.__doc__)]))
    if about and path:
        lines += [about, ""]
    if plain:
        lines += ["| key | type | default | |", "| --- | --- | --- | --- |"]
        for name, field in plain:
            kind = _type(field.annotation) + _bounds(field)
            lines.append(f"| `{name}` | {kind} | {_default(field)} | {_cell(_one_line(said[name]))} |")
        lines.append("")
    for name, found in inner.items():
        if found:
            place = f"{path}.{name}" if path else name
            lines += _section(found[0], place, _one_line(said[name]), written)
    return lines


def _type(annotation: Any) -> str:
    if annotation is None or annotation is type(None):
        return "null"
    arguments = get_args(annotation)
    if not arguments:
        return _NAMES.get(getattr(annotation, "__name__", ""), "any")
    name = getattr(get_origin(annotation), "__name__", "")
    if name == "Literal":
        return ", ".join(f"`{json.dumps(value)}`" if not isinstance(value, str) else f"`{value}`" for value in arguments)
    if name == "list":
        return f"list of {_type(arguments[0])}"
    if name == "dict":
        return f"object of {_type(arguments[1])}"
    return " or ".join(dict.fromkeys(_type(argument) for argument in arguments))


def _bounds(field: FieldInfo) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    found = [f"{sign} {getattr(limit, name)}" for limit in field.metadata for name, sign in signs.items() if hasattr(limit, name)]
    return f", {', '.join(found)}" if found else ""


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, BaseModel):
        return ""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f"`{_cell(text)}`"


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split()).replace("``", "`")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_NAMES = {
    "str": "text",
    "int": "whole number",
    "float": "number",
    "bool": "`true`, `false`",
    "Path": "path",
    "SecretStr": "secret",
    "Any": "any",
}
