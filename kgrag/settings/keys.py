"""The names in the tree: which are valid, and what a wrong one was probably meant to be."""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
import types
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kgrag.errors import ConfigurationError
from kgrag.section import Section


def fields_of(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """A section's fields by the name a user writes."""
    return {field.alias or name: field for name, field in section.model_fields.items()}


def descriptions(section: type[BaseModel]) -> dict[str, str]:
    """What the source says of each field, by the name a user writes: the string below it, on one line."""
    found: dict[str, str] = {}
    for cls in reversed(section.__mro__):
        if not issubclass(cls, Section):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, below in pairwise(body.body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
                text = below.value.value if isinstance(below.value, ast.Constant) else None
                if isinstance(text, str):
                    found[field.target.id] = " ".join(text.split())
    return {field.alias or name: found.get(name, "") for name, field in section.model_fields.items()}


def sections_in(annotation: Any) -> list[type[BaseModel]]:
    """The sections a value of this type may be, directly (not those inside a dict or list)."""
    return [member for member in _members(annotation) if inspect.isclass(member) and issubclass(member, BaseModel)]


def check_keys(section: type[BaseModel], values: Mapping[str, Any], origin: str) -> None:
    """Refuse unknown keys anywhere in ``values``. Raises ConfigurationError with the nearest valid name."""
    _check(section, values, (), origin, section)


def without_empty_sections(section: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` without sections that are null where they must not be: a section with nothing under its name."""
    kept: dict[str, Any] = {}
    for key, value in values.items():
        annotation = fields_of(section)[key].annotation
        inner = sections_in(annotation)
        if inner and isinstance(value, Mapping):
            kept[key] = without_empty_sections(inner[0], value)
        elif not inner or value is not None or type(None) in _members(annotation):
            kept[key] = value
    return kept


def leaves(section: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Dotted name and field of every value that is not itself a section, in the order of the tree."""
    for name, field in fields_of(section).items():
        inner = sections_in(field.annotation)
        if inner:
            yield from leaves(inner[0], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def _members(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _members(get_args(annotation)[0])
    elif origin is Union or origin is types.UnionType:
        for member in get_args(annotation):
            yield from _members(member)
    else:
        yield annotation


def _check(annotation: Any, value: Any, path: tuple[str, ...], origin: str, root: type[BaseModel]) -> None:
    if isinstance(value, list):
        for member in _members(annotation):
            if get_origin(member) is list:
                for item in value:
                    _check(get_args(member)[0], item, path, origin, root)
        return
    if not isinstance(value, Mapping):
        return
    sections = sections_in(annotation)
    if sections:
        known = {name: field for section in sections for name, field in fields_of(section).items()}
        for key, inner in value.items():
            if key not in known:
                raise _unknown((*path, str(key)), list(known), origin, root)
            _check(known[key].annotation, inner, (*path, key), origin, root)
        return
    for member in _members(annotation):
        if get_origin(member) is dict:
            for key, inner in value.items():
                _check(get_args(member)[1], inner, (*path, str(key)), origin, root)


def _unknown(path: tuple[str, ...], siblings: list[str], origin: str, root: type[BaseModel]) -> ConfigurationError:
    key, prefix = path[-1], "".join(f"{part}." for part in path[:-1])
    near = [f"{prefix}{name}" for name in difflib.get_close_matches(key, siblings, n=1, cutoff=0.6)]
    if not near:  # right name, wrong section; or a wrong section
        everywhere = [name for name, _ in leaves(root)]
        near = [name for name in everywhere if name.rpartition(".")[2] == key][:3]
        near = near or difflib.get_close_matches(".".join(path), everywhere, n=1, cutoff=0.6)
    remedy = f"Did you mean {' or '.join(near)}?" if near else f"Known here: {', '.join(sorted(siblings))}."
    dotted = ".".join(path)
    return ConfigurationError(f'There is no setting "{dotted}" ({origin}).', subject=dotted, remedy=remedy)
