"""Settings from their layers: defaults < backend preset < file < environment < flags."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from kgrag.errors import ConfigurationError
from kgrag.settings.keys import check_keys, fields_of, without_empty_sections
from kgrag.settings.tree import PRESETS, Settings

PREFIX = "KGRAG__"
DEFAULT = "default"


@dataclass(frozen=True)
class Loaded:
    """Settings, and per dotted name of every value that is not a default the layer that set it."""

    settings: Settings
    origins: Mapping[str, str]

    def rows(self) -> list[tuple[str, str, str]]:
        """(dotted name, value as JSON, origin) of every value, in the order of the tree; secrets are masked."""
        return [(name, json.dumps(value, ensure_ascii=False), self._origin(name)) for name, value in _values(self.settings, "")]

    def _origin(self, name: str) -> str:
        if name in self.origins:
            return self.origins[name]
        inside = [origin for key, origin in self.origins.items() if key.startswith(f"{name}.")]
        return ", ".join(dict.fromkeys(inside)) or DEFAULT


def load(
    config: str | os.PathLike[str] | None = None,
    *,
    flags: Iterable[str] = (),
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Loaded:
    """The effective settings. ``config`` is a YAML or TOML file (else the one ``KGRAG_CONFIG`` names); ``flags`` are
    ``section.key=value``; ``overrides`` hold nested or dotted keys and win over everything.
    Raises ConfigurationError."""
    environment = os.environ if environment is None else environment
    file = config or environment.get("KGRAG_CONFIG") or None
    layers: list[tuple[str, dict[str, Any]]] = []
    if file is not None:
        layers.append((f"file {os.fspath(file)}", _file(Path(file).expanduser())))
    layers += _environment(environment)
    for flag in flags:
        key, equals, text = flag.partition("=")
        if not equals or not key.strip():
            raise ConfigurationError(f'"{flag}" is not a setting.', subject=flag, remedy="Write --set section.key=value.")
        layers.append((f"--set {key.strip()}", _nested(key.strip(), _value(text))))
    for key, value in (overrides or {}).items():
        layers.append(("argument", _nested(key, value)))
    for origin, values in layers:
        check_keys(Settings, values, origin)
    return _combined([(origin, without_empty_sections(Settings, values)) for origin, values in layers])


def _combined(layers: list[tuple[str, dict[str, Any]]]) -> Loaded:
    wanted = [values["backend"] for _, values in layers if "backend" in values]
    backend = wanted[-1] if wanted else Settings.model_fields["backend"].default
    layers = [(f"preset {name}", dict(preset)) for name, preset in PRESETS.items() if name == backend and preset] + layers
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, values in layers:
        _merge(merged, values)
        for name in _names(values, ""):
            for old in [key for key in origins if key.startswith(f"{name}.") or name.startswith(f"{key}.")]:
                del origins[old]
            origins[name] = origin
    try:
        return Loaded(Settings.model_validate(merged), origins)
    except ValidationError as error:
        raise _invalid(error, origins) from None


def _invalid(error: ValidationError, origins: Mapping[str, str]) -> ConfigurationError:
    lines: dict[str, None] = {}
    subject = ""
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(str(part) for part in problem["loc"])
        origin = next((o for k, o in origins.items() if place == k or place.startswith(f"{k}.") or k.startswith(f"{place}.")), "")
        lines[f"{place}: {problem['msg'].removeprefix('Value error, ')}" + (f" ({origin})" if origin else "")] = None
        subject = subject or place
    return ConfigurationError(
        "The configuration is not valid. " + "; ".join(lines) + ".", subject=subject, remedy="See `kgrag config show`."
    )


# ---------------------------------------------------------------- reading the layers


def _file(path: Path) -> dict[str, Any]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f'The configuration file "{path}" cannot be read: {error.strerror or error}.',
            subject=str(path),
            remedy="Check the path, or write one with `kgrag init`.",
        ) from error
    try:
        values = tomllib.loads(raw.decode()) if path.suffix == ".toml" else _yaml(raw.decode())
    except (ValueError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f'The configuration file "{path}" does not parse: {" ".join(str(error).split())}.',
            subject=str(path),
            remedy="Correct it, or write a fresh one with `kgrag init`.",
        ) from error
    if not isinstance(values, dict):
        raise ConfigurationError(
            f'The configuration file "{path}" holds no sections.', subject=str(path), remedy="Write `section:` and its keys below."
        )
    return values


def _yaml(text: str) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a key that stands twice; plain YAML drops the first without a word."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
            seen: set[Any] = set()
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if key in seen:
                    raise ValueError(f'line {key_node.start_mark.line + 1}: "{key}" stands twice')
                seen.add(key)
            return super().construct_mapping(node, deep)

    try:
        values = yaml.load(text, Loader)  # noqa: S506  # a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    return {} if values is None else values


def _environment(environment: Mapping[str, str]) -> list[tuple[str, dict[str, Any]]]:
    layers: list[tuple[str, dict[str, Any]]] = []
    if environment.get("KGRAG_HOME"):
        layers.append(("environment KGRAG_HOME", {"home": environment["KGRAG_HOME"]}))
    for name in sorted(environment):
        if name.startswith(PREFIX):
            key = name[len(PREFIX) :].lower().replace("__", ".")
            layers.append((f"environment {name}", _nested(key, _value(environment[name]))))
    return layers


def _value(text: str) -> Any:
    """Lists, objects and null as JSON; everything else stays text, which the field's type converts."""
    text = text.strip()
    if text == "null":
        return None
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _nested(dotted: str, value: Any) -> dict[str, Any]:
    for part in reversed(dotted.split(".")):
        value = {part: value}
    nested: dict[str, Any] = value
    return nested


# ---------------------------------------------------------------- trees of values


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        held = into.get(key)
        if isinstance(value, Mapping):
            inner = dict(held) if isinstance(held, dict) else {}
            _merge(inner, value)
            into[key] = inner
        else:
            into[key] = value


def _names(values: Mapping[str, Any], prefix: str) -> list[str]:
    names: list[str] = []
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            names += _names(value, f"{prefix}{key}.")
        else:
            names.append(f"{prefix}{key}")
    return names


def _values(section: BaseModel, prefix: str) -> list[tuple[str, Any]]:
    plain = section.model_dump(mode="json", by_alias=True)
    found: list[tuple[str, Any]] = []
    for name, field in fields_of(type(section)).items():
        value = getattr(section, next(n for n, f in type(section).model_fields.items() if f is field))
        if isinstance(value, BaseModel):
            found += _values(value, f"{prefix}{name}.")
        else:
            found.append((f"{prefix}{name}", plain[name]))
    return found
