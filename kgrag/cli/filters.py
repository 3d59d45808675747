"""What ``--filter`` takes: ``field=value``, ``field>=value`` and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from kgrag.errors import InvalidFilterError

_CONDITION = re.compile(r"\s*(?P<field>[^=<>!]+?)\s*(?P<sign>>=|<=|!=|=|>|<)\s*(?P<value>.*?)\s*", re.DOTALL)
_BOUNDS = {">=": "gte", "<=": "lte", ">": "gt", "<": "lt"}


def filter_of(given: Sequence[str]) -> dict[str, Any] | None:
    """The JSON form (``kgrag.filters``) of all conditions together; None without any.

    A value that looks like a number or truth value stands for that and for its text, as columns of a table are text:
    ``year=2020`` finds 2020 and "2020". The same field given twice with ``=`` means either.
    Raises InvalidFilterError."""
    found: dict[str, Any] = {}
    for text in given:
        for field, value in _parsed(text).items():
            found[field] = _joined(field, found[field], value) if field in found else value
    return found or None


def _parsed(text: str) -> dict[str, Any]:
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except ValueError as error:
            raise InvalidFilterError(f"The filter is not JSON: {error}.", subject=text, remedy='Write {"year": 2020}.') from error
        if not isinstance(value, dict):
            raise InvalidFilterError("The filter is no JSON object.", subject=text, remedy='Write {"year": 2020}.')
        return value
    matched = _CONDITION.fullmatch(text)
    if matched is None:
        raise InvalidFilterError(
            f'"{text}" is not a condition.', subject=text, remedy='Write field=value, field>=value, or JSON such as {"year": 2020}.'
        )
    field, sign, value = matched["field"], matched["sign"], matched["value"]
    if sign == "!=":
        return {"not": {field: _either(value)}}
    return {field: {_BOUNDS[sign]: _typed(value)} if sign in _BOUNDS else _either(value)}


def _either(text: str) -> list[Any]:
    typed = _typed(text)
    return [typed] if typed == text else [typed, text]


def _typed(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (int, float, bool, str)) else text


def _joined(field: str, held: Any, value: Any) -> Any:
    if isinstance(held, dict) and isinstance(value, dict) and field != "not":
        return {**held, **value}
    if isinstance(held, list) and isinstance(value, list):
        return [*held, *value]
    raise InvalidFilterError(
        f'The conditions on "{field}" cannot be joined.', subject=field, remedy="Write them as one JSON filter; see kgrag.filters."
    )
