"""Filters over metadata fields: a small tree every store understands.

JSON form (``parse``): ``{"year": 2020}`` equals, ``{"year": [2020, 2021]}`` any of, ``{"year": {"gte": 2000, "lt": 2010}}``
a range, ``{"year": {"exists": true}}``, ``{"not": {...}}``; several keys must all hold. A field that holds a list
matches when any of its values does. ``document_id`` and ``path`` are fields of every text unit.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import msgspec

from kgrag.errors import InvalidFilterError
from kgrag.records import Metadata, Scalar


class Term(msgspec.Struct, frozen=True, tag="term"):
    field: str
    values: tuple[Scalar, ...]
    """The field equals one of these."""


class Range(msgspec.Struct, frozen=True, tag="range"):
    field: str
    gt: float | str | None = None
    gte: float | str | None = None
    lt: float | str | None = None
    lte: float | str | None = None


class Exists(msgspec.Struct, frozen=True, tag="exists"):
    field: str


class Not(msgspec.Struct, frozen=True, tag="not"):
    clause: Filter


class All(msgspec.Struct, frozen=True, tag="all"):
    clauses: tuple[Filter, ...]


Filter = Term | Range | Exists | Not | All

_BOUNDS = {"gt", "gte", "lt", "lte"}


def parse(spec: Mapping[str, Any] | None) -> Filter | None:
    """The filter of a JSON object; None for an empty one. Raises InvalidFilterError naming the field."""
    if not spec:
        return None
    clauses = tuple(_clause(key, value) for key, value in spec.items())
    return clauses[0] if len(clauses) == 1 else All(clauses)


def _clause(key: str, value: Any) -> Filter:
    if key == "not":
        inner = parse(value) if isinstance(value, Mapping) else None
        if inner is None:
            raise InvalidFilterError('The filter "not" needs an object.', subject=key, remedy='Write {"not": {"field": value}}.')
        return Not(inner)
    if isinstance(value, Mapping):
        if set(value) == {"exists"} and isinstance(value["exists"], bool):
            return Exists(key) if value["exists"] else Not(Exists(key))
        unknown = set(value) - _BOUNDS
        if unknown or not value:
            raise InvalidFilterError(
                f'The filter on "{key}" has unknown operators: {", ".join(sorted(map(str, unknown))) or "none given"}.',
                subject=key,
                remedy="Use gt, gte, lt, lte or exists.",
            )
        for bound in value.values():
            if isinstance(bound, bool) or not isinstance(bound, (int, float, str)):
                raise InvalidFilterError(
                    f'A bound of "{key}" is not a number or string.', subject=key, remedy="Give a number or an ISO date."
                )
        return Range(key, **value)
    values = value if isinstance(value, (list, tuple)) else [value]
    if not values or not all(isinstance(v, (str, int, float, bool)) for v in values):
        raise InvalidFilterError(
            f'The filter on "{key}" needs a scalar or a list of scalars.', subject=key, remedy="See the filter reference."
        )
    return Term(key, tuple(values))


def matches(clause: Filter, metadata: Metadata) -> bool:
    """Whether ``metadata`` passes: the definition every store's own evaluation must agree with."""
    match clause:
        case All(clauses):
            return all(matches(c, metadata) for c in clauses)
        case Not(inner):
            return not matches(inner, metadata)
        case Exists(field):
            return _values(metadata, field) != ()
        case Term(field, wanted):
            keys = {canonical(w) for w in wanted}
            return any(canonical(v) in keys for v in _values(metadata, field))
        case Range():
            return any(_within(v, clause) for v in _values(metadata, clause.field))


def canonical(value: Scalar) -> str:
    """One text form per value, so that 1, 1.0 and a stored 1 are equal, and true is not "true"."""
    if isinstance(value, bool):
        return f"b:{int(value)}"
    if isinstance(value, (int, float)):
        return f"n:{int(value)}" if float(value).is_integer() else f"n:{value!r}"
    return f"s:{value}"


def _values(metadata: Metadata, field: str) -> tuple[Scalar, ...]:
    value = metadata.get(field)
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else (value,)


def _within(value: Scalar, bounds: Range) -> bool:
    for bound, ok in (
        (bounds.gt, operator.gt),
        (bounds.gte, operator.ge),
        (bounds.lt, operator.lt),
        (bounds.lte, operator.le),
    ):
        if bound is None:
            continue
        if isinstance(bound, str) != isinstance(value, str) or not ok(value, bound):
            return False
    return True
